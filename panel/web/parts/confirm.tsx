import { Button, Group, Modal, Stack, Text } from "@mantine/core";
import type { ReactNode } from "react";
import { useText } from "#panel/web/i18n/text.tsx";

interface ConfirmProps {
  readonly opened: boolean;
  readonly title: string;
  readonly text: ReactNode;
  readonly action: string;
  readonly isPending?: boolean;
  readonly color?: string;
  readonly onConfirm: () => void;
  readonly onClose: () => void;
}

/** Asks before something that cannot be taken back, or that others will notice. */
export function Confirm({
  opened,
  title,
  text,
  action,
  isPending = false,
  color = "red",
  onConfirm,
  onClose,
}: ConfirmProps) {
  const { t } = useText();
  return (
    <Modal
      opened={opened}
      onClose={isPending ? () => {} : onClose}
      title={title}
      closeButtonProps={{ "aria-label": t.common.close }}
    >
      <Stack>
        <Text component="div" size="sm">
          {text}
        </Text>
        <Group justify="end">
          <Button variant="default" onClick={onClose} disabled={isPending}>
            {t.common.cancel}
          </Button>
          <Button color={`${color}.9`} loading={isPending} onClick={onConfirm} data-autofocus>
            {action}
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}
