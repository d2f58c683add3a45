/** A parcel's plausible past: which steps it took and when, on working days at the hours couriers keep. */
import { parseRomeDateTime, romeDate } from "#core/platform/time/rome-time.ts";
import type { Step } from "./couriers.ts";

/** From 0 to less than 1, as `Math.random`. */
export type Random = () => number;

export interface Stop {
  readonly step: Step;
  readonly atMs: number;
  readonly where: "origin" | "hub" | "destination";
  /** Running number of the delivery attempt, from 1; 0 before the first. */
  readonly attempt: number;
}

export interface Journey {
  /** `YYYY-MM-DD`. */
  readonly shipDate: string;
  readonly stops: readonly Stop[];
}

/** Hour of the day and how many working days before the last day; "first" = the day of departure. */
type Line = readonly [step: Step, hour: number, day: "first" | "second" | number];

const COLLECTED: readonly Line[] = [
  ["announced", 11, "first"],
  ["accepted", 16, "first"],
  ["departed", 20, "first"],
  ["hub", 2, "second"],
];
const HANDED_OVER: readonly Line[] = [
  ["announced", 12, "first"],
  ["departed", 19, "first"],
  ["hub", 3, "second"],
];

interface Plot {
  /** Out of 100 journeys. */
  readonly share: number;
  /** Working days that its end takes, besides those underway. */
  readonly extraDays: number;
  readonly lines: readonly Line[];
}

const PLOTS: readonly Plot[] = [
  {
    share: 42,
    extraDays: 0,
    lines: [...COLLECTED, ["branch", 6, 0], ["out", 8, 0], ["delivered", 10, 0]],
  },
  {
    share: 30,
    extraDays: 0,
    lines: [
      ...COLLECTED,
      ["measured", 4, "second"],
      ["branch", 6, 0],
      ["out", 8, 0],
      ["delivered", 12, 0],
    ],
  },
  {
    share: 8,
    extraDays: 1,
    lines: [
      ...HANDED_OVER,
      ["branch", 6, 1],
      ["out", 8, 1],
      ["absent", 12, 1],
      ["out", 8, 0],
      ["delivered", 11, 0],
    ],
  },
  {
    share: 5,
    extraDays: 1,
    lines: [
      ...HANDED_OVER,
      ["delayed", 18, 1],
      ["branch", 6, 0],
      ["out", 9, 0],
      ["delivered", 14, 0],
    ],
  },
  {
    share: 6,
    extraDays: 1,
    lines: [...COLLECTED, ["branch", 6, 1], ["atPoint", 12, 1], ["collected", 17, 0]],
  },
  {
    share: 3,
    extraDays: 2,
    lines: [
      ...HANDED_OVER,
      ["branch", 6, 2],
      ["wrongAddress", 11, 2],
      ["held", 17, 2],
      ["rebooked", 10, 1],
      ["out", 8, 0],
      ["delivered", 12, 0],
    ],
  },
  {
    share: 3,
    extraDays: 2,
    lines: [
      ...HANDED_OVER,
      ["branch", 6, 2],
      ["out", 8, 2],
      ["refused", 11, 2],
      ["returning", 9, 1],
      ["returned", 15, 0],
    ],
  },
  { share: 1, extraDays: 0, lines: [...COLLECTED, ["branch", 6, 0], ["damaged", 9, 0]] },
  { share: 1, extraDays: 1, lines: [["awaited", 9, "first"], ...COLLECTED, ["lost", 15, 0]] },
  { share: 1, extraDays: 0, lines: [...COLLECTED, ["branch", 6, 0], ["out", 8, 0]] },
];
const DELIVERED_PLOTS = PLOTS.filter(({ lines }) => lines.at(-1)?.[0] === "delivered");

const DAY_MS = 86_400_000;

export interface JourneyInput {
  /** Working days on the road. */
  readonly daysUnderway: number;
  /** Working days since the last step: 1 or more and every step lies in the past; 0 and it ends today, at any hour. */
  readonly daysAgo: number;
  readonly mustArrive: boolean;
}

/** A journey that ended `daysAgo` working days before `nowMs`. */
export function planJourney(input: JourneyInput, random: Random, nowMs: number): Journey {
  const plot = drawPlot(input.mustArrive ? DELIVERED_PLOTS : PLOTS, random);
  const length = input.daysUnderway + plot.extraDays;
  const days = [romeDate(nowMs), ...workingDaysBack(nowMs, input.daysAgo + length)].slice(
    input.daysAgo,
  );
  const dayOf = (day: Line[2]) => {
    if (day === "first") return days[length];
    return days[day === "second" ? length - 1 : day];
  };
  let attempt = 0;
  let earliestMs = 0;
  const stops = plot.lines.map(([step, hour, day]): Stop => {
    if (step === "out") attempt += 1;
    const minutes = Math.floor(random() * 50);
    const plannedMs = localInstant(dayOf(day) ?? romeDate(nowMs), hour, minutes);
    const atMs = Math.max(plannedMs, earliestMs + 60_000);
    earliestMs = atMs;
    return { step, atMs, where: whereOf(step), attempt };
  });
  return { shipDate: days[length] ?? romeDate(nowMs), stops };
}

function drawPlot(plots: readonly Plot[], random: Random): Plot {
  let left = random() * plots.reduce((sum, { share }) => sum + share, 0);
  for (const plot of plots) {
    left -= plot.share;
    if (left < 0) return plot;
  }
  return plots[0] as Plot;
}

/** The last `count` + 1 days from Monday to Friday before today, the latest first. */
function workingDaysBack(nowMs: number, count: number): string[] {
  const days: string[] = [];
  for (let atMs = nowMs - DAY_MS; days.length <= count; atMs -= DAY_MS) {
    const day = romeDate(atMs);
    const weekday = new Date(`${day}T12:00:00Z`).getUTCDay();
    if (weekday !== 0 && weekday !== 6) days.push(day);
  }
  return days;
}

function localInstant(day: string, hour: number, minutes: number): number {
  const two = (value: number) => String(value).padStart(2, "0");
  return parseRomeDateTime(`${day} ${two(hour)}:${two(minutes)}:${two(minutes)}`) ?? 0;
}

function whereOf(step: Step): Stop["where"] {
  switch (step) {
    case "awaited":
    case "announced":
    case "accepted":
    case "departed":
    case "returned":
      return "origin";
    case "hub":
    case "measured":
    case "delayed":
    case "lost":
    case "returning":
      return "hub";
    default:
      return "destination";
  }
}
