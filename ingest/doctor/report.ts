/** The report as text: every check, what to do about those that failed, and a grade. */
import type { Examination, Finding } from "#ingest/doctor/examine.ts";
import type { Cause } from "#ingest/doctor/first-cause.ts";

/** Share of checks as expected, from the best grade down. */
const GRADES = [
  ["A", 1],
  ["B", 0.95],
  ["C", 0.85],
  ["D", 0.6],
] as const;
/** Failures of a sender's own messages that are shown. */
const FAILURES_SHOWN = 50;

function gradeOf(good: number, all: number): string {
  const share = all === 0 ? 0 : good / all;
  return GRADES.find(([, least]) => share >= least)?.[0] ?? "E";
}

export function serviceReport({ findings, skipped, stopped }: Examination): string {
  const names = [...new Set(findings.map(({ group }) => group))];
  const blocks = names.map((title) => {
    const own = findings.filter(({ group }) => group === title);
    return [`${title}  ${goodOf(own)}/${own.length}`, ...own.flatMap(linesOf)].join("\n");
  });
  const good = goodOf(findings);
  const left = skipped === 0 ? "" : ` ${skipped} signature probes need --secret.`;
  const sum = `Grade ${gradeOf(good, findings.length)}: ${good} of ${findings.length} as expected.${left}`;
  return `${[...blocks, stopped === null ? sum : stoppedText(stopped)].join("\n\n")}\n`;
}

function stoppedText({ what, remedy }: Cause): string {
  return `STOPPED  ${plain(what)}\n         -> ${remedy}\nNothing else was tried: it would fail for the same reason.`;
}

/** Only what failed is listed: a day of events has too many that are good. */
export function messagesReport(findings: readonly Finding[], isLocal: boolean): string {
  const failed = findings.filter(({ fault }) => fault !== null);
  const shown = failed.slice(0, FAILURES_SHOWN).flatMap(linesOf);
  const more = failed.length - FAILURES_SHOWN;
  const good = goodOf(findings);
  const checker = isLocal ? "the published schemas alone" : "the published schemas and the service";
  return `${[
    `Your messages  ${good}/${findings.length}`,
    ...shown,
    ...(more > 0 ? [`  and ${more} more`] : []),
    ...aheadLines(findings),
    "",
    `Your messages: grade ${gradeOf(good, findings.length)}, ${good} of ${findings.length} valid, checked by ${checker}.`,
  ].join("\n")}\n`;
}

/** Valid, and most likely an error all the same: nothing happens tomorrow. */
function aheadLines(findings: readonly Finding[]): string[] {
  const ahead = findings.filter(({ aheadMs }) => aheadMs !== undefined);
  const [first] = ahead;
  if (!first) return [];
  const minutes = Math.ceil(Math.max(...ahead.map(({ aheadMs = 0 }) => aheadMs)) / 60_000);
  return [
    `  WARN  ${ahead.length} of ${findings.length} are ahead of their time, by up to ${minutes} min: ${plain(first.name)}`,
    "        occurredAt is after this machine's clock; such an event counts as of its receipt.",
    "        -> Send the event place's time with its offset, +01:00 or +02:00 in Italy, and check the clock.",
  ];
}

function goodOf(findings: readonly Finding[]): number {
  return findings.filter(({ fault }) => fault === null).length;
}

function linesOf({ name, fault, remedy }: Finding): string[] {
  if (fault === null) return [`  ok    ${plain(name)}`];
  return [`  FAIL  ${plain(name)}`, `        ${plain(fault)}`, `        -> ${remedy}`];
}

/** Names and texts come from elsewhere: none of them may command the terminal. */
function plain(text: string): string {
  return text.replaceAll(/\p{Cc}/gu, "?");
}
