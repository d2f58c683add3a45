/** JSON of a row, in a dialogue. */
import { Modal } from "@mantine/core";
import { useText } from "#panel/web/i18n/text.tsx";

interface JsonDialogProps {
  readonly title: string;
  readonly isOpen: boolean;
  readonly value: unknown;
  readonly onClose: () => void;
}

export function JsonDialog({ title, isOpen, value, onClose }: JsonDialogProps) {
  const { t } = useText();
  return (
    <Modal
      opened={isOpen}
      onClose={onClose}
      title={title}
      size="lg"
      closeButtonProps={{ "aria-label": t.common.close }}
    >
      <pre className="mono break">{JSON.stringify(value ?? null, null, 2)}</pre>
    </Modal>
  );
}
