/** The codes of an authenticator app: set up by a first code, removed by another, both with the password. */
import { Anchor, Badge, Button, Group, PasswordInput, Stack, Text, TextInput } from "@mantine/core";
import { useSuspenseQuery } from "@tanstack/react-query";
import { type ReactNode, type SyntheticEvent, useState } from "react";
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
  const [password, setPassword] = useState("");
  const making = useAction({
    mutationFn: () => call("post", "/panel/api/me/totp", { body: { password } }),
  });
  const done = () => {
    setPassword("");
    making.reset();
  };
  const make = (event: SyntheticEvent) => {
    event.preventDefault();
    making.mutate();
  };
  const own = <OwnPassword value={password} onChange={setPassword} />;
  return (
    <Section
      title={t.accounts.secondFactor}
      lead={t.me.factorLead}
      aside={<Badge color={totp ? "teal" : "gray"}>{totp ? t.me.on : t.me.off}</Badge>}
    >
      <Stack>
        <ProblemNote error={making.error} />
        {totp && (
          <CodeForm
            method="delete"
            action={t.me.removeFactor}
            password={password}
            field={own}
            onDone={done}
          />
        )}
        {!totp && !making.data && (
          <form onSubmit={make}>
            <Stack>
              {own}
              <Group>
                <Button type="submit" loading={making.isPending}>
                  {t.me.setUp}
                </Button>
              </Group>
            </Stack>
          </form>
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
            <CodeForm
              method="put"
              action={t.me.activate}
              password={password}
              field={null}
              onDone={done}
            />
          </>
        )}
      </Stack>
    </Section>
  );
}

interface OwnPasswordProps {
  readonly value: string;
  readonly onChange: (value: string) => void;
}

function OwnPassword({ value, onChange }: OwnPasswordProps) {
  const { t } = useText();
  return (
    <PasswordInput
      label={t.login.password}
      autoComplete="current-password"
      required
      value={value}
      onChange={(event) => onChange(event.currentTarget.value)}
    />
  );
}

interface CodeFormProps {
  readonly method: "put" | "delete";
  readonly action: string;
  readonly password: string;
  /** Where the password is typed; null = it was typed before. */
  readonly field: ReactNode;
  readonly onDone: () => void;
}

function CodeForm({ method, action, password, field, onDone }: CodeFormProps) {
  const { t } = useText();
  const [code, setCode] = useState("");
  const sending = useAction({
    mutationFn: () => call(method, "/panel/api/me/totp", { body: { password, code } }),
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
        {field}
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
