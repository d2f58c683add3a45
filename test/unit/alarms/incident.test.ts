/** From findings to incidents. */
import { expect, test } from "bun:test";
import { ALARMS, alarmText } from "#core/alarms/rules/alarm.ts";
import {
  INCIDENTS_OPEN,
  type Incident,
  lookAgain,
  type OwnedFinding,
} from "#core/alarms/rules/incident.ts";
import {
  ATTEMPTS_MOST,
  messageAbout,
  waitAfter,
  webhookBody,
} from "#core/alarms/rules/notification.ts";

const MINUTE_MS = 60_000;

function found(kind: OwnedFinding["kind"], subject = ""): OwnedFinding {
  return {
    owner: "operators",
    kind,
    subject,
    severity: ALARMS[kind].severity,
    facts: { count: "1" },
    page: "/overview",
  };
}

interface Step {
  readonly nowMs: number;
  readonly findings: readonly OwnedFinding[];
  readonly isUnknown?: boolean;
}

/** @returns what each step opened and ended */
function play(steps: readonly Step[]): string[][] {
  let known: readonly Incident[] = [];
  let count = 0;
  return steps.map(({ nowMs, findings, isUnknown = false }) => {
    const newId = () => `inc_${++count}`;
    const seen = lookAgain({ known, findings, isUnknown: () => isUnknown, nowMs, newId });
    known = seen.known;
    return [
      ...seen.opened.map(({ kind }) => `opened ${kind}`),
      ...seen.over.map(({ kind }) => `over ${kind}`),
    ];
  });
}

const DEAD = [found("DEAD_LETTERS")];

test("an incident opens when a finding has stood for its time, once, and is over when it has been gone for a minute", () => {
  const steps = [
    { nowMs: 0, findings: DEAD },
    { nowMs: MINUTE_MS - 1, findings: DEAD },
    { nowMs: MINUTE_MS, findings: DEAD },
    { nowMs: 2 * MINUTE_MS, findings: DEAD },
    { nowMs: 3 * MINUTE_MS, findings: [] },
    { nowMs: 4 * MINUTE_MS - 1, findings: [] },
    { nowMs: 4 * MINUTE_MS, findings: [] },
    { nowMs: 9 * MINUTE_MS, findings: [] },
  ];
  expect(play(steps)).toEqual([
    [],
    [],
    ["opened DEAD_LETTERS"],
    [],
    [],
    [],
    ["over DEAD_LETTERS"],
    [],
  ]);
});

test("a finding that comes and goes opens none, and an incident that comes back at once is the same", () => {
  const flapping = [0, 1, 2, 3].map((minute) => ({
    nowMs: minute * MINUTE_MS,
    findings: minute % 2 === 0 ? DEAD : [],
  }));
  expect(play(flapping).flat()).toEqual([]);
  const back = [
    { nowMs: 0, findings: DEAD },
    { nowMs: MINUTE_MS, findings: DEAD },
    { nowMs: 2 * MINUTE_MS, findings: [] },
    { nowMs: 3 * MINUTE_MS - 1, findings: DEAD },
    { nowMs: 9 * MINUTE_MS, findings: DEAD },
  ];
  expect(play(back).flat()).toEqual(["opened DEAD_LETTERS"]);
});

test("time in which nobody looked counts for no finding that is no incident yet, and ends no incident", () => {
  const unwatched = [
    { nowMs: 0, findings: DEAD },
    { nowMs: 60 * MINUTE_MS, findings: DEAD },
    { nowMs: 61 * MINUTE_MS, findings: DEAD },
    { nowMs: 200 * MINUTE_MS, findings: [] },
    { nowMs: 201 * MINUTE_MS, findings: [] },
  ];
  expect(play(unwatched)).toEqual([[], [], ["opened DEAD_LETTERS"], [], ["over DEAD_LETTERS"]]);
});

test("what cannot be told neither opens an incident nor ends one", () => {
  const steps = [
    { nowMs: 0, findings: DEAD },
    { nowMs: MINUTE_MS, findings: DEAD },
    { nowMs: 2 * MINUTE_MS, findings: [], isUnknown: true },
    { nowMs: 9 * MINUTE_MS, findings: [], isUnknown: true },
    { nowMs: 10 * MINUTE_MS, findings: DEAD },
  ];
  expect(play(steps).flat()).toEqual(["opened DEAD_LETTERS"]);
});

test("what follows from an outage is no incident of its own while the outage stands", () => {
  const both = [found("CLICKHOUSE_UNAVAILABLE"), found("LAG", "ANALYTICS")];
  const steps = [0, 1, 2, 3].map((minute) => ({ nowMs: minute * MINUTE_MS, findings: both }));
  expect(play(steps).flat()).toEqual(["opened CLICKHOUSE_UNAVAILABLE"]);
  for (const { follows = [] } of Object.values(ALARMS)) {
    for (const cause of follows) expect(Object.keys(ALARMS)).toContain(cause);
  }
});

test(`${INCIDENTS_OPEN} incidents are open at once, and one more waits for room`, () => {
  const many = Array.from({ length: INCIDENTS_OPEN + 1 }, (_, n) =>
    found("COURIER_SILENT", `C${n}`),
  );
  const first = { nowMs: 0, findings: many };
  const room = [
    first,
    { nowMs: 1, findings: many.slice(1) },
    { nowMs: 1 + MINUTE_MS, findings: many.slice(1) },
    { nowMs: 2 + MINUTE_MS, findings: many.slice(1) },
  ];
  const counts = play(room).map((news) => news.filter((one) => one.startsWith("opened")).length);
  expect(counts).toEqual([INCIDENTS_OPEN, 0, 0, 1]);
});

test("a receiver is tried again for about a day, an hour at most between two attempts", () => {
  const waits = Array.from({ length: ATTEMPTS_MOST }, (_, at) => waitAfter(at + 1));
  expect(waits.slice(0, 8)).toEqual([1, 2, 4, 8, 16, 32, 60, 60].map((one) => one * MINUTE_MS));
  expect(waits.at(-2)).toBe(60 * MINUTE_MS);
  expect(waits.at(-1)).toBeNull();
  const hours = waits.reduce<number>((sum, one) => sum + (one ?? 0), 0) / (60 * MINUTE_MS);
  expect(Math.round(hours)).toBe(24);
});

test("a message says in the receiver's language what is wrong, since when, and where", () => {
  const [opened] = lookAgain({
    known: [],
    findings: [{ ...found("COURIER_SILENT", "GLS_ITA"), facts: { courier: "A<B&C>" } }],
    isUnknown: () => false,
    nowMs: Date.UTC(2026, 0, 1, 11),
    newId: () => "inc_1",
  }).opened;
  if (!opened) throw new Error("no incident");
  const english = messageAbout(opened, "opened", "en", "https://panel.test");
  expect(english.subject).toBe("Waybill: Warning: COURIER_SILENT_GLS_ITA");
  expect(english.text).toContain("since 2026-01-01 12:00:00".slice(6));
  expect(english.text).toContain("https://panel.test/overview");
  expect(messageAbout(opened, "opened", "it", "").text).toContain(alarmText(opened, "it"));
  const { text } = JSON.parse(webhookBody(english));
  expect(text).toContain("A&lt;B&amp;C&gt;");
});
