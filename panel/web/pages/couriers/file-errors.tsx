/** What is wrong in a file that was chosen, line by line. */
import { Alert, Table } from "@mantine/core";
import type { FaultCode } from "#core/platform/schema/fault.ts";
import { useFormat } from "#panel/web/i18n/format.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { ScrollTable } from "#panel/web/parts/scroll-table.tsx";

interface FileErrorsProps {
  readonly title: string;
  readonly errors: ReadonlyArray<{
    readonly line: number;
    /** Null = the whole line. */
    readonly column: string | null;
    readonly code: FaultCode;
    /** What only a file can have wrong. */
    readonly reason: keyof ReturnType<typeof useText>["t"]["couriers"]["fileFaults"] | null;
    readonly message: string;
  }>;
}

export function FileErrors({ title, errors }: FileErrorsProps) {
  const { t } = useText();
  const f = useFormat();
  return (
    <Alert color="red" role="alert" title={title}>
      <ScrollTable label={t.couriers.error}>
        <Table.Thead>
          <Table.Tr>
            <Table.Th ta="right">{t.couriers.line}</Table.Th>
            <Table.Th>{t.couriers.column}</Table.Th>
            <Table.Th>{t.couriers.error}</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {errors.map(({ line, column, code, reason, message }) => (
            <Table.Tr key={`${line} ${column} ${message}`}>
              <Table.Td ta="right">{f.whole(line)}</Table.Td>
              <Table.Td>{column ?? t.couriers.wholeLine}</Table.Td>
              <Table.Td>
                {reason === null ? t.faults[code] : t.couriers.fileFaults[reason]}
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </ScrollTable>
    </Alert>
  );
}
