/** One dead letter: the whole entry and why it failed; redriving it, or discarding it with a reason. */
import { Button, Code, Drawer, Group, Modal, Stack, Textarea, Title } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { IconRefresh, IconTrash } from "@tabler/icons-react";
import { useState } from "react";
import { call } from "#panel/web/api/call.ts";
import type { DeadLetter } from "#panel/web/api/routes.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { Facts } from "#panel/web/parts/facts.tsx";
import { Instant } from "#panel/web/parts/instant.tsx";
import { ProblemNote } from "#panel/web/parts/page-problem.tsx";
import { tell } from "#panel/web/parts/tell.ts";
import { useAction } from "#panel/web/parts/use-action.ts";
import { queries } from "#panel/web/queries.ts";

export const DEAD_LETTERS = ["dead-letters"];

/** As the call takes it. */
const REASON_LENGTH = 500;

interface DeadLetterDrawerProps {
  /** Null = closed. */
  readonly letter: DeadLetter | null;
  readonly mayChange: boolean;
  readonly onClose: () => void;
}

export function DeadLetterDrawer({ letter, mayChange, onClose }: DeadLetterDrawerProps) {
  const { t } = useText();
  return (
    <Drawer
      opened={letter !== null}
      onClose={onClose}
      position="right"
      size="lg"
      title={t.deadLetters.one}
      closeButtonProps={{ "aria-label": t.common.close }}
    >
      {letter && (
        <Stack>
          <Facts
            rows={[
              [t.deadLetters.parkedAt, <Instant key="at" at={letter.parkedAt} precise />],
              [t.deadLetters.group, letter.group],
              [t.deadLetters.log, `${letter.log} ${letter.entryId}`],
              [t.deadLetters.reason, letter.reason],
            ]}
          />
          {mayChange && <LetterActions key={letter.id} letter={letter} onDone={onClose} />}
          <Title order={3} size="h5">
            {t.deadLetters.entry}
          </Title>
          <Code block tabIndex={0} aria-label={t.deadLetters.entry}>
            {Object.entries(letter.fields)
              .map(([name, value]) => `${name}: ${pretty(value)}`)
              .join("\n")}
          </Code>
        </Stack>
      )}
    </Drawer>
  );
}

interface LetterActionsProps {
  readonly letter: DeadLetter;
  readonly onDone: () => void;
}

function LetterActions({ letter: { id }, onDone }: LetterActionsProps) {
  const { t } = useText();
  const [isAsking, { open, close }] = useDisclosure(false);
  const redriving = useAction({
    mutationFn: () => call("post", "/panel/api/dead-letters/:id/redrive", { params: { id } }),
    async onSuccess() {
      tell(t.deadLetters.redrivenOne);
      onDone();
      await queries.invalidateQueries({ queryKey: DEAD_LETTERS });
    },
  });
  return (
    <>
      <ProblemNote error={redriving.error} />
      <Group gap="xs">
        <Button
          size="xs"
          leftSection={<IconRefresh size={16} aria-hidden />}
          loading={redriving.isPending}
          onClick={() => redriving.mutate()}
        >
          {t.deadLetters.redrive}
        </Button>
        <Button
          size="xs"
          variant="default"
          leftSection={<IconTrash size={16} aria-hidden />}
          onClick={open}
        >
          {t.deadLetters.discard}
        </Button>
      </Group>
      {isAsking && <DiscardDialog id={id} onClose={close} onDone={onDone} />}
    </>
  );
}

interface DiscardDialogProps {
  readonly id: string;
  readonly onClose: () => void;
  readonly onDone: () => void;
}

function DiscardDialog({ id, onClose, onDone }: DiscardDialogProps) {
  const { t } = useText();
  const [reason, setReason] = useState("");
  const discarding = useAction({
    mutationFn: () =>
      call("delete", "/panel/api/dead-letters/:id", {
        params: { id },
        body: { reason: reason.trim() },
      }),
    async onSuccess() {
      tell(t.deadLetters.discarded);
      onDone();
      await queries.invalidateQueries({ queryKey: DEAD_LETTERS });
    },
  });
  return (
    <Modal
      opened
      onClose={onClose}
      title={t.deadLetters.discard}
      closeButtonProps={{ "aria-label": t.common.close }}
    >
      <form
        onSubmit={(event) => {
          event.preventDefault();
          discarding.mutate();
        }}
      >
        <Stack>
          <Textarea
            label={t.deadLetters.discardReason}
            description={t.deadLetters.discardText}
            value={reason}
            onChange={(event) => setReason(event.currentTarget.value)}
            maxLength={REASON_LENGTH}
            autosize
            minRows={2}
            required
            data-autofocus
          />
          <ProblemNote error={discarding.error} />
          <Group justify="end">
            <Button variant="default" onClick={onClose}>
              {t.common.cancel}
            </Button>
            <Button
              type="submit"
              color="red.9"
              disabled={reason.trim() === ""}
              loading={discarding.isPending}
            >
              {t.deadLetters.discard}
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}

function pretty(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
