import type { Endpoint } from "#panel/web/api/routes.ts";
import { useFormat } from "#panel/web/i18n/format.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { Facts } from "#panel/web/parts/facts.tsx";
import { Instant } from "#panel/web/parts/instant.tsx";
import { Section } from "#panel/web/parts/section.tsx";

export function EndpointSettings({ endpoint }: { readonly endpoint: Endpoint }) {
  const { t } = useText();
  const f = useFormat();
  const words = t.webhooks.settingWords;
  const { statuses, include } = endpoint;
  return (
    <Section title={t.webhooks.settings}>
      <Facts
        rows={[
          [t.webhooks.channel, endpoint.channel],
          [words.description.label, endpoint.description || "–"],
          [words.trigger.label, t.webhooks.triggers[endpoint.trigger]],
          [
            words.statuses.label,
            statuses.length === 0
              ? t.common.all
              : statuses.map((one) => t.statuses[one]).join(", "),
          ],
          [words.include.label, include.includes("consignee") ? t.common.yes : t.common.no],
          [words.standardWebhooks.label, endpoint.standardWebhooks ? t.common.yes : t.common.no],
          [words.bodyFormat.label, t.webhooks.bodyFormats[endpoint.bodyFormat]],
          [words.maxConcurrency.label, f.whole(endpoint.maxConcurrency)],
          [
            words.maxPerSecond.label,
            endpoint.maxPerSecond === null ? t.webhooks.noLimit : f.decimal(endpoint.maxPerSecond),
          ],
          [words.headers.label, Object.keys(endpoint.headers).join(", ") || "–"],
          [t.webhooks.alertEmail, endpoint.alertEmail],
          [t.webhooks.createdAt, <Instant key="at" at={endpoint.createdAt} precise />],
          [
            t.webhooks.previousSecret,
            <Instant key="until" at={endpoint.previousSecretUntil} precise />,
          ],
        ]}
      />
    </Section>
  );
}
