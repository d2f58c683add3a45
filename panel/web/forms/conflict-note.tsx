/** At a field that somebody else has changed too: the other value, and the choice between both. */
import { Button, Text } from "@mantine/core";
import { useText } from "#panel/web/i18n/text.tsx";

/** Of a value; the whole of it is in the field once it is chosen. */
const SHOWN_CHARACTERS = 80;

interface ConflictNoteProps {
  readonly isMine: boolean;
  readonly mine: unknown;
  readonly theirs: unknown;
  readonly onChoose: (value: unknown) => void;
}

export function ConflictNote({ isMine, mine, theirs, onChoose }: ConflictNoteProps) {
  const { t } = useText();
  const { common } = t;
  const other = isMine ? theirs : mine;
  return (
    <Text span size="xs" c="inherit">
      {isMine ? common.theirs : common.mine} <b className="break">{textOf(other)}</b>{" "}
      <Button size="compact-xs" variant="default" onClick={() => onChoose(other)}>
        {isMine ? common.takeTheirs : common.keepMine}
      </Button>
    </Text>
  );

  function textOf(value: unknown): string {
    if (typeof value === "boolean") return value ? common.yes : common.no;
    if (value === null || value === "") return "–";
    if (Array.isArray(value)) return value.length === 0 ? "–" : cut(value.join(", "));
    return cut(typeof value === "object" ? JSON.stringify(value) : String(value));
  }
}

function cut(text: string): string {
  return text.length <= SHOWN_CHARACTERS ? text : `${text.slice(0, SHOWN_CHARACTERS)}…`;
}
