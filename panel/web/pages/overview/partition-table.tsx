/** What each partition of the store takes, the largest first, and which master has it. */
import { Table } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { call } from "#panel/web/api/call.ts";
import { useFormat } from "#panel/web/i18n/format.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { PagePending } from "#panel/web/parts/page-pending.tsx";
import { ProblemNote } from "#panel/web/parts/page-problem.tsx";
import { ScrollTable } from "#panel/web/parts/scroll-table.tsx";

const ASK_EVERY_MS = 30_000;
const BYTES_PER_MB = 1e6;
/** Its shard is unavailable. */
const UNKNOWN = "–";

export function PartitionTable() {
  const { t } = useText();
  const f = useFormat();
  const { data, error } = useQuery({
    queryKey: ["partitions"],
    queryFn: ({ signal }) => call("get", "/panel/api/partitions", { signal }),
    refetchInterval: ASK_EVERY_MS,
  });
  if (error) return <ProblemNote error={error} />;
  if (!data) return <PagePending />;
  return (
    <ScrollTable label={t.overview.partitions} minWidth={320} narrow="figures">
      <Table.Thead>
        <Table.Tr>
          <Table.Th>{t.overview.partition}</Table.Th>
          <Table.Th>{t.overview.master}</Table.Th>
          <Table.Th ta="right">{t.overview.memory}</Table.Th>
          <Table.Th ta="right">{t.overview.calls}</Table.Th>
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody className="figures">
        {data
          .toSorted((one, other) => (other.bytes ?? 0) - (one.bytes ?? 0))
          .map(({ partition, master, bytes, callsPerSecond }) => (
            <Table.Tr key={partition}>
              <Table.Th scope="row" fw={500}>
                {partition}
              </Table.Th>
              <Table.Td>{master ?? "Redis"}</Table.Td>
              <Table.Td ta="right">
                {bytes === null ? UNKNOWN : `${f.rate(bytes / BYTES_PER_MB)} MB`}
              </Table.Td>
              <Table.Td ta="right">
                {callsPerSecond === null ? UNKNOWN : f.rate(callsPerSecond)}
              </Table.Td>
            </Table.Tr>
          ))}
      </Table.Tbody>
    </ScrollTable>
  );
}
