/**
 * The first-day comparison of document 2: what another tracking of the same parcels says, beside what the courier has sent. Each
 * fact stands for one line at most.
 */

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
export const SAME_TIME_MS = 60_000;
/** A wrong offset is hours off; what is further off is another scan. */
const OTHER_TIME_MS = 86_400_000;

/** In this order: what is surely the same is not used up by what only may be. */
const ROUNDS = [
  { result: "same", isSameCode: true, withinMs: SAME_TIME_MS },
  { result: "otherTime", isSameCode: true, withinMs: OTHER_TIME_MS },
  { result: "otherCode", isSameCode: false, withinMs: SAME_TIME_MS },
] as const;

/** Compares the lines of one tracking number with the events that were received of it. */
export function compareTracking(
  lines: readonly TrackedLine[],
  received: readonly ReceivedEvent[],
): Comparison {
  const left = new Set(received);
  const compared = new Map<TrackedLine, ComparedLine>();
  for (const { result, isSameCode, withinMs } of ROUNDS) {
    for (const line of lines) {
      if (compared.has(line)) continue;
      let nearest: ReceivedEvent | null = null;
      let nearestMs: number = withinMs;
      for (const event of left) {
        const distanceMs = Math.abs(event.occurredAtMs - line.occurredAtMs);
        if ((event.code === line.code) !== isSameCode || distanceMs >= nearestMs) continue;
        nearest = event;
        nearestMs = distanceMs;
      }
      if (nearest === null) continue;
      left.delete(nearest);
      compared.set(line, { ...line, result, received: nearest });
    }
  }
  const all = lines.map(
    (line) => compared.get(line) ?? { ...line, result: "notReceived" as const, received: null },
  );
  return { lines: all, left: [...left] };
}
