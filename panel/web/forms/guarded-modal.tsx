/** A dialogue with something in it that closing it would lose: Escape, its cross and a click outside ask first. */
import { Button, Group, Modal, type ModalProps, Stack, Text } from "@mantine/core";
import { useState } from "react";
import { useText } from "#panel/web/i18n/text.tsx";

/** What is asked, and what the two answers are called. */
export interface LossWords {
  readonly title: string;
  readonly text: string;
  readonly stay: string;
  readonly leave: string;
}

interface GuardedModalProps extends ModalProps {
  /** Null = nothing would be lost. */
  readonly loss: LossWords | null;
}

export function GuardedModal({ loss, onClose, children, ...modal }: GuardedModalProps) {
  const { t } = useText();
  const [isAsking, setIsAsking] = useState(false);
  const stay = () => setIsAsking(false);
  const leave = () => {
    stay();
    onClose();
  };
  // The question has Escape and the outside for itself.
  const isQuiet = !isAsking;
  return (
    <>
      <Modal
        closeButtonProps={{ "aria-label": t.common.close }}
        {...modal}
        onClose={() => (loss ? setIsAsking(true) : onClose())}
        closeOnEscape={isQuiet}
        closeOnClickOutside={isQuiet}
        trapFocus={isQuiet}
      >
        {children}
      </Modal>
      {/* It begins to listen once it is shown: the Escape that asks for it must not close it too. */}
      {loss && modal.opened && isAsking && (
        <Modal
          opened
          onClose={stay}
          title={loss.title}
          closeButtonProps={{ "aria-label": t.common.close }}
          zIndex={300}
        >
          <Stack>
            <Text size="sm">{loss.text}</Text>
            <Group justify="end">
              <Button color="red.9" onClick={leave}>
                {loss.leave}
              </Button>
              <Button variant="default" onClick={stay} data-autofocus>
                {loss.stay}
              </Button>
            </Group>
          </Stack>
        </Modal>
      )}
    </>
  );
}
