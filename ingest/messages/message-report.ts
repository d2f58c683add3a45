/** What became of a message: the answer to its sender (document 2), and the outcomes that an operator may look up. */
import { Type } from "@sinclair/typebox";
import { ruleOf } from "#core/events/store/courier-counts.ts";
import type { EventOutcome } from "#core/events/store/event-outcomes.ts";
import { FAULTS_LISTED, FaultItem } from "#core/platform/schema/fault.ts";
import { romeIso } from "#core/platform/time/rome-time.ts";
import type { Classified, Outcome, UnmatchedKind } from "./classify.ts";

export const OUTCOMES: readonly Outcome[] = [
  "ACCEPTED",
  "DUPLICATE",
  "UNKNOWN_TRACKING",
  "INVALID",
];
const count = Type.Integer({ minimum: 0 });

export const EventResult = Type.Object({
  eventId: Type.Union([Type.String(), Type.Null()], { description: "null when it is no text" }),
  outcome: Type.Union(
    OUTCOMES.map((name) => Type.Literal(name)),
    { description: "a later minor version may add others" },
  ),
  errors: Type.Optional(Type.Array(FaultItem, { minItems: 1, maxItems: FAULTS_LISTED })),
});

export const MessageReport = Type.Object({
  messageId: Type.String(),
  receivedAt: Type.String({ description: "date and time with the offset of Europe/Rome" }),
  accepted: count,
  duplicate: count,
  unknownTracking: count,
  invalid: count,
  results: Type.Array(EventResult, { description: "one for each event, in send order" }),
});

/** Document 2, "Response to a processed message": the four counters always sum to the events sent. */
export function messageReport(
  messageId: string,
  receivedAtMs: number,
  results: readonly Classified[],
) {
  const counts = countOutcomes(results);
  return {
    messageId,
    receivedAt: romeIso(receivedAtMs),
    accepted: counts.ACCEPTED,
    duplicate: counts.DUPLICATE,
    unknownTracking: counts.UNKNOWN_TRACKING,
    invalid: counts.INVALID,
    results,
  };
}

export function countOutcomes(results: readonly Classified[]): Record<Outcome, number> {
  const counts = { ACCEPTED: 0, DUPLICATE: 0, UNKNOWN_TRACKING: 0, INVALID: 0 };
  for (const { outcome } of results) counts[outcome] += 1;
  return counts;
}

/** What is kept of those that were not ACCEPTED. */
export function outcomesToKeep(
  results: readonly Classified[],
  unmatched: ReadonlyMap<number, UnmatchedKind>,
  events: readonly unknown[],
): EventOutcome[] {
  return results.flatMap(({ eventId, outcome, errors = [] }, messageIndex): EventOutcome[] => {
    if (outcome === "ACCEPTED") return [];
    const why =
      outcome === "UNKNOWN_TRACKING" ? REASONS[unmatched.get(messageIndex) ?? "none"] : [];
    const reasons = outcome === "INVALID" ? errors.map(ruleOf) : why;
    return [{ eventId, messageIndex, outcome, reasons, event: events[messageIndex] }];
  });
}

const REASONS: Readonly<Record<UnmatchedKind, readonly string[]>> = {
  none: ["not_tracked"],
  mismatch: ["mismatch"],
  ambiguous: ["ambiguous"],
};
