/** Notifications of the receivers of alarms: one when an incident opens, one when it is over. They name no person and no secret. */
import { limit } from "#core/platform/schema/limit.ts";
import { romeDateTime } from "#core/platform/time/rome-time.ts";
import { type AlarmLanguage, alarmText, codeOf } from "./alarm.ts";
import type { Incident } from "./incident.ts";

export type NewsKind = "opened" | "over" | "test";

/** A message to one receiver about one incident. */
export interface Notification {
  readonly incident: Incident;
  readonly receiverId: string;
  readonly news: Exclude<NewsKind, "test">;
  /** Failed ones so far. */
  readonly attempts: number;
  /** Service clock, UTC milliseconds. */
  readonly dueMs: number;
}

/** The same for each repetition: a mail that is sent again after a crash is the same message. */
export function notificationName({
  incident,
  receiverId,
  news,
}: Pick<Notification, "incident" | "receiverId" | "news">): string {
  return `${incident.id}.${news}.${receiverId}`;
}

interface Words {
  readonly severities: Readonly<Record<Incident["severity"], string>>;
  readonly over: string;
  readonly since: string;
  readonly until: string;
  readonly page: string;
  readonly test: string;
  readonly testText: string;
}

const WORDS: Readonly<Record<AlarmLanguage, Words>> = {
  en: {
    severities: { warning: "Warning", critical: "Critical" },
    over: "Over",
    since: "Since {at} (Italian time).",
    until: "From {from} to {to} (Italian time).",
    page: "In the control panel: {link}",
    test: "Test",
    testText: "This is a test: alarms of Waybill will arrive here.",
  },
  it: {
    severities: { warning: "Avviso", critical: "Critico" },
    over: "Terminato",
    since: "Dalle {at} (ora italiana).",
    until: "Dalle {from} alle {to} (ora italiana).",
    page: "Nel pannello di controllo: {link}",
    test: "Prova",
    testText: "Questa è una prova: gli allarmi di Waybill arriveranno qui.",
  },
};

export interface Message {
  readonly subject: string;
  readonly text: string;
}

/** @param publicUrl without a slash at the end */
export function messageAbout(
  incident: Incident,
  news: Notification["news"],
  language: AlarmLanguage,
  publicUrl: string,
): Message {
  const words = WORDS[language];
  const said = alarmText(incident, language);
  const isOver = news === "over";
  const head = isOver ? words.over : words.severities[incident.severity];
  const from = romeDateTime(incident.firstSeenMs);
  const times = isOver
    ? words.until
        .replace("{from}", from)
        .replace("{to}", romeDateTime(incident.overAtMs ?? incident.lastSeenMs))
    : words.since.replace("{at}", from);
  const link = words.page.replace("{link}", `${publicUrl}${incident.page}`);
  return {
    subject: `Waybill: ${head}: ${codeOf(incident)}`,
    text: `${head}: ${said}\n\n${times}\n\n${link}\n`,
  };
}

export function testMessage(language: AlarmLanguage, publicUrl: string): Message {
  const words = WORDS[language];
  const link = words.page.replace("{link}", `${publicUrl}/alarms`);
  return { subject: `Waybill: ${words.test}`, text: `${words.testText}\n\n${link}\n` };
}

/** As Slack takes it, and with it Mattermost, Rocket.Chat, Discord (`/slack`) and others. Its three special characters are escaped. */
export function webhookBody({ text }: Message): string {
  const escaped = text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
  return JSON.stringify({ text: escaped.trimEnd() });
}

const FIRST_WAIT_MS = 60_000;
const LONGEST_WAIT_MS = 3_600_000;
/** With these waits, about a day in which a panel runs. */
export const ATTEMPTS_MOST = limit(
  30,
  "attempts to notify a receiver of an alarm",
  "the notification is dropped, and the panel shows the error",
);

/** @param attempts that have failed @returns null = given up */
export function waitAfter(attempts: number): number | null {
  if (attempts >= ATTEMPTS_MOST) return null;
  return Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** (attempts - 1));
}
