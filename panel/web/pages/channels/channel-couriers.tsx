/** The couriers that a channel ships with, under the names that the merchant gives them. */
import { Badge, Group, Select, Table } from "@mantine/core";
import { useForm } from "@mantine/form";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { call } from "#panel/web/api/call.ts";
import type { Channel, ChannelCourier } from "#panel/web/api/routes.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { couriersQuery } from "#panel/web/pages/couriers/queries.ts";
import { AddButton } from "#panel/web/parts/add-button.tsx";
import { Confirm } from "#panel/web/parts/confirm.tsx";
import { faultOf } from "#panel/web/parts/fault-of.ts";
import { FormDialog } from "#panel/web/parts/form-dialog.tsx";
import { RowButton } from "#panel/web/parts/row-button.tsx";
import { ScrollTable } from "#panel/web/parts/scroll-table.tsx";
import { Section } from "#panel/web/parts/section.tsx";
import { tell, tellProblem } from "#panel/web/parts/tell.ts";
import { useAction } from "#panel/web/parts/use-action.ts";
import { queries } from "#panel/web/queries.ts";
import { ChangeCourier } from "./change-courier.tsx";
import { useMayChange } from "./use-may-change.ts";

export function ChannelCouriers({ channel }: { readonly channel: Channel }) {
  const { t } = useText();
  const mayAdd = useMayChange("channels:write", channel.code);
  const [isAdding, setIsAdding] = useState(false);
  const [changed, setChanged] = useState<ChannelCourier | null>(null);
  return (
    <Section
      title={t.nav.couriers}
      lead={t.merchants.couriersLead}
      aside={
        mayAdd && <AddButton label={t.merchants.addCourier} onClick={() => setIsAdding(true)} />
      }
    >
      <CourierTable channel={channel} mayRemove={mayAdd} onChange={setChanged} />
      {isAdding && <AddCourier channel={channel} onClose={() => setIsAdding(false)} />}
      {changed && (
        <ChangeCourier
          channelCode={channel.code}
          courier={changed}
          onClose={() => setChanged(null)}
        />
      )}
    </Section>
  );
}

interface CourierTableProps {
  readonly channel: Channel;
  readonly mayRemove: boolean;
  readonly onChange: (courier: ChannelCourier) => void;
}

function CourierTable({ channel, mayRemove, onChange }: CourierTableProps) {
  const { t } = useText();
  const mayChange = useMayChange("shipping:write", channel.code);
  const [removed, setRemoved] = useState<string | null>(null);
  const removing = useAction({
    mutationFn: (courierCode: string) =>
      call("delete", "/panel/api/channels/:channelCode/couriers/:courierCode", {
        params: { channelCode: channel.code, courierCode },
      }),
    onError: tellProblem,
    async onSuccess() {
      setRemoved(null);
      await queries.invalidateQueries({ queryKey: ["channels", channel.code] });
    },
  });
  return (
    <>
      <ScrollTable label={t.nav.couriers} minWidth={640}>
        <Table.Thead>
          <Table.Tr>
            <Table.Th>{t.merchants.code}</Table.Th>
            <Table.Th>{t.merchants.state}</Table.Th>
            <Table.Th>{t.merchants.transcodings}</Table.Th>
            <Table.Th>{t.merchants.senderAccounts}</Table.Th>
            <Table.Th>{t.merchants.labels}</Table.Th>
            {mayChange && <Table.Th />}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {channel.couriers.map((courier) => (
            <Table.Tr key={courier.code}>
              <Table.Th scope="row" className="mono">
                {courier.code}
              </Table.Th>
              <Table.Td>
                <Badge color={courier.shippingEnabled ? "teal" : "gray"}>
                  {courier.shippingEnabled ? t.merchants.enabled : t.merchants.disabled}
                </Badge>
              </Table.Td>
              <Table.Td>{courier.transcodings.join(", ") || "–"}</Table.Td>
              <Table.Td>{courier.senderAccounts.join(", ") || "–"}</Table.Td>
              <Table.Td>{courier.labelFormat}</Table.Td>
              {mayChange && (
                <Table.Td>
                  <Group gap="xs" justify="end" wrap="nowrap">
                    <RowButton
                      action={t.merchants.change}
                      subject={courier.code}
                      onClick={() => onChange(courier)}
                    />
                    {mayRemove && (
                      <RowButton
                        action={t.merchants.removeCourier}
                        subject={courier.code}
                        onClick={() => setRemoved(courier.code)}
                      />
                    )}
                  </Group>
                </Table.Td>
              )}
            </Table.Tr>
          ))}
        </Table.Tbody>
      </ScrollTable>
      <Confirm
        opened={removed !== null}
        onClose={() => setRemoved(null)}
        title={t.merchants.removeCourier}
        text={t.merchants.removeCourierText(removed ?? "")}
        action={t.merchants.removeCourier}
        isPending={removing.isPending}
        onConfirm={() => removed !== null && removing.mutate(removed)}
      />
    </>
  );
}

interface AddCourierProps {
  readonly channel: Channel;
  readonly onClose: () => void;
}

function AddCourier({ channel, onClose }: AddCourierProps) {
  const { t } = useText();
  const { data } = useQuery(couriersQuery);
  const form = useForm({ initialValues: { code: "" } });
  const known = new Set(channel.couriers.map(({ code }) => code));
  const offered = [...(data?.items.map(({ code }) => code) ?? []), "GENERIC"];
  const adding = useAction({
    mutationFn: (body: { code: string }) =>
      call("post", "/panel/api/channels/:channelCode/couriers", {
        params: { channelCode: channel.code },
        body,
      }),
    async onSuccess() {
      tell(t.common.saved);
      onClose();
      await queries.invalidateQueries({ queryKey: ["channels", channel.code] });
    },
  });
  return (
    <FormDialog
      title={t.merchants.addCourier}
      action={t.common.save}
      error={adding.error}
      isPending={adding.isPending}
      onSubmit={form.onSubmit((values) => adding.mutate(values))}
      onClose={onClose}
    >
      <Select
        label={t.merchants.courier}
        data={offered.filter((code) => !known.has(code))}
        searchable
        required
        {...form.getInputProps("code")}
        error={faultOf(adding.error, "code")}
      />
    </FormDialog>
  );
}
