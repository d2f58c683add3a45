/** From findings to incidents: one opens when a finding has stood for a while, and is over once it has been gone for a while. */
import { limit } from "#core/platform/schema/limit.ts";
import {
  ALARMS,
  type AlarmKind,
  codeOf,
  type Facts,
  type Finding,
  type Severity,
} from "./alarm.ts";

/** Whose incident it is: `operators`, `company <code>` or `courier <code>`, as in the audit log. */
export interface OwnedFinding extends Finding {
  readonly owner: string;
}

export interface Incident {
  readonly id: string;
  readonly owner: string;
  readonly kind: AlarmKind;
  readonly subject: string;
  readonly severity: Severity;
  /** As they were found last. */
  readonly facts: Facts;
  readonly page: string;
  /** Service clock, UTC milliseconds. */
  readonly firstSeenMs: number;
  readonly lastSeenMs: number;
  /** Since when it has not been found any more; null = it stands. */
  readonly absentSinceMs: number | null;
  /** Null = it has not stood for long enough. */
  readonly openedAtMs: number | null;
  readonly overAtMs: number | null;
  /** Receivers that are notified: each once that it has opened, and once that it is over. */
  readonly told: readonly string[];
}

/** A finding that has not been looked at for so long may have been gone in between: its time begins again. */
const UNWATCHED_MS = limit(
  60_000,
  "time without a look after which a finding that is no incident yet begins again",
  "time in which no panel runs does not count",
);
const GONE_MS = limit(
  60_000,
  "time that an alarm must be gone before its incident is over",
  "the incident ends, and its receivers are notified once",
);
export const INCIDENTS_OPEN = limit(
  1_000,
  "incidents that are open or about to open",
  "further findings open none until there is room",
);

export interface Look {
  readonly known: readonly Incident[];
  readonly findings: readonly OwnedFinding[];
  /** Whether it cannot be told at the moment if it stands: it neither opens nor ends. */
  readonly isUnknown: (kind: AlarmKind) => boolean;
  readonly nowMs: number;
  readonly newId: () => string;
}

export interface Seen {
  /** Those that stand, are about to open, or are about to end. */
  readonly known: readonly Incident[];
  /** Since the look before. */
  readonly opened: readonly Incident[];
  readonly over: readonly Incident[];
}

export function nameOf({ owner, kind, subject }: Pick<OwnedFinding, "owner" | "kind" | "subject">) {
  return `${owner} ${codeOf({ kind, subject })}`;
}

export function lookAgain(look: Look): Seen {
  const { known, findings } = look;
  const found = new Map(findings.map((finding) => [nameOf(finding), finding]));
  const standing = new Set<string>(findings.map(({ kind }) => kind));
  const isHeld = (kind: AlarmKind) =>
    look.isUnknown(kind) || (ALARMS[kind].follows ?? []).some((cause) => standing.has(cause));
  const before = new Map(known.map((incident) => [nameOf(incident), incident]));
  const after = known.flatMap((incident) => {
    const finding = found.get(nameOf(incident));
    if (isHeld(incident.kind)) return [incident];
    return finding ? [seenAgain(incident, finding, look.nowMs)] : notSeen(incident, look.nowMs);
  });
  const fresh = findings
    .filter((finding) => !before.has(nameOf(finding)) && !isHeld(finding.kind))
    .slice(0, Math.max(0, INCIDENTS_OPEN - known.length))
    .map((finding) => opening(newIncident(finding, look), look.nowMs));
  const all = [...after, ...fresh];
  return {
    known: all.filter(({ overAtMs }) => overAtMs === null),
    opened: all.filter(
      (one) => one.openedAtMs !== null && (before.get(nameOf(one))?.openedAtMs ?? null) === null,
    ),
    over: all.filter(({ overAtMs }) => overAtMs !== null),
  };
}

function newIncident(finding: OwnedFinding, { nowMs, newId }: Look): Incident {
  const { owner, kind, subject, severity, facts, page } = finding;
  return {
    id: newId(),
    owner,
    kind,
    subject,
    severity,
    facts,
    page,
    firstSeenMs: nowMs,
    lastSeenMs: nowMs,
    absentSinceMs: null,
    openedAtMs: null,
    overAtMs: null,
    told: [],
  };
}

function opening(incident: Incident, nowMs: number): Incident {
  const { kind, openedAtMs, firstSeenMs } = incident;
  const isDue = nowMs - firstSeenMs >= ALARMS[kind].standsMs;
  return openedAtMs === null && isDue ? { ...incident, openedAtMs: nowMs } : incident;
}

function seenAgain(incident: Incident, { severity, facts }: OwnedFinding, nowMs: number): Incident {
  const { openedAtMs, lastSeenMs, firstSeenMs } = incident;
  const isUnwatched = openedAtMs === null && nowMs - lastSeenMs > UNWATCHED_MS;
  const seen: Incident = {
    ...incident,
    severity,
    facts,
    firstSeenMs: isUnwatched ? nowMs : firstSeenMs,
    lastSeenMs: nowMs,
    absentSinceMs: null,
  };
  return opening(seen, nowMs);
}

/** One that never opened is forgotten at once. */
function notSeen(incident: Incident, nowMs: number): Incident[] {
  if (incident.openedAtMs === null) return [];
  const absentSinceMs = incident.absentSinceMs ?? nowMs;
  const isOver = nowMs - absentSinceMs >= GONE_MS;
  return [{ ...incident, absentSinceMs, overAtMs: isOver ? absentSinceMs : null }];
}
