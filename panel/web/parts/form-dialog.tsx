import { Button, Group, Modal, Stack } from "@mantine/core";
import type { ReactNode, SubmitEventHandler } from "react";
import { ApiProblem } from "#panel/web/api/call.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { ProblemNote } from "./page-problem.tsx";

interface FormDialogProps {
  readonly title: string;
  readonly action: string;
  /** Faults of fields stand at the fields; anything else stands at the top. */
  readonly error: Error | null;
  readonly isPending: boolean;
  readonly onSubmit: SubmitEventHandler<HTMLFormElement>;
  readonly onClose: () => void;
  readonly children: ReactNode;
}

/** A form in a dialogue, with its buttons. */
export function FormDialog(props: FormDialogProps) {
  const { title, action, error, isPending, onSubmit, onClose, children } = props;
  const { t } = useText();
  const isOfFields = error instanceof ApiProblem && error.violations.length > 0;
  return (
    <Modal
      opened
      onClose={isPending ? () => {} : onClose}
      title={title}
      closeButtonProps={{ "aria-label": t.common.close }}
    >
      <form onSubmit={onSubmit}>
        <Stack>
          {!isOfFields && <ProblemNote error={error} />}
          {children}
          <Group justify="end">
            <Button variant="default" onClick={onClose} disabled={isPending}>
              {t.common.cancel}
            </Button>
            <Button type="submit" loading={isPending}>
              {action}
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}
