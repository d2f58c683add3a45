/** A mail template beside the mail that it makes, and a test mail of it. */
import {
  Code,
  Group,
  Modal,
  Select,
  SimpleGrid,
  Stack,
  Text,
  Textarea,
  TextInput,
} from "@mantine/core";
import { useForm } from "@mantine/form";
import { useDebouncedValue } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { call } from "#panel/web/api/call.ts";
import type { Channel, Template } from "#panel/web/api/routes.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { faultOf } from "#panel/web/parts/fault-of.ts";
import { ProblemNote } from "#panel/web/parts/page-problem.tsx";
import { SaveButton } from "#panel/web/parts/save-button.tsx";
import { tell } from "#panel/web/parts/tell.ts";
import { useAction } from "#panel/web/parts/use-action.ts";
import { queries } from "#panel/web/queries.ts";
import { languageChoices } from "./choices.ts";
import { TemplatePreview } from "./template-preview.tsx";
import { TestMail } from "./test-mail.tsx";

const TYPING_MS = 300;
/** As document 1 has them. */
const SUBJECT_LENGTH = 998;
const BODY_LENGTH = 100_000;

interface TemplateEditorProps {
  readonly channel: Channel;
  /** A new one has no event yet. */
  readonly template: Template;
  readonly mayChange: boolean;
  readonly onClose: () => void;
}

export function TemplateEditor({ channel, template, mayChange, onClose }: TemplateEditorProps) {
  const { t } = useText();
  const form = useForm({ initialValues: { ...template } });
  const [typed] = useDebouncedValue(form.values, TYPING_MS);
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
  const title = template.event === "" ? t.merchants.newTemplate : template.event;
  return (
    <Modal
      opened
      onClose={onClose}
      title={title}
      size="80rem"
      closeButtonProps={{ "aria-label": t.common.close }}
    >
      <SimpleGrid cols={{ base: 1, md: 2 }} spacing="lg" mb="md">
        <TemplateForm
          channelCode={channel.code}
          form={form}
          isNew={template.event === ""}
          mayChange={mayChange}
          onClose={onClose}
        />
        <Stack>
          <ProblemNote error={preview.error} />
          {preview.data && <TemplatePreview preview={preview.data} />}
          {mayChange && <TestMail channelCode={channel.code} draft={form.values} />}
        </Stack>
      </SimpleGrid>
      <Placeholders names={preview.data?.placeholders ?? []} />
    </Modal>
  );
}

interface TemplateFormProps extends Pick<TemplateEditorProps, "mayChange" | "onClose"> {
  readonly channelCode: string;
  readonly form: ReturnType<typeof useForm<Template>>;
  readonly isNew: boolean;
}

function TemplateForm({ channelCode, form, isNew, mayChange, onClose }: TemplateFormProps) {
  const { t, language: own } = useText();
  const saving = useAction({
    mutationFn: ({ event, language, ...body }: Template) =>
      call("put", "/panel/api/channels/:channelCode/templates/:event/:language", {
        params: { channelCode, event, language },
        body,
      }),
    async onSuccess() {
      tell(t.common.saved);
      onClose();
      await queries.invalidateQueries({ queryKey: ["channels", channelCode, "detail"] });
    },
  });
  const faults = ["event", "language", "subject", "body"].map((path) =>
    faultOf(saving.error, path),
  );
  return (
    <form onSubmit={form.onSubmit((values) => saving.mutate(values))}>
      <Stack>
        {faults.every((one) => one === undefined) && <ProblemNote error={saving.error} />}
        {isNew && (
          <>
            <TextInput
              label={t.merchants.event}
              description={t.merchants.eventHint}
              required
              maxLength={25}
              data-autofocus
              {...form.getInputProps("event")}
              error={faults[0]}
            />
            <Select
              label={t.merchants.language}
              data={languageChoices(own)}
              searchable
              allowDeselect={false}
              {...form.getInputProps("language")}
              error={faults[1]}
            />
          </>
        )}
        <TextInput
          label={t.merchants.subject}
          required
          readOnly={!mayChange}
          maxLength={SUBJECT_LENGTH}
          {...form.getInputProps("subject")}
          error={faults[2]}
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
          {...form.getInputProps("body")}
          error={faults[3]}
        />
        {mayChange && <SaveButton isPending={saving.isPending} />}
      </Stack>
    </form>
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
