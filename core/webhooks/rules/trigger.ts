/** Webhook triggers and the statuses filter (document 3, "Trigger semantics"). */
import { type Static, Type } from "@sinclair/typebox";
import type { Status } from "#core/statuses/rules/status.ts";

export const TriggerSchema = Type.Union([
  Type.Literal("status_change"),
  Type.Literal("first_occurrence"),
  Type.Literal("every_event"),
]);
export type Trigger = Static<typeof TriggerSchema>;

/** What a decision needs to know of a change. `status` is the mapped status of the fact, null when unmapped. */
export interface TriggerInput {
  readonly status: Status | null;
  readonly changed: boolean;
  readonly firstOccurrence: boolean;
}

export interface Subscription {
  readonly trigger: Trigger;
  /** Empty = all. */
  readonly statuses: readonly Status[];
  readonly active: boolean;
}

/** Every change and endpoint has one: sent, or the reason why nothing is. */
export const VERDICTS = ["send", "disabled", "unmapped", "trigger_not_met", "filtered"] as const;
export type Verdict = (typeof VERDICTS)[number];

export function decide(subscription: Subscription, change: TriggerInput): Verdict {
  if (!subscription.active) return "disabled";
  if (change.status === null) return "unmapped";
  if (!meetsTrigger(subscription.trigger, change)) return "trigger_not_met";
  const { statuses } = subscription;
  return statuses.length === 0 || statuses.includes(change.status) ? "send" : "filtered";
}

function meetsTrigger(trigger: Trigger, { changed, firstOccurrence }: TriggerInput): boolean {
  switch (trigger) {
    case "status_change":
      return changed;
    case "first_occurrence":
      return changed && firstOccurrence;
    case "every_event":
      return true;
  }
}
