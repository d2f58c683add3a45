/** Where the link of an invitation leads: the person chooses a password and is in. */
import {
  Box,
  Button,
  Card,
  Center,
  PasswordInput,
  Stack,
  Text,
  TextInput,
  Title,
} from "@mantine/core";
import { useForm } from "@mantine/form";
import { useQuery } from "@tanstack/react-query";
import { useParams } from "@tanstack/react-router";
import { useEffect } from "react";
import { call, send } from "#panel/web/api/call.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { PagePending } from "#panel/web/parts/page-pending.tsx";
import { ProblemNote } from "#panel/web/parts/page-problem.tsx";
import { useAction } from "#panel/web/parts/use-action.ts";

export function InvitationPage() {
  const { t } = useText();
  const { token = "" } = useParams({ strict: false });
  const { data, error, isPending } = useQuery({
    queryKey: ["invitations", token],
    queryFn: ({ signal }) =>
      call("get", "/panel/api/invitations/:token", { params: { token }, signal }),
    retry: false,
  });
  useEffect(() => {
    document.title = `${t.invitation.title} · ${t.app.name}`;
  }, [t]);
  return (
    <Box component="main" className="page-body">
      <Center px="md" pt="10vh" pb="xl">
        <Stack w="100%" maw={420}>
          <Title order={1} size="h2" ta="center">
            {t.invitation.title}
          </Title>
          {isPending && <PagePending />}
          <ProblemNote error={error} />
          {data && (
            <Card shadow="sm">
              <Text size="sm" mb="md">
                {t.invitation.lead}
              </Text>
              <AcceptForm token={token} name={data.name} email={data.email} needsCode={data.totp} />
            </Card>
          )}
        </Stack>
      </Center>
    </Box>
  );
}

interface AcceptFormProps {
  readonly token: string;
  readonly name: string;
  /** The first admin has none yet. */
  readonly email: string | null;
  readonly needsCode: boolean;
}

function AcceptForm({ token, name, email, needsCode }: AcceptFormProps) {
  const { t } = useText();
  const accepting = useAction({
    mutationFn: (body: object) =>
      send("post", "/panel/api/invitations/:token", { params: { token }, body }),
    onSuccess: () => location.assign("/"),
  });
  const form = useForm({
    initialValues: { name, email: email ?? "", password: "", again: "", code: "" },
    validate: {
      again: (again, { password }) => (again === password ? null : t.invitation.notSame),
    },
  });
  const submit = form.onSubmit(({ name: ownName, password, email: given, code }) =>
    accepting.mutate({
      name: ownName,
      password,
      ...(email === null && { email: given }),
      ...(needsCode && { code }),
    }),
  );
  return (
    <form onSubmit={submit}>
      <Stack>
        <ProblemNote error={accepting.error} />
        <TextInput
          label={t.login.email}
          type="email"
          autoComplete="username"
          required
          readOnly={email !== null}
          {...form.getInputProps("email")}
        />
        <TextInput
          label={t.invitation.name}
          autoComplete="name"
          required
          {...form.getInputProps("name")}
        />
        <PasswordInput
          label={t.login.password}
          description={t.invitation.passwordHint}
          autoComplete="new-password"
          required
          {...form.getInputProps("password")}
        />
        <PasswordInput
          label={t.invitation.again}
          autoComplete="new-password"
          required
          {...form.getInputProps("again")}
        />
        {needsCode && (
          <TextInput
            label={t.login.code}
            inputMode="numeric"
            autoComplete="one-time-code"
            required
            {...form.getInputProps("code")}
          />
        )}
        <Button type="submit" loading={accepting.isPending}>
          {t.invitation.accept}
        </Button>
      </Stack>
    </form>
  );
}
