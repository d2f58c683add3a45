/** The items of an import that were not created, and why. */
import { Modal, Stack, Table, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { call } from "#panel/web/api/call.ts";
import type { Job } from "#panel/web/api/routes.ts";
import { useFormat } from "#panel/web/i18n/format.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { PagePending } from "#panel/web/parts/page-pending.tsx";
import { ProblemNote } from "#panel/web/parts/page-problem.tsx";
import { ScrollTable } from "#panel/web/parts/scroll-table.tsx";

interface JobFailuresProps {
  readonly job: Job;
  readonly onClose: () => void;
}

export function JobFailures({ job, onClose }: JobFailuresProps) {
  const { t } = useText();
  const f = useFormat();
  const { channelCode, jobId } = job;
  const { data, error } = useQuery({
    queryKey: ["jobs", channelCode, jobId, "failures"],
    queryFn: ({ signal }) =>
      call("get", "/panel/api/channels/:channelCode/jobs/:jobId/failures", {
        params: { channelCode, jobId },
        signal,
      }),
  });
  const title = t.jobs.failures(jobId);
  return (
    <Modal
      opened
      onClose={onClose}
      title={title}
      size="xl"
      closeButtonProps={{ "aria-label": t.common.close }}
    >
      <ProblemNote error={error} />
      {!data && !error && <PagePending />}
      {data && (
        <Stack>
          {data.failedItems > data.items.length && (
            <Text size="sm">{t.jobs.moreFailures(f.whole(data.failedItems))}</Text>
          )}
          <ScrollTable label={title} minWidth={560}>
            <Table.Thead>
              <Table.Tr>
                <Table.Th>{t.jobs.item}</Table.Th>
                <Table.Th>{t.shipments.number}</Table.Th>
                <Table.Th>{t.jobs.reason}</Table.Th>
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {data.items.map(({ index, trackingNumber, errors }) => (
                <Table.Tr key={index}>
                  <Table.Td>{f.whole(index + 1)}</Table.Td>
                  <Table.Td className="mono break">{trackingNumber ?? "–"}</Table.Td>
                  <Table.Td>
                    {errors.map(({ code, field, message }) => (
                      <Text key={`${code} ${field}`} size="sm" className="break" title={code}>
                        {field}: {message}
                      </Text>
                    ))}
                  </Table.Td>
                </Table.Tr>
              ))}
            </Table.Tbody>
          </ScrollTable>
        </Stack>
      )}
    </Modal>
  );
}
