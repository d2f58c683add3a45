import { Button, Group, Modal, Stack } from "@mantine/core";
import { useForm } from "@mantine/form";
import type { ReactNode } from "react";
import { ApiProblem } from "#panel/web/api/call.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { faultOf } from "./fault-of.ts";
import { ProblemNote } from "./page-problem.tsx";
import { useAction } from "./use-action.ts";

/** What an input of the form needs: its value, and what the server says is wrong with it, there named `path`. */
export type InputOf<Values> = (
  name: keyof Values & string,
  options?: { readonly type?: "input" | "checkbox"; readonly path?: string },
) => object;

interface FormDialogProps<Values, Answer> {
  readonly title: string;
  readonly action: string;
  readonly initial: Values;
  readonly send: (values: Values) => Promise<Answer>;
  readonly onDone: (answer: Answer) => unknown;
  readonly onClose: () => void;
  readonly children: (inputOf: InputOf<Values>, values: Values) => ReactNode;
}

/** A form in a dialogue, with its buttons. Faults of fields stand at the fields; anything else stands at the top. */
export function FormDialog<Values extends object, Answer>(props: FormDialogProps<Values, Answer>) {
  const { title, action, initial, onClose, children } = props;
  const { t } = useText();
  const form = useForm<Values>({ initialValues: initial });
  const { error, isPending, mutate } = useAction({
    mutationFn: props.send,
    onSuccess: props.onDone,
  });
  const inputOf: InputOf<Values> = (name, { type = "input", path = name } = {}) => ({
    ...form.getInputProps(name, { type }),
    error: faultOf(error, path),
  });
  const isOfFields = error instanceof ApiProblem && error.violations.length > 0;
  return (
    <Modal
      opened
      onClose={isPending ? () => {} : onClose}
      title={title}
      closeButtonProps={{ "aria-label": t.common.close }}
    >
      <form onSubmit={form.onSubmit((values) => mutate(values))}>
        <Stack>
          {!isOfFields && <ProblemNote error={error} />}
          {children(inputOf, form.values)}
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
