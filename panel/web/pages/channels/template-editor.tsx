/** A mail template beside the mail that it makes, and a test mail of it. */
import { Code, Group, Select, SimpleGrid, Stack, Text, Textarea, TextInput } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { call } from "#panel/web/api/call.ts";
import type { Channel, Template } from "#panel/web/api/routes.ts";
import { EditForm } from "#panel/web/forms/edit-form.tsx";
import type { DialogEnds } from "#panel/web/forms/editable-list.tsx";
import { GuardedModal } from "#panel/web/forms/guarded-modal.tsx";
import { type Edit, useEdit } from "#panel/web/forms/use-edit.tsx";
import { useText } from "#panel/web/i18n/text.tsx";
import { ProblemNote } from "#panel/web/parts/page-problem.tsx";
import { languageChoices } from "./choices.ts";
import { TemplatePreview } from "./template-preview.tsx";
import { TestMail } from "./test-mail.tsx";

const TYPING_MS = 300;
/** As document 1 has them. */
const SUBJECT_LENGTH = 998;
const BODY_LENGTH = 100_000;

interface Draft extends Omit<Template, "version"> {
  /** Null = a new one, which has no event yet. */
  readonly version: string | null;
}

interface TemplateEditorProps {
  readonly channel: Channel;
  readonly template: Draft;
  readonly mayChange: boolean;
  readonly ends: DialogEnds;
}

export function TemplateEditor({ channel, template, mayChange, ends }: TemplateEditorProps) {
  const { t } = useText();
  const { version, ...initial } = template;
  const edit = useEdit({
    initial,
    version,
    send: ({ event, language, ...whole }, { event: _, language: __, ...touched }, match) =>
      call("put", "/panel/api/channels/:channelCode/templates/:event/:language", {
        params: { channelCode: channel.code, event, language },
        body: version === null ? whole : touched,
        match,
      }),
    onDone: ends.onSaved,
    reread: ends.reread,
  });
  const [typed] = useDebouncedValue(edit.values, TYPING_MS);
  const { subject, body, language } = typed;
  const preview = useQuery({
    queryKey: ["channels", channel.code, "preview", subject, body, language],
    queryFn: ({ signal }) =>
      call("post", "/panel/api/channels/:channelCode/templates/preview", {
        params: { channelCode: channel.code },
        body: { subject, body, language },
        signal,
      }),
    placeholderData: (before) => before,
  });
  return (
    <GuardedModal
      opened
      onClose={edit.isPending ? () => {} : ends.onClose}
      title={version === null ? t.merchants.newTemplate : template.event}
      size="80rem"
      loss={edit.isTouched ? t.common.lossOfDraft : null}
    >
      <SimpleGrid cols={{ base: 1, md: 2 }} spacing="lg" mb="md">
        <EditForm edit={edit} mayChange={mayChange}>
          <TemplateFields edit={edit} isNew={version === null} mayChange={mayChange} />
        </EditForm>
        <Stack>
          <ProblemNote error={preview.error} />
          {preview.data && <TemplatePreview preview={preview.data} />}
          {mayChange && <TestMail channelCode={channel.code} draft={edit.values} />}
        </Stack>
      </SimpleGrid>
      <Placeholders names={preview.data?.placeholders ?? []} />
    </GuardedModal>
  );
}

interface TemplateFieldsProps {
  readonly edit: Edit<Omit<Draft, "version">>;
  readonly isNew: boolean;
  readonly mayChange: boolean;
}

function TemplateFields({ edit: { inputOf }, isNew, mayChange }: TemplateFieldsProps) {
  const { t, language: own } = useText();
  return (
    <>
      {isNew && (
        <>
          <TextInput
            label={t.merchants.event}
            description={t.merchants.eventHint}
            required
            maxLength={25}
            data-autofocus
            {...inputOf("event")}
          />
          <Select
            label={t.merchants.language}
            data={languageChoices(own)}
            searchable
            allowDeselect={false}
            {...inputOf("language")}
          />
        </>
      )}
      <TextInput
        label={t.merchants.subject}
        required
        readOnly={!mayChange}
        maxLength={SUBJECT_LENGTH}
        {...inputOf("subject")}
      />
      <Textarea
        label={t.merchants.body}
        description={t.merchants.bodyHint}
        required
        readOnly={!mayChange}
        autosize
        minRows={10}
        maxRows={24}
        maxLength={BODY_LENGTH}
        styles={{ input: { fontFamily: "var(--mantine-font-family-monospace)" } }}
        {...inputOf("body")}
      />
    </>
  );
}

function Placeholders({ names }: { readonly names: readonly string[] }) {
  const { t } = useText();
  return (
    <Stack gap={4}>
      <Text size="sm" fw={500}>
        {t.merchants.placeholders}
      </Text>
      <Group gap={4}>
        {names.map((name) => (
          <Code key={name}>{`{{${name}}}`}</Code>
        ))}
      </Group>
    </Stack>
  );
}
