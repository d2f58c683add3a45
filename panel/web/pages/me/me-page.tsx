/** The visitor's own account: name, password, second factor. */
import { Alert, Button, Group, PasswordInput, SimpleGrid, Stack, TextInput } from "@mantine/core";
import { useForm } from "@mantine/form";
import { useSuspenseQuery } from "@tanstack/react-query";
import { call } from "#panel/web/api/call.ts";
import { SaveButton } from "#panel/web/forms/save-button.tsx";
import { useText } from "#panel/web/i18n/text.tsx";
import { Facts } from "#panel/web/parts/facts.tsx";
import { PageHead } from "#panel/web/parts/page-head.tsx";
import { ProblemNote } from "#panel/web/parts/page-problem.tsx";
import { Section } from "#panel/web/parts/section.tsx";
import { tell } from "#panel/web/parts/tell.ts";
import { useAction } from "#panel/web/parts/use-action.ts";
import { meQuery, queries } from "#panel/web/queries.ts";
import { SecondFactor } from "./second-factor.tsx";

export function MePage() {
  const { t } = useText();
  const { email, name, kind, role, companyCode, courierCode } = useSuspenseQuery(meQuery).data;
  const owner = companyCode ?? courierCode ?? t.accounts.kinds[kind];
  return (
    <>
      <PageHead title={t.me.title} lead={t.me.lead} />
      <SimpleGrid cols={{ base: 1, md: 2 }} spacing="lg">
        <Section title={t.me.account}>
          <Facts
            rows={[
              [t.login.email, email ?? "–"],
              [t.accounts.worksFor, owner],
              [t.accounts.role, t.accounts.roles[role]],
            ]}
          />
          {email === null ? (
            <Alert color="blue" mt="md">
              {t.me.tokenOnly}
            </Alert>
          ) : (
            <NameForm name={name} />
          )}
        </Section>
        {email !== null && <PasswordSection email={email} />}
        {email !== null && <SecondFactor />}
      </SimpleGrid>
    </>
  );
}

function useOwnChange(onDone: () => void) {
  const { t } = useText();
  return useAction({
    mutationFn: (body: object) => call("patch", "/panel/api/me", { body }),
    async onSuccess() {
      tell(t.common.saved);
      onDone();
      await queries.invalidateQueries({ queryKey: meQuery.queryKey });
    },
  });
}

function NameForm({ name }: { readonly name: string }) {
  const { t } = useText();
  const form = useForm({ initialValues: { name } });
  const changing = useOwnChange(() => {});
  return (
    <form onSubmit={form.onSubmit((values) => changing.mutate(values))}>
      <Stack mt="md">
        <ProblemNote error={changing.error} />
        <TextInput
          label={t.invitation.name}
          autoComplete="name"
          required
          maxLength={100}
          {...form.getInputProps("name")}
        />
        <SaveButton isPending={changing.isPending} />
      </Stack>
    </form>
  );
}

function PasswordSection({ email }: { readonly email: string }) {
  const { t } = useText();
  const form = useForm({
    initialValues: { current: "", next: "", again: "" },
    validate: { again: (again, { next }) => (again === next ? null : t.invitation.notSame) },
  });
  const changing = useOwnChange(() => form.reset());
  return (
    <Section title={t.login.password} lead={t.me.passwordLead}>
      <form
        onSubmit={form.onSubmit(({ current, next }) =>
          changing.mutate({ password: { current, next } }),
        )}
      >
        <Stack>
          <ProblemNote error={changing.error} />
          {/* Password managers need to know whose password it is. */}
          <input type="text" autoComplete="username" value={email} readOnly hidden />
          <PasswordInput
            label={t.me.current}
            autoComplete="current-password"
            required
            {...form.getInputProps("current")}
          />
          <PasswordInput
            label={t.me.next}
            description={t.invitation.passwordHint}
            autoComplete="new-password"
            required
            {...form.getInputProps("next")}
          />
          <PasswordInput
            label={t.invitation.again}
            autoComplete="new-password"
            required
            {...form.getInputProps("again")}
          />
          <Group>
            <Button type="submit" loading={changing.isPending}>
              {t.me.changePassword}
            </Button>
          </Group>
        </Stack>
      </form>
    </Section>
  );
}
