/** The couriers that a channel ships with, under the names that the merchant gives them. */
import { Badge, Select } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { call } from "#panel/web/api/call.ts";
import type { Channel } from "#panel/web/api/routes.ts";
import { type DialogEnds, EditableList } from "#panel/web/forms/editable-list.tsx";
import { FormDialog } from "#panel/web/forms/form-dialog.tsx";
import { useText } from "#panel/web/i18n/text.tsx";
import { couriersQuery } from "#panel/web/pages/couriers/queries.ts";
import { ChangeCourier } from "./change-courier.tsx";
import { useMayChange } from "./use-may-change.ts";

export function ChannelCouriers({ channel }: { readonly channel: Channel }) {
  const { t } = useText();
  const channelCode = channel.code;
  const mayAdd = useMayChange("channels:write", channelCode);
  const mayChange = useMayChange("shipping:write", channelCode);
  return (
    <EditableList
      title={t.nav.couriers}
      lead={t.merchants.couriersLead}
      rows={channel.couriers}
      nameOf={({ code }) => code}
      columns={[
        [t.merchants.code, ({ code }) => code],
        [
          t.merchants.state,
          ({ shippingEnabled }) => (
            <Badge color={shippingEnabled ? "teal" : "gray"}>
              {shippingEnabled ? t.merchants.enabled : t.merchants.disabled}
            </Badge>
          ),
        ],
        [t.merchants.transcodings, ({ transcodings }) => transcodings.join(", ") || "–"],
        [t.merchants.senderAccounts, ({ senderAccounts }) => senderAccounts.join(", ") || "–"],
        [t.merchants.labels, ({ labelFormat }) => labelFormat],
      ]}
      minWidth={640}
      queryKey={["channels", channelCode]}
      add={mayAdd && { label: t.merchants.addCourier }}
      change={mayChange && t.merchants.change}
      removal={
        mayAdd && {
          action: t.merchants.removeCourier,
          text: t.merchants.removeCourierText,
          call: ({ code: courierCode }) =>
            call("delete", "/panel/api/channels/:channelCode/couriers/:courierCode", {
              params: { channelCode, courierCode },
            }),
        }
      }
      dialogOf={(courier, ends) =>
        courier === null ? (
          <AddCourier channel={channel} ends={ends} />
        ) : (
          <ChangeCourier channel={channel} courier={courier} ends={ends} />
        )
      }
    />
  );
}

interface AddCourierProps {
  readonly channel: Channel;
  readonly ends: DialogEnds;
}

function AddCourier({ channel, ends: { onClose, onSaved } }: AddCourierProps) {
  const { t } = useText();
  const { data } = useQuery(couriersQuery);
  const known = new Set(channel.couriers.map(({ code }) => code));
  const offered = [...(data?.items.map(({ code }) => code) ?? []), "GENERIC"];
  return (
    <FormDialog
      title={t.merchants.addCourier}
      initial={{ code: "" }}
      send={(body) =>
        call("post", "/panel/api/channels/:channelCode/couriers", {
          params: { channelCode: channel.code },
          body,
        })
      }
      onDone={onSaved}
      onClose={onClose}
    >
      {(inputOf) => (
        <Select
          label={t.merchants.courier}
          data={offered.filter((code) => !known.has(code))}
          searchable
          required
          {...inputOf("code")}
        />
      )}
    </FormDialog>
  );
}
