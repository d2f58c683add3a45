/** A form with its buttons. A field's error is shown at the field; other errors, and a conflict with somebody else's change, at the top. */
import { Alert, Button, Group, Stack, Text } from "@mantine/core";
import { IconUsers } from "@tabler/icons-react";
import type { ReactNode } from "react";
import { ApiProblem } from "#panel/web/api/call.ts";
import { useFormat } from "#panel/web/i18n/format.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { ProblemNote } from "#panel/web/parts/page-problem.tsx";
import type { Conflict, Edit } from "./use-edit.tsx";

interface EditFormProps<Values> {
  readonly edit: Edit<Values>;
  /** Default: Save. */
  readonly action?: string;
  /** Absent: the visitor may only read. */
  readonly mayChange?: boolean;
  readonly onCancel?: () => void;
  readonly children: ReactNode;
}

export function EditForm<Values>(props: EditFormProps<Values>) {
  const { edit, action, mayChange = true, onCancel, children } = props;
  const { t } = useText();
  const { error, conflict, isPending, isNew, isTouched } = edit;
  const isOfFields = error instanceof ApiProblem && error.violations.length > 0;
  return (
    <form onSubmit={edit.submit}>
      <Stack>
        {conflict ? <ConflictAlert conflict={conflict} /> : null}
        {!isOfFields && <ProblemNote error={error} />}
        {children}
        {mayChange && (
          <Group justify={onCancel ? "end" : "start"}>
            {onCancel && (
              <Button variant="default" onClick={onCancel} disabled={isPending}>
                {t.common.cancel}
              </Button>
            )}
            <Button type="submit" loading={isPending} disabled={!isNew && !isTouched}>
              {action ?? t.common.save}
            </Button>
          </Group>
        )}
      </Stack>
    </form>
  );
}

function ConflictAlert<Values>({ conflict: { by, at } }: { readonly conflict: Conflict<Values> }) {
  const { t } = useText();
  const f = useFormat();
  const names: Readonly<Record<string, string>> = t.common.changers;
  return (
    <Alert
      color="yellow"
      icon={<IconUsers aria-hidden />}
      role="alert"
      title={t.common.conflictTitle}
    >
      <Text size="sm">
        {t.common.conflictText(names[by] ?? (by || t.common.somebody), f.second(at))}
      </Text>
    </Alert>
  );
}
