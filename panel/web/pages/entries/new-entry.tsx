/** A button that makes a new courier, company or channel in a dialogue, shows its secrets once, and goes to its page. */
import { Button, TextInput } from "@mantine/core";
import { IconPlus } from "@tabler/icons-react";
import { useNavigate } from "@tanstack/react-router";
import { type ReactNode, useState } from "react";
import { FormDialog } from "#panel/web/forms/form-dialog.tsx";
import type { Edit } from "#panel/web/forms/use-edit.tsx";
import { useText } from "#panel/web/i18n/text.tsx";
import { type Generated, SecretsOnce } from "#panel/web/parts/secrets-once.tsx";
import { queries } from "#panel/web/queries.ts";

interface Made {
  readonly code: string;
  readonly generated: readonly Generated[];
}

interface NewEntryProps<Values extends { readonly code: string }> {
  readonly label: string;
  readonly initial: Values;
  readonly send: (values: Values) => Promise<Made>;
  /** Address of the page of what was made. */
  readonly pageOf: (code: string) => string;
  /** The inputs behind that of the code. */
  readonly children: (inputOf: Edit<Values>["inputOf"]) => ReactNode;
}

export function NewEntry<Values extends { readonly code: string }>(props: NewEntryProps<Values>) {
  const { label, initial, send, pageOf, children } = props;
  const { t } = useText();
  const navigate = useNavigate();
  const [isOpen, setOpen] = useState(false);
  const [made, setMade] = useState<Made | null>(null);
  const leave = ({ code }: Made) => {
    setMade(null);
    void navigate({ to: pageOf(code) });
  };
  return (
    <>
      <Button leftSection={<IconPlus size={16} aria-hidden />} onClick={() => setOpen(true)}>
        {label}
      </Button>
      {isOpen && (
        <FormDialog
          title={label}
          action={t.entries.create}
          initial={initial}
          version={null}
          send={(values) => send(values)}
          onDone={async (answer) => {
            setOpen(false);
            await queries.invalidateQueries();
            if (answer.generated.length > 0) setMade(answer);
            else leave(answer);
          }}
          onClose={() => setOpen(false)}
        >
          {(inputOf) => (
            <>
              <TextInput
                label={t.entries.code}
                description={t.entries.codeHint}
                required
                maxLength={50}
                data-autofocus
                {...inputOf("code")}
              />
              {children(inputOf)}
            </>
          )}
        </FormDialog>
      )}
      <SecretsOnce secrets={made?.generated ?? []} onClose={() => made && leave(made)} />
    </>
  );
}
