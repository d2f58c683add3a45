/** The report as text: every probe, what to do about those that failed, and a grade. */
import type { Examination, Finding } from "#ingest/doctor/examine.ts";

/** Share of probes as expected, from the best grade down. */
const GRADES = [
  ["A", 1],
  ["B", 0.95],
  ["C", 0.85],
  ["D", 0.6],
] as const;

export function gradeOf(findings: readonly Finding[]): string {
  const good = findings.filter(({ fault }) => fault === null).length;
  const share = findings.length === 0 ? 0 : good / findings.length;
  return GRADES.find(([, least]) => share >= least)?.[0] ?? "E";
}

export function reportText({ findings, skipped }: Examination): string {
  const groups = Map.groupBy(findings, ({ group }) => group);
  const blocks = [...groups].map(([title, own]) => {
    const good = own.filter(({ fault }) => fault === null).length;
    return [`${title}  ${good}/${own.length}`, ...own.flatMap(linesOf)].join("\n");
  });
  const good = findings.filter(({ fault }) => fault === null).length;
  const left = skipped === 0 ? "" : ` ${skipped} signature probes need --secret.`;
  const sum = `Grade ${gradeOf(findings)}: ${good} of ${findings.length} as expected.${left}`;
  return `${[...blocks, sum].join("\n\n")}\n`;
}

function linesOf({ name, fault, remedy }: Finding): string[] {
  if (fault === null) return [`  ok    ${name}`];
  return [`  FAIL  ${name}`, `        ${fault}`, `        -> ${remedy}`];
}
