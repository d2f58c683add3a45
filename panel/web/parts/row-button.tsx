/** An action of one row of a table. Its accessible name says which row. */
import { Button } from "@mantine/core";

interface RowButtonProps {
  readonly action: string;
  /** What the row is about, such as its code. */
  readonly subject: string;
  readonly onClick: () => void;
}

export function RowButton({ action, subject, onClick }: RowButtonProps) {
  return (
    <Button
      size="compact-xs"
      variant="default"
      aria-label={`${action} ${subject}`}
      onClick={onClick}
    >
      {action}
    </Button>
  );
}
