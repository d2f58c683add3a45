import { Select, Switch, TagsInput } from "@mantine/core";
import { useForm } from "@mantine/form";
import { call } from "#panel/web/api/call.ts";
import type { ChannelCourier } from "#panel/web/api/routes.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { faultOf } from "#panel/web/parts/fault-of.ts";
import { FormDialog } from "#panel/web/parts/form-dialog.tsx";
import { tell } from "#panel/web/parts/tell.ts";
import { useAction } from "#panel/web/parts/use-action.ts";
import { useMay } from "#panel/web/parts/use-may.ts";
import { queries } from "#panel/web/queries.ts";

interface ChangeCourierProps {
  readonly channelCode: string;
  readonly courier: ChannelCourier;
  readonly onClose: () => void;
}

/** What a channel says about one of its couriers. Its accounts with the courier are the operators' to say. */
export function ChangeCourier({ channelCode, courier, onClose }: ChangeCourierProps) {
  const { t } = useText();
  const maySetAccounts = useMay("channels:write");
  const { code: courierCode, senderAccounts, ...settings } = courier;
  const form = useForm({ initialValues: { ...settings, senderAccounts } });
  const saving = useAction({
    mutationFn: async ({ senderAccounts: accounts, ...body }: typeof form.values) => {
      const params = { channelCode, courierCode };
      const path = "/panel/api/channels/:channelCode/couriers/:courierCode" as const;
      await call("put", path, { params, body });
      if (!maySetAccounts) return;
      await call("put", `${path}/sender-accounts`, { params, body: { senderAccounts: accounts } });
    },
    async onSuccess() {
      tell(t.common.saved);
      onClose();
      await queries.invalidateQueries({ queryKey: ["channels", channelCode] });
    },
  });
  return (
    <FormDialog
      title={courierCode}
      action={t.common.save}
      error={saving.error}
      isPending={saving.isPending}
      onSubmit={form.onSubmit((values) => saving.mutate(values))}
      onClose={onClose}
    >
      <Switch
        label={t.merchants.shippingEnabled}
        description={t.merchants.shippingEnabledHint}
        {...form.getInputProps("shippingEnabled", { type: "checkbox" })}
      />
      <TagsInput
        label={t.merchants.transcodings}
        description={t.merchants.transcodingsHint}
        {...form.getInputProps("transcodings")}
        error={faultOf(saving.error, "transcodings")}
      />
      {maySetAccounts && (
        <TagsInput
          label={t.merchants.senderAccounts}
          description={t.merchants.senderAccountsHint}
          {...form.getInputProps("senderAccounts")}
          error={faultOf(saving.error, "senderAccounts")}
        />
      )}
      <Select
        label={t.merchants.labels}
        data={["PDF", "ZPL"]}
        allowDeselect={false}
        {...form.getInputProps("labelFormat")}
      />
      <Switch
        label={t.merchants.errorLabel}
        {...form.getInputProps("errorLabel", { type: "checkbox" })}
      />
    </FormDialog>
  );
}
