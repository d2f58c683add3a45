/** Beside the heading of a section: makes one more of what it lists. */
import { Button } from "@mantine/core";
import { IconPlus } from "@tabler/icons-react";

interface AddButtonProps {
  readonly label: string;
  readonly isPending?: boolean;
  readonly onClick: () => void;
}

export function AddButton({ label, isPending = false, onClick }: AddButtonProps) {
  return (
    <Button
      size="xs"
      leftSection={<IconPlus size={14} aria-hidden />}
      loading={isPending}
      onClick={onClick}
    >
      {label}
    </Button>
  );
}
