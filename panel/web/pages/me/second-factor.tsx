/** The codes of an authenticator app: set up by a first code, removed by another. */
import { Anchor, Badge, Button, Group, Stack, Text, TextInput } from "@mantine/core";
import { useSuspenseQuery } from "@tanstack/react-query";
import { useState } from "react";
import { call } from "#panel/web/api/call.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { ProblemNote } from "#panel/web/parts/page-problem.tsx";
import { Section } from "#panel/web/parts/section.tsx";
import { tell } from "#panel/web/parts/tell.ts";
import { useAction } from "#panel/web/parts/use-action.ts";
import { meQuery, queries } from "#panel/web/queries.ts";

export function SecondFactor() {
  const { t } = useText();
  const { totp } = useSuspenseQuery(meQuery).data;
  const making = useAction({ mutationFn: () => call("post", "/panel/api/me/totp") });
  return (
    <Section
      title={t.accounts.secondFactor}
      lead={t.me.factorLead}
      aside={<Badge color={totp ? "teal" : "gray"}>{totp ? t.me.on : t.me.off}</Badge>}
    >
      <Stack>
        <ProblemNote error={making.error} />
        {totp && <CodeForm method="delete" action={t.me.removeFactor} onDone={making.reset} />}
        {!totp && !making.data && (
          <Group>
            <Button loading={making.isPending} onClick={() => making.mutate()}>
              {t.me.setUp}
            </Button>
          </Group>
        )}
        {!totp && making.data && (
          <>
            <Text size="sm">{t.me.secretText}</Text>
            <TextInput
              label={t.me.secret}
              value={making.data.secret}
              readOnly
              styles={{ input: { fontFamily: "var(--mantine-font-family-monospace)" } }}
            />
            <Anchor href={making.data.otpauthUrl} size="sm">
              {t.me.openApp}
            </Anchor>
            <CodeForm method="put" action={t.me.activate} onDone={making.reset} />
          </>
        )}
      </Stack>
    </Section>
  );
}

interface CodeFormProps {
  readonly method: "put" | "delete";
  readonly action: string;
  readonly onDone: () => void;
}

function CodeForm({ method, action, onDone }: CodeFormProps) {
  const { t } = useText();
  const [code, setCode] = useState("");
  const sending = useAction({
    mutationFn: () => call(method, "/panel/api/me/totp", { body: { code } }),
    async onSuccess() {
      tell(t.common.saved);
      setCode("");
      onDone();
      await queries.invalidateQueries({ queryKey: meQuery.queryKey });
    },
  });
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        sending.mutate();
      }}
    >
      <Stack>
        <ProblemNote error={sending.error} />
        <TextInput
          label={t.login.code}
          inputMode="numeric"
          autoComplete="one-time-code"
          maxLength={6}
          required
          value={code}
          onChange={(event) => setCode(event.currentTarget.value)}
        />
        <Group>
          <Button type="submit" loading={sending.isPending}>
            {action}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
