/** What is known of a shipment besides its events: where it goes, its parcels, and who was told. */
import { Badge, Group, Stack, Text } from "@mantine/core";
import { queryOptions, useQuery } from "@tanstack/react-query";
import { call } from "#panel/web/api/call.ts";
import type { ShipmentDetail } from "#panel/web/api/routes.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { Facts } from "#panel/web/parts/facts.tsx";
import { Instant } from "#panel/web/parts/instant.tsx";
import { ProblemNote } from "#panel/web/parts/page-problem.tsx";
import { Section } from "#panel/web/parts/section.tsx";
import { StatusBadge } from "#panel/web/parts/status-badge.tsx";

export const detailQuery = (id: string) =>
  queryOptions({
    queryKey: ["shipments", id],
    queryFn: ({ signal }) => call("get", "/panel/api/shipments/:id", { params: { id }, signal }),
  });

export function ShipmentDetails({ id }: { readonly id: string }) {
  const { t } = useText();
  const { data, error } = useQuery(detailQuery(id));
  if (!data) return <ProblemNote error={error} />;
  const { consignee } = data;
  return (
    <>
      {consignee && (
        <Section title={t.shipments.consignee}>
          <Facts
            rows={[
              [t.shipments.name, consignee.name ?? "–"],
              [
                t.shipments.town,
                [consignee.postcode, consignee.city, consignee.country].filter(Boolean).join(" "),
              ],
            ]}
          />
        </Section>
      )}
      {data.parcels.length > 0 && (
        <Section title={t.shipments.parcels}>
          <Stack gap="xs">
            {data.parcels.map(({ trackingNumber, status, statusDetail }) => (
              <Group key={trackingNumber} justify="space-between">
                <Text className="mono break">{trackingNumber}</Text>
                {status && <StatusBadge status={status} detail={statusDetail} />}
              </Group>
            ))}
          </Stack>
        </Section>
      )}
      <NotificationList notifications={data.notifications} />
    </>
  );
}

function NotificationList({ notifications }: Pick<ShipmentDetail, "notifications">) {
  const { t } = useText();
  if (notifications.length === 0) return null;
  return (
    <Section title={t.shipments.notifications}>
      <Stack gap="xs">
        {notifications.map((one) => (
          <Stack key={`${one.sentAt} ${one.type} ${one.recipient} ${one.shipmentStatus}`} gap={2}>
            <Group gap={6} fz="sm">
              <Badge color={one.result === "OK" ? "teal" : "red"}>{one.type}</Badge>
              <Instant at={one.sentAt} />
            </Group>
            <Text size="xs" c="dimmed" className="break">
              {one.recipient}
              {one.error === null ? "" : ` · ${one.error}`}
            </Text>
          </Stack>
        ))}
      </Stack>
    </Section>
  );
}
