/** The two ways in: an account's e-mail address and password, or an operator's token. */
import { Alert, Button, PasswordInput, Stack, Tabs, TextInput } from "@mantine/core";
import { useForm } from "@mantine/form";
import { ApiProblem, send } from "#panel/web/api/call.ts";
import type { Messages } from "#panel/web/i18n/en.ts";
import { problemText } from "#panel/web/i18n/problem-text.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { useAction } from "#panel/web/parts/use-action.ts";
import { ForgottenPassword } from "./forgotten-password.tsx";

interface LoginFormsProps {
  /** The session's cookie is there. */
  readonly onEntered: () => void | Promise<void>;
}

export function LoginForms({ onEntered }: LoginFormsProps) {
  const { t } = useText();
  return (
    <Tabs defaultValue="account" keepMounted={false}>
      <Tabs.List grow mb="md">
        <Tabs.Tab value="account">{t.login.withAccount}</Tabs.Tab>
        <Tabs.Tab value="token">{t.login.withToken}</Tabs.Tab>
      </Tabs.List>
      <Tabs.Panel value="account">
        <AccountForm onEntered={onEntered} />
      </Tabs.Panel>
      <Tabs.Panel value="token">
        <TokenForm onEntered={onEntered} />
      </Tabs.Panel>
    </Tabs>
  );
}

function AccountForm({ onEntered }: LoginFormsProps) {
  const { t } = useText();
  const entering = useLogin(onEntered);
  const needsCode = codeOf(entering.error) === "TOTP_REQUIRED";
  const form = useForm({ initialValues: { email: "", password: "", code: "" } });
  return (
    <form
      onSubmit={form.onSubmit(({ email, password, code }) =>
        entering.mutate({ email, password, ...(code !== "" && { code }) }),
      )}
    >
      <Stack>
        <Fault error={entering.error} />
        <TextInput
          label={t.login.email}
          type="email"
          autoComplete="username"
          required
          {...form.getInputProps("email")}
        />
        <PasswordInput
          label={t.login.password}
          autoComplete="current-password"
          required
          {...form.getInputProps("password")}
        />
        {needsCode && (
          <TextInput
            label={t.login.code}
            inputMode="numeric"
            autoComplete="one-time-code"
            maxLength={6}
            required
            {...form.getInputProps("code")}
          />
        )}
        <Button type="submit" fullWidth loading={entering.isPending}>
          {t.login.submit}
        </Button>
        <ForgottenPassword />
      </Stack>
    </form>
  );
}

function TokenForm({ onEntered }: LoginFormsProps) {
  const { t } = useText();
  const entering = useLogin(onEntered);
  const form = useForm({ initialValues: { token: "" } });
  return (
    <form onSubmit={form.onSubmit((credentials) => entering.mutate(credentials))}>
      <Stack>
        <Fault error={entering.error} />
        <PasswordInput
          label={t.login.token}
          description={t.login.tokenHint}
          autoComplete="current-password"
          required
          {...form.getInputProps("token")}
        />
        <Button type="submit" fullWidth loading={entering.isPending}>
          {t.login.submit}
        </Button>
      </Stack>
    </form>
  );
}

function useLogin(onSuccess: () => void | Promise<void>) {
  return useAction({
    mutationFn: (credentials: object) => send("post", "/panel/api/session", { body: credentials }),
    onSuccess,
  });
}

function Fault({ error }: { readonly error: Error | null }) {
  const { t } = useText();
  if (!error) return null;
  const code = codeOf(error);
  return (
    <Alert color={code === "TOTP_REQUIRED" ? "blue" : "red"} role="alert">
      {faultText(t, code) ?? problemText(t, error)}
    </Alert>
  );
}

function codeOf(error: Error | null): string | null {
  return error instanceof ApiProblem ? error.code : null;
}

function faultText({ login }: Messages, code: string | null): string | null {
  switch (code) {
    case "TOTP_REQUIRED":
      return login.needsCode;
    case "UNKNOWN_OPERATOR":
      return login.wrong;
    case "RATE_LIMITED":
      return login.tooMany;
    default:
      return null;
  }
}
