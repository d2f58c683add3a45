/** The settings of the stores, examined now, and what to do about those that differ. */
import { Badge, Button, Card, Table, Text } from "@mantine/core";
import { IconRefresh } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { call } from "#panel/web/api/call.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { PageHead } from "#panel/web/parts/page-head.tsx";
import { PagePending } from "#panel/web/parts/page-pending.tsx";
import { ProblemNote } from "#panel/web/parts/page-problem.tsx";
import { ScrollTable } from "#panel/web/parts/scroll-table.tsx";

interface DoctorWords {
  readonly check: string;
  readonly advice: string;
}

export function DoctorPage() {
  const { t } = useText();
  const { data, error, isPending, isFetching, refetch } = useQuery({
    queryKey: ["doctor"],
    queryFn: ({ signal }) => call("get", "/panel/api/doctor", { signal }),
  });
  // English is what the server says.
  const words: Readonly<Record<string, DoctorWords>> = t.doctor.words;
  return (
    <>
      <PageHead title={t.doctor.title} lead={t.doctor.lead}>
        <Button
          leftSection={<IconRefresh size={16} aria-hidden />}
          loading={isFetching}
          onClick={() => void refetch()}
        >
          {t.doctor.again}
        </Button>
      </PageHead>
      <ProblemNote error={error} />
      {isPending && <PagePending />}
      {data && (
        <Card padding={0}>
          <ScrollTable label={t.doctor.title} minWidth={720}>
            <Table.Thead>
              <Table.Tr>
                <Table.Th>{t.doctor.check}</Table.Th>
                <Table.Th>{t.doctor.result}</Table.Th>
                <Table.Th>{t.doctor.found}</Table.Th>
                <Table.Th>{t.doctor.wanted}</Table.Th>
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {data.map(({ code, check, ok, found, wanted, advice }) => (
                <Table.Tr key={code}>
                  <Table.Th scope="row">
                    {words[code]?.check ?? check}
                    {advice !== "" && (
                      <Text size="sm" c="dimmed">
                        {words[code]?.advice ?? advice}
                      </Text>
                    )}
                  </Table.Th>
                  <Table.Td>
                    <Badge color={ok ? "teal" : "red"}>{ok ? t.doctor.ok : t.doctor.differs}</Badge>
                  </Table.Td>
                  <Table.Td className="break">{found}</Table.Td>
                  <Table.Td className="break">{wanted}</Table.Td>
                </Table.Tr>
              ))}
            </Table.Tbody>
          </ScrollTable>
        </Card>
      )}
    </>
  );
}
