/** The log-in in front of a page whose session has ended: a chunk of its own, which most visits never need. */
import { Modal, Stack, Text } from "@mantine/core";
import { useText } from "#panel/web/i18n/text.tsx";
import { LoginForms } from "#panel/web/pages/login/login-forms.tsx";

/** In front of a form of the page. */
const Z_INDEX = 400;

interface SessionDialogProps {
  readonly onEntered: () => Promise<void>;
}

export function SessionDialog({ onEntered }: SessionDialogProps) {
  const { t } = useText();
  return (
    <Modal
      opened
      onClose={() => {}}
      title={t.session.ended}
      withCloseButton={false}
      zIndex={Z_INDEX}
      // What the page shows is for those who are logged in.
      overlayProps={{ backgroundOpacity: 1 }}
    >
      <Stack>
        <Text size="sm">{t.session.endedText}</Text>
        <LoginForms onEntered={onEntered} />
      </Stack>
    </Modal>
  );
}
