/** What somebody should look at, the gravest first, each with its page of the documents. */
import { Anchor, Badge, Group, Stack, Text } from "@mantine/core";
import { IconAlertOctagon, IconAlertTriangle, IconCircleCheck } from "@tabler/icons-react";
import { Link } from "@tanstack/react-router";
import type { Overview } from "#panel/web/api/routes.ts";
import type { Messages } from "#panel/web/i18n/en.ts";
import { useFormat } from "#panel/web/i18n/format.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { Instant } from "#panel/web/parts/instant.tsx";
import { Section } from "#panel/web/parts/section.tsx";

/** Before the courier's code. */
const SILENT = "COURIER_SILENT_";

type Alarm = Overview["alarms"][number];

export function AlarmList({ overview }: { readonly overview: Overview }) {
  const { t } = useText();
  const { alarms } = overview;
  return (
    <Section
      title={t.overview.alarms}
      aside={alarms.length > 0 && <Badge color={colourOf(alarms)}>{alarms.length}</Badge>}
    >
      {alarms.length === 0 ? (
        <Group gap="xs" wrap="nowrap">
          <IconCircleCheck size={20} aria-hidden color="var(--mantine-color-teal-light-color)" />
          <Text size="sm">{t.overview.noAlarms}</Text>
        </Group>
      ) : (
        <Stack gap="sm" role="list">
          {alarms.map((alarm) => (
            <AlarmLine key={alarm.code} alarm={alarm} overview={overview} />
          ))}
        </Stack>
      )}
    </Section>
  );
}

interface AlarmLineProps {
  readonly alarm: Alarm;
  readonly overview: Overview;
}

function AlarmLine({ alarm, overview }: AlarmLineProps) {
  const { t } = useText();
  const f = useFormat();
  const { severity, since, docs, page } = alarm;
  const Icon = severity === "critical" ? IconAlertOctagon : IconAlertTriangle;
  const colour = severity === "critical" ? "red" : "orange";
  const seconds = Math.max(0, (Date.parse(overview.at) - Date.parse(since)) / 1_000);
  return (
    <Group role="listitem" gap="sm" wrap="nowrap" align="start">
      <Icon
        size={20}
        aria-hidden
        color={`var(--mantine-color-${colour}-light-color)`}
        style={{ flex: "none" }}
      />
      <Stack gap={2} flex="1 1 0" miw={0}>
        <Group gap="xs">
          <Badge size="sm" color={colour}>
            {t.overview.severities[severity]}
          </Badge>
          <Text size="sm" fw={500}>
            {alarmText(t, alarm, overview, f)}
          </Text>
        </Group>
        <Text size="xs" c="dimmed">
          {t.overview.alarmSince} <Instant at={since} /> ({f.duration(Math.round(seconds))}) ·{" "}
          <Anchor component={Link} to={page} size="xs">
            {t.overview.alarmPage}
          </Anchor>{" "}
          ·{" "}
          <Anchor href={documentOf(docs)} size="xs">
            {t.overview.alarmDocs}
          </Anchor>
        </Text>
      </Stack>
    </Group>
  );
}

function colourOf(alarms: readonly Alarm[]): string {
  return alarms.some(({ severity }) => severity === "critical") ? "red" : "orange";
}

/** The visitor's words for what this version knows; the server's for the rest. */
function alarmText(
  { overview: words }: Messages,
  { code, text }: Alarm,
  { lag, queues, webhooks, stores }: Overview,
  f: ReturnType<typeof useFormat>,
): string {
  const { alarmTexts } = words;
  const late = lag.find(({ group }) => code === `LAG_${group.toUpperCase()}`);
  if (late) return alarmTexts.lag(late.group, f.duration(late.seconds), f.whole(late.entries));
  if (code.startsWith(SILENT)) return alarmTexts.silent(code.slice(SILENT.length));
  switch (code) {
    case "CLICKHOUSE_UNAVAILABLE":
      return alarmTexts.clickhouse;
    case "REDIS_PART_AWAY":
      return alarmTexts.shardUnavailable(stores.redis.away.join(", "));
    case "REPLICAS_MISSING":
      return alarmTexts.replicas(
        stores.redis.replicasMissing
          .map(({ node, replicas, wanted }) => `${node} (${f.whole(replicas)}/${f.whole(wanted)})`)
          .join(", "),
      );
    case "LEDGER_DIFFERENCE":
      return alarmTexts.ledger;
    case "DEAD_LETTERS":
      return alarmTexts.deadLetters(f.whole(queues.deadLetters));
    case "WEBHOOKS_LATE":
      return alarmTexts.webhooksLate(f.duration(webhooks.oldestWaitingSeconds));
    case "ENDPOINTS_FAILING":
      return alarmTexts.endpoints(f.whole(webhooks.failingEndpoints));
    default:
      return text;
  }
}

/** `operations/incidents.md#the-ledger` as the address of the page that the panel serves. */
function documentOf(docs: string): string {
  const [file = "", anchor] = docs.split("#");
  const page = `/docs/${file.replace(/\.md$/, "")}`;
  return anchor === undefined ? page : `${page}#${anchor}`;
}
