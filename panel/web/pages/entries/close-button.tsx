/** Closes a courier, company or channel after a question, and opens it again. */
import { Button } from "@mantine/core";
import { useState } from "react";
import { useText } from "#panel/web/i18n/text.tsx";
import { Confirm } from "#panel/web/parts/confirm.tsx";
import { tell, tellProblem } from "#panel/web/parts/tell.ts";
import { useAction } from "#panel/web/parts/use-action.ts";
import { queries } from "#panel/web/queries.ts";

interface CloseButtonProps {
  readonly closedAt: string | null;
  readonly action: string;
  readonly text: string;
  readonly close: () => Promise<unknown>;
  readonly reopen: () => Promise<unknown>;
}

export function CloseButton({ closedAt, action, text, close, reopen }: CloseButtonProps) {
  const { t } = useText();
  const [isAsking, setAsking] = useState(false);
  const isOpen = closedAt === null;
  const switching = useAction({
    mutationFn: isOpen ? close : reopen,
    onError: tellProblem,
    async onSuccess() {
      setAsking(false);
      tell(isOpen ? t.entries.closedNow : t.entries.reopenedNow);
      await queries.invalidateQueries();
    },
  });
  if (!isOpen) {
    return (
      <Button loading={switching.isPending} onClick={() => switching.mutate()}>
        {t.entries.reopen}
      </Button>
    );
  }
  return (
    <>
      <Button variant="default" onClick={() => setAsking(true)}>
        {action}
      </Button>
      <Confirm
        opened={isAsking}
        onClose={() => setAsking(false)}
        title={action}
        text={text}
        action={action}
        isPending={switching.isPending}
        onConfirm={() => switching.mutate()}
      />
    </>
  );
}
