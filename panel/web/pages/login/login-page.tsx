/** Log-in: by an account's e-mail address and password, or by an operator's token. */
import {
  Alert,
  Box,
  Button,
  Card,
  Center,
  Group,
  PasswordInput,
  Stack,
  Tabs,
  Text,
  TextInput,
  Title,
} from "@mantine/core";
import { useForm } from "@mantine/form";
import { IconRoute } from "@tabler/icons-react";
import { useMutation } from "@tanstack/react-query";
import { useEffect } from "react";
import { ApiProblem, send } from "#panel/web/api/call.ts";
import type { Messages } from "#panel/web/i18n/en.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { queries } from "#panel/web/queries.ts";
import { ColourMenu, LanguageMenu } from "#panel/web/shell/settings-menu.tsx";
import { ForgottenPassword } from "./forgotten-password.tsx";

export function LoginPage() {
  const { t } = useText();
  useEffect(() => {
    document.title = `${t.login.title} · ${t.app.name}`;
  }, [t]);
  return (
    <Box component="main" className="page-body">
      <Group justify="end" p="sm" gap={4}>
        <LanguageMenu />
        <ColourMenu />
      </Group>
      <Center px="md" pt="8vh" pb="xl">
        <Stack w="100%" maw={400} gap="lg">
          <Stack gap={4} align="center">
            <IconRoute
              size={44}
              stroke={1.6}
              color="var(--mantine-primary-color-filled)"
              aria-hidden
            />
            <Title order={1}>{t.app.name}</Title>
            <Text c="dimmed" ta="center">
              {t.login.lead}
            </Text>
          </Stack>
          <Card shadow="sm">
            <Tabs defaultValue="account" keepMounted={false}>
              <Tabs.List grow mb="md">
                <Tabs.Tab value="account">{t.login.withAccount}</Tabs.Tab>
                <Tabs.Tab value="token">{t.login.withToken}</Tabs.Tab>
              </Tabs.List>
              <Tabs.Panel value="account">
                <AccountForm />
              </Tabs.Panel>
              <Tabs.Panel value="token">
                <TokenForm />
              </Tabs.Panel>
            </Tabs>
          </Card>
        </Stack>
      </Center>
    </Box>
  );
}

function AccountForm() {
  const { t } = useText();
  const entering = useLogin();
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

function TokenForm() {
  const { t } = useText();
  const entering = useLogin();
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

function useLogin() {
  return useMutation({
    mutationFn: (credentials: object) => send("post", "/panel/api/session", { body: credentials }),
    onSuccess() {
      queries.clear();
      const next = new URLSearchParams(location.search).get("next") ?? "/";
      // A path of ours only: anybody can write the link.
      location.assign(/^\/(?![/\\])/.test(next) ? next : "/");
    },
  });
}

function Fault({ error }: { readonly error: Error | null }) {
  const { t } = useText();
  if (!error) return null;
  const code = codeOf(error);
  return (
    <Alert color={code === "TOTP_REQUIRED" ? "blue" : "red"} role="alert">
      {faultText(t, code) ?? error.message}
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
