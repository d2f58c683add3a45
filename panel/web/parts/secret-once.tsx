import { Alert, Button, CopyButton, Group, Stack, Text, TextInput } from "@mantine/core";
import { IconCheck, IconCopy, IconKey } from "@tabler/icons-react";
import { GuardedModal } from "#panel/web/forms/guarded-modal.tsx";
import { useText } from "#panel/web/i18n/text.tsx";

interface SecretOnceProps {
  readonly title: string;
  /** Null = nothing to be shown. */
  readonly secret: string | null;
  readonly onClose: () => void;
}

/** A secret that the server does not show again. */
export function SecretOnce({ title, secret, onClose }: SecretOnceProps) {
  const { t } = useText();
  return (
    <GuardedModal
      opened={secret !== null}
      onClose={onClose}
      title={title}
      size="lg"
      loss={t.common.lossOfSecret}
    >
      <Stack>
        <Alert color="yellow" icon={<IconKey aria-hidden />} title={t.common.onceTitle}>
          {t.common.onceText}
        </Alert>
        <TextInput
          label={title}
          value={secret ?? ""}
          readOnly
          styles={{ input: { fontFamily: "var(--mantine-font-family-monospace)" } }}
        />
        <Group justify="end">
          <CopyButton value={secret ?? ""}>
            {({ copied, copy }) => (
              <Button
                variant="default"
                onClick={copy}
                leftSection={
                  copied ? <IconCheck size={16} aria-hidden /> : <IconCopy size={16} aria-hidden />
                }
              >
                <Text span size="sm" aria-live="polite">
                  {copied ? t.common.copied : t.common.copy}
                </Text>
              </Button>
            )}
          </CopyButton>
          <Button onClick={onClose}>{t.common.iHaveCopied}</Button>
        </Group>
      </Stack>
    </GuardedModal>
  );
}
