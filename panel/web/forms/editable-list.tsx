/** A section that lists things: adds one, changes one in a dialogue, and removes one after a question. */
import { Button, Group, Table, Text } from "@mantine/core";
import { IconPlus } from "@tabler/icons-react";
import type { QueryKey } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { useText } from "#panel/web/i18n/text.tsx";
import { Confirm } from "#panel/web/parts/confirm.tsx";
import { RowButton } from "#panel/web/parts/row-button.tsx";
import { ScrollTable } from "#panel/web/parts/scroll-table.tsx";
import { SecretOnce } from "#panel/web/parts/secret-once.tsx";
import { Section } from "#panel/web/parts/section.tsx";
import { tell, tellProblem } from "#panel/web/parts/tell.ts";
import { useAction } from "#panel/web/parts/use-action.ts";
import { queries } from "#panel/web/queries.ts";

/** Where a dialogue says how it ended. */
export interface DialogEnds {
  readonly onClose: () => void;
  readonly onSaved: () => Promise<void>;
  /** Has the rows read again: somebody else has changed one. */
  readonly reread: () => Promise<void>;
  /** Shows what the server says only once. */
  readonly onIssued: (secret: string) => Promise<void>;
}

interface Removal<Row> {
  readonly action: string;
  readonly isFor?: (row: Row) => boolean;
  readonly text: (name: string, row: Row) => string;
  readonly call: (row: Row) => Promise<unknown>;
  readonly done?: string;
}

interface EditableListProps<Row> {
  readonly title: string;
  readonly lead: string;
  readonly rows: readonly Row[];
  /** The heading and the cell of each. The first names the row. A table without headings has no head. */
  readonly columns: ReadonlyArray<readonly [heading: string, cell: (row: Row) => ReactNode]>;
  /** The name of a row in the labels of its buttons; unique. */
  readonly nameOf: (row: Row) => string;
  readonly minWidth: number;
  readonly emptyText?: string;
  /** Of what is asked for again after each change. */
  readonly queryKey: QueryKey;
  // What follows is false or missing where the visitor may not do it.
  /** Opens the dialogue, or issues a secret at once. */
  readonly add?: false | { readonly label: string; readonly issue?: () => Promise<string> };
  readonly change?: false | string;
  readonly removal?: false | Removal<Row>;
  /** Null = of a new one. */
  readonly dialogOf?: (row: Row | null, ends: DialogEnds) => ReactNode;
  readonly secretTitle?: string;
  readonly children?: ReactNode;
}

export function EditableList<Row>(props: EditableListProps<Row>) {
  const { title, lead, rows, queryKey, nameOf, add, removal, emptyText } = props;
  const { secretTitle = title } = props;
  const [opened, setOpened] = useState<{ readonly row: Row | null } | null>(null);
  const [secret, setSecret] = useState<string | null>(null);
  const [removed, setRemoved] = useState<Row | null>(null);
  const { t } = useText();
  const onClose = () => setOpened(null);
  const reread = () => queries.invalidateQueries({ queryKey });
  const onIssued = (made: string) => {
    onClose();
    setSecret(made);
    return reread();
  };
  const onSaved = () => {
    onClose();
    tell(t.common.saved);
    return reread();
  };
  const issue = add ? add.issue : undefined;
  const issuing = useAction({
    mutationFn: async () => issue?.() ?? "",
    onError: tellProblem,
    onSuccess: onIssued,
  });
  // As it is now: it may have been changed while its dialogue is open.
  const shown = opened?.row ?? null;
  const row = rows.find((one) => shown !== null && nameOf(one) === nameOf(shown)) ?? shown;
  const aside = add && (
    <Button
      size="xs"
      leftSection={<IconPlus size={14} aria-hidden />}
      loading={issuing.isPending}
      onClick={() => (issue ? issuing.mutate() : setOpened({ row: null }))}
    >
      {add.label}
    </Button>
  );
  return (
    <Section title={title} lead={lead} aside={aside}>
      {props.children}
      {rows.length === 0 && emptyText !== undefined ? (
        <Text size="sm" c="dimmed">
          {emptyText}
        </Text>
      ) : (
        <Rows list={props} onChange={(row) => setOpened({ row })} onRemove={setRemoved} />
      )}
      {opened && props.dialogOf?.(row, { onClose, onSaved, onIssued, reread })}
      <SecretOnce title={secretTitle} secret={secret} onClose={() => setSecret(null)} />
      {removal && (
        <Remove list={props} removal={removal} row={removed} onClose={() => setRemoved(null)} />
      )}
    </Section>
  );
}

interface RowsProps<Row> {
  readonly list: EditableListProps<Row>;
  readonly onChange: (row: Row) => void;
  readonly onRemove: (row: Row) => void;
}

function Rows<Row>({ list, onChange, onRemove }: RowsProps<Row>) {
  const { title, rows, columns, nameOf, minWidth, change, removal } = list;
  const [, ...others] = columns;
  const first = columns[0]?.[1] ?? nameOf;
  const lastHeading = removal ? removal.action : change;
  return (
    <ScrollTable label={title} minWidth={minWidth}>
      {columns.some(([heading]) => heading !== "") && (
        <Table.Thead>
          <Table.Tr>
            {columns.map(([heading]) => (
              <Table.Th key={heading}>{heading}</Table.Th>
            ))}
            {lastHeading && <Table.Th aria-label={lastHeading} />}
          </Table.Tr>
        </Table.Thead>
      )}
      <Table.Tbody>
        {rows.map((row) => (
          <Table.Tr key={nameOf(row)}>
            <Table.Th scope="row" className="mono">
              {first(row)}
            </Table.Th>
            {others.map(([heading, cell]) => (
              <Table.Td key={heading}>{cell(row)}</Table.Td>
            ))}
            {lastHeading && (
              <Table.Td>
                <Group gap="xs" justify="end" wrap="nowrap">
                  {change && (
                    <RowButton
                      action={change}
                      subject={nameOf(row)}
                      onClick={() => onChange(row)}
                    />
                  )}
                  {removal && (removal.isFor?.(row) ?? true) && (
                    <RowButton
                      action={removal.action}
                      subject={nameOf(row)}
                      onClick={() => onRemove(row)}
                    />
                  )}
                </Group>
              </Table.Td>
            )}
          </Table.Tr>
        ))}
      </Table.Tbody>
    </ScrollTable>
  );
}

interface RemoveProps<Row> {
  readonly list: EditableListProps<Row>;
  readonly removal: Removal<Row>;
  readonly row: Row | null;
  readonly onClose: () => void;
}

function Remove<Row>({ list, removal, row, onClose }: RemoveProps<Row>) {
  const { action, text, call, done } = removal;
  const removing = useAction({
    mutationFn: call,
    onError: tellProblem,
    async onSuccess() {
      onClose();
      if (done !== undefined) tell(done);
      await queries.invalidateQueries({ queryKey: list.queryKey });
    },
  });
  return (
    <Confirm
      opened={row !== null}
      onClose={onClose}
      title={action}
      text={row === null ? "" : text(list.nameOf(row), row)}
      action={action}
      isPending={removing.isPending}
      onConfirm={() => row !== null && removing.mutate(row)}
    />
  );
}
