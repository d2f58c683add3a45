import { Table } from "@mantine/core";
import { useText } from "#panel/web/i18n/text.tsx";

/** The head of a table of couriers: their names, then a column for each figure. */
export function CourierFiguresHead({ names }: { readonly names: readonly string[] }) {
  const { t } = useText();
  return (
    <Table.Thead>
      <Table.Tr>
        <Table.Th>{t.benchmarks.courier}</Table.Th>
        {names.map((name) => (
          <Table.Th key={name} ta="right">
            {name}
          </Table.Th>
        ))}
      </Table.Tr>
    </Table.Thead>
  );
}
