/** Secrets that a call has generated, which the server does not show again. */
import { Alert, Button, CopyButton, Group, Stack, TextInput } from "@mantine/core";
import { IconKey } from "@tabler/icons-react";
import { GuardedModal } from "#panel/web/forms/guarded-modal.tsx";
import { useText } from "#panel/web/i18n/text.tsx";

export interface Generated {
  readonly owner: string;
  readonly secret: string;
}

interface SecretsOnceProps {
  readonly secrets: readonly Generated[];
  readonly onClose: () => void;
}

export function SecretsOnce({ secrets, onClose }: SecretsOnceProps) {
  const { t } = useText();
  return (
    <GuardedModal
      opened={secrets.length > 0}
      onClose={onClose}
      title={t.entries.secrets}
      size="lg"
      loss={t.common.lossOfSecret}
    >
      <Stack>
        <Alert color="yellow" icon={<IconKey aria-hidden />} title={t.common.onceTitle}>
          {t.common.onceText}
        </Alert>
        {secrets.map(({ owner, secret }) => (
          <Group key={owner} align="end" wrap="nowrap">
            <TextInput label={owner} value={secret} readOnly flex={1} className="mono" />
            <CopyButton value={secret}>
              {({ copied, copy }) => (
                <Button variant="default" onClick={copy} aria-label={`${t.common.copy} ${owner}`}>
                  {copied ? t.common.copied : t.common.copy}
                </Button>
              )}
            </CopyButton>
          </Group>
        ))}
        <Group justify="end">
          <Button onClick={onClose}>{t.common.iHaveCopied}</Button>
        </Group>
      </Stack>
    </GuardedModal>
  );
}
