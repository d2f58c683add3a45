import { Select, Switch, TagsInput } from "@mantine/core";
import { call, type Match } from "#panel/web/api/call.ts";
import type { Channel, ChannelCourier } from "#panel/web/api/routes.ts";
import type { DialogEnds } from "#panel/web/forms/editable-list.tsx";
import { FormDialog } from "#panel/web/forms/form-dialog.tsx";
import { useText } from "#panel/web/i18n/text.tsx";
import { useMay } from "#panel/web/parts/use-may.ts";

interface ChangeCourierProps {
  readonly channel: Channel;
  readonly courier: ChannelCourier;
  readonly ends: DialogEnds;
}

/** What a channel says about one of its couriers. Its accounts with the courier are the operators' to say. */
export function ChangeCourier({ channel, courier, ends }: ChangeCourierProps) {
  const { t } = useText();
  const maySetAccounts = useMay("channels:write");
  const { code: courierCode, ...settings } = courier;
  const send = async (
    _: typeof settings,
    { senderAccounts, ...body }: Partial<typeof settings>,
    match: Match,
  ) => {
    const params = { channelCode: channel.code, courierCode };
    const path = "/panel/api/channels/:channelCode/couriers/:courierCode" as const;
    if (Object.keys(body).length > 0) await call("put", path, { params, body, match });
    if (!senderAccounts) return;
    await call("put", `${path}/sender-accounts`, { params, body: { senderAccounts }, match });
  };
  return (
    <FormDialog
      title={courierCode}
      initial={settings}
      version={channel.version}
      send={send}
      onDone={ends.onSaved}
      reread={ends.reread}
      onClose={ends.onClose}
    >
      {(inputOf) => (
        <>
          <Switch
            label={t.merchants.shippingEnabled}
            description={t.merchants.shippingEnabledHint}
            {...inputOf("shippingEnabled", { type: "checkbox" })}
          />
          <TagsInput
            label={t.merchants.transcodings}
            description={t.merchants.transcodingsHint}
            {...inputOf("transcodings")}
          />
          {maySetAccounts && (
            <TagsInput
              label={t.merchants.senderAccounts}
              description={t.merchants.senderAccountsHint}
              {...inputOf("senderAccounts")}
            />
          )}
          <Select
            label={t.merchants.labels}
            data={["PDF", "ZPL"]}
            allowDeselect={false}
            {...inputOf("labelFormat")}
          />
          <Switch label={t.merchants.errorLabel} {...inputOf("errorLabel", { type: "checkbox" })} />
        </>
      )}
    </FormDialog>
  );
}
