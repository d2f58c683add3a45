/**
 * The first-day comparison of document 2: what another tracking of the same parcels says, beside what the courier has sent. Each
 * fact stands for one line at most.
 */
import { limit } from "#core/platform/schema/limit.ts";

export interface TrackedLine {
  /** Of its file. */
  readonly line: number;
  readonly trackingNumber: string;
  /** The courier's own, verbatim. */
  readonly code: string;
  readonly occurredAtMs: number;
}

/** An event that was received of the parcel. */
export interface ReceivedEvent {
  readonly eventId: string;
  readonly code: string;
  readonly occurredAtMs: number;
}

export const COMPARISON_RESULTS = ["same", "otherTime", "otherCode", "notReceived"] as const;

export interface ComparedLine extends TrackedLine {
  readonly result: (typeof COMPARISON_RESULTS)[number];
  /** The event that the line was matched with; null = none. */
  readonly received: ReceivedEvent | null;
}

export interface Comparison {
  readonly lines: readonly ComparedLine[];
  /** Received events that no line was matched with. */
  readonly left: readonly ReceivedEvent[];
}

/** Two clocks that tell the same scan to the minute. */
export const SAME_TIME_MS = limit(
  60_000,
  "distance of two times that are the same",
  "another time",
);
/** A wrong offset is hours off; what is further off is another scan. */
const OTHER_TIME_MS = limit(86_400_000, "distance of two times of the same scan", "another scan");

/** In this order: what is surely the same is not used up by what only may be. */
const ROUNDS = [
  { result: "same", isSameCode: true, withinMs: SAME_TIME_MS },
  { result: "otherTime", isSameCode: true, withinMs: OTHER_TIME_MS },
  // The first round has left no event of the same code that is as near.
  { result: "otherCode", isSameCode: false, withinMs: SAME_TIME_MS },
] as const;

/**
 * Compares the lines of one tracking number with the events that were received of it, in hardly more time than it takes to sort
 * them: thousands of either may be of one parcel.
 */
export function compareTracking(
  lines: readonly TrackedLine[],
  received: readonly ReceivedEvent[],
): Comparison {
  const all = timelineOf(received);
  const byCode = new Map(
    [...Map.groupBy(received, ({ code }) => code)].map(
      ([code, own]) => [code, timelineOf(own)] as const,
    ),
  );
  const compared = new Map<TrackedLine, ComparedLine>();
  for (const { result, isSameCode, withinMs } of ROUNDS) {
    for (const line of lines) {
      if (compared.has(line)) continue;
      const timeline = isSameCode ? byCode.get(line.code) : all;
      const nearest = timeline?.nearest(line.occurredAtMs, withinMs) ?? null;
      if (nearest === null) continue;
      all.take(nearest);
      byCode.get(nearest.code)?.take(nearest);
      compared.set(line, { ...line, result, received: nearest });
    }
  }
  const every = lines.map(
    (line) => compared.get(line) ?? { ...line, result: "notReceived" as const, received: null },
  );
  return { lines: every, left: received.filter((event) => all.has(event)) };
}

/** Events by time, of which some have been taken. */
interface Timeline {
  /** Nearer than `withinMs`; the earlier one of two. Null = none. */
  readonly nearest: (atMs: number, withinMs: number) => ReceivedEvent | null;
  readonly take: (event: ReceivedEvent) => void;
  readonly has: (event: ReceivedEvent) => boolean;
}

/** @param sorted by `occurredAtMs` */
function firstFrom(sorted: readonly ReceivedEvent[], atMs: number): number {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((sorted[middle]?.occurredAtMs ?? 0) < atMs) low = middle + 1;
    else high = middle;
  }
  return low;
}

function timelineOf(events: readonly ReceivedEvent[]): Timeline {
  const sorted = events.toSorted((one, other) => one.occurredAtMs - other.occurredAtMs);
  const places = new Map(sorted.map((event, at) => [event, at]));
  /** Of a place that was taken, one that lies further on; of every other its own. The last one stands for none. */
  const later = Int32Array.from({ length: sorted.length + 1 }, (_, at) => at);
  /** The same towards the beginning, each place at its number plus one. The first one stands for none. */
  const earlier = later.slice();

  return {
    nearest(atMs, withinMs) {
      const at = firstFrom(sorted, atMs);
      const neighbours = [sorted[free(earlier, at) - 1], sorted[free(later, at)]];
      let nearest: ReceivedEvent | null = null;
      let nearestMs = withinMs;
      for (const event of neighbours) {
        const distanceMs = Math.abs((event?.occurredAtMs ?? Number.NaN) - atMs);
        if (!event || distanceMs >= nearestMs) continue;
        nearest = event;
        nearestMs = distanceMs;
      }
      return nearest;
    },
    take(event) {
      const at = places.get(event);
      if (at === undefined) return;
      later[at] = at + 1;
      earlier[at + 1] = at;
    },
    has(event) {
      const at = places.get(event);
      return at !== undefined && later[at] === at;
    },
  };
}

/** The next place that was not taken; the way to it becomes shorter each time. */
function free(next: Int32Array, from: number): number {
  let at = from;
  while (next[at] !== at) {
    const further = next[next[at] ?? 0] ?? 0;
    next[at] = further;
    at = further;
  }
  return at;
}
