/** Events that a courier dated after we received them: how many, and the latest ones to look for. */
import { List, Text } from "@mantine/core";
import type { CourierQuality } from "#analytics/insights.ts";
import { useFormat } from "#panel/web/i18n/format.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { Instant } from "#panel/web/parts/instant.tsx";
import { Section } from "#panel/web/parts/section.tsx";

type Ahead = Pick<CourierQuality, "aheadEvents" | "inFuture">;

/** Nothing where no event is ahead. */
export function AheadEvents({ aheadEvents, inFuture }: Ahead) {
  const { t } = useText();
  const f = useFormat();
  if (aheadEvents.length === 0 && inFuture === 0) return null;
  return (
    <Section title={t.sharedQuality.ahead} lead={t.sharedQuality.aheadLead}>
      {inFuture > 0 && <Text>{t.sharedQuality.refusedAhead(f.whole(inFuture))}</Text>}
      <List>
        {aheadEvents.map(({ messageId, messageIndex, code, occurredAtMs, receivedAtMs }) => (
          <List.Item key={`${messageId} ${messageIndex} ${occurredAtMs} ${receivedAtMs}`}>
            <span className="mono">{code}</span>: <Instant at={isoOf(occurredAtMs)} />,{" "}
            {t.sharedQuality.receivedAt} <Instant at={isoOf(receivedAtMs)} />
            {messageId !== "" && (
              <>
                {" "}
                (<span className="mono">{`${messageId} [${messageIndex}]`}</span>)
              </>
            )}
          </List.Item>
        ))}
      </List>
    </Section>
  );
}

function isoOf(ms: number): string {
  return new Date(ms).toISOString();
}
