import { Alert, Code, Stack, Tabs, Text } from "@mantine/core";
import type { Preview } from "#panel/web/api/routes.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { previewDocument } from "./preview-document.ts";
import css from "./template-preview.module.css";

/** The mail as a recipient would read it, in a frame that runs no script and asks no other host. */
export function TemplatePreview({ preview }: { readonly preview: Preview }) {
  const { t } = useText();
  const { subject, html, text, unknown } = preview;
  return (
    <Stack gap="xs">
      <Text size="sm" c="dimmed">
        {t.merchants.previewLead}
      </Text>
      <Text fw={650} className="break" data-testid="subject">
        {subject || "–"}
      </Text>
      {unknown.length > 0 && (
        <Alert color="yellow" role="status">
          {t.merchants.unknownPlaceholders(unknown.join(", "))}
        </Alert>
      )}
      <Tabs defaultValue="html" keepMounted={false}>
        <Tabs.List>
          <Tabs.Tab value="html">HTML</Tabs.Tab>
          <Tabs.Tab value="text">{t.merchants.plainText}</Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="html" pt="xs">
          <iframe
            title={t.merchants.preview}
            sandbox=""
            srcDoc={previewDocument(html)}
            className={css["frame"]}
          />
        </Tabs.Panel>
        <Tabs.Panel value="text" pt="xs">
          <Code block tabIndex={0} aria-label={t.merchants.plainText}>
            {text}
          </Code>
        </Tabs.Panel>
      </Tabs>
    </Stack>
  );
}
