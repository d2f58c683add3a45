/** Why a courier's events were INVALID, and how many. */
import { List } from "@mantine/core";
import type { CourierQuality } from "#analytics/insights.ts";
import { useFormat } from "#panel/web/i18n/format.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { Section } from "#panel/web/parts/section.tsx";

/** Nothing where no rule is broken. */
export function BrokenRules({ rules }: { readonly rules: CourierQuality["brokenRules"] }) {
  const { t } = useText();
  const f = useFormat();
  if (rules.length === 0) return null;
  return (
    <Section title={t.sharedQuality.broken} lead={t.sharedQuality.brokenLead}>
      <List>
        {rules.map(({ rule, events }) => (
          <List.Item key={rule}>
            <span className="mono">{rule}</span>: {f.whole(events)}
          </List.Item>
        ))}
      </List>
    </Section>
  );
}
