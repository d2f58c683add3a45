/** What a trace is made of: all that is known of a shipment, or what was known at an earlier time. */
import { type Static, Type } from "@sinclair/typebox";
import type { Fact } from "#core/events/rules/fact.ts";
import { Problem } from "#core/platform/errors/problem.ts";
import { asOf } from "#core/shipments/rules/as-of.ts";
import { fold, initialState } from "#core/shipments/rules/fold.ts";
import type { StatusPair } from "#core/statuses/rules/status.ts";
import { type Remap, remapsAfter } from "#core/statuses/store/remaps.ts";
import type {
  Delivery,
  DeliveryState,
  KeptDecision,
} from "#core/webhooks/store/deliveries/deliveries.ts";
import type { ShipmentMoment } from "#core/webhooks/store/shipment-moment.ts";
import type { PanelDeps } from "#panel/server/caller.ts";
import { instantOfQuery } from "#panel/server/webhooks/webhook-access.ts";

export const pair = Type.Object({
  status: Type.String(),
  detail: Type.Integer({ description: "0 = none" }),
});

export const StepChange = Type.Object(
  { before: pair, after: pair, changed: Type.Boolean(), firstOccurrence: Type.Boolean() },
  { description: "what it does to the shipment, in the order of application" },
);

export interface Step {
  readonly fact: Fact;
  readonly change: Static<typeof StepChange>;
}

/** What each fact does to the shipment, in the order they were applied and as they are mapped now. */
export function stepsOf(facts: readonly Fact[]): Step[] {
  let state = initialState("PENDING");
  return facts.map((fact) => {
    const before: StatusPair = state.pair;
    const folded = fold(state, fact);
    state = folded?.state ?? state;
    const { changed = false, firstOccurrence = false } = folded?.change ?? {};
    return { fact, change: { before, after: state.pair, changed, firstOccurrence } };
  });
}

/** @throws {Problem} 422 where the text is no instant, or one that is still to come */
export function asOfQuery(text: string | undefined, nowMs: number): number | null {
  if (text === undefined) return null;
  const atMs = instantOfQuery("asOf", text, true);
  if (atMs <= nowMs) return atMs;
  throw invalidAsOf(`It is ${isoOf(nowMs)} now: what will have been received later is not known.`);
}

function invalidAsOf(message: string): Problem {
  const violations = [{ path: "asOf", code: "OUT_OF_RANGE", message }];
  return new Problem(422, "INVALID_QUERY", `asOf: ${message}`, { members: { violations } });
}

/** What a trace shows: everything, or what there was at an earlier time. */
export interface Known
  extends Pick<ShipmentMoment["shipment"], "record" | "state" | "statusUpdatedAtMs"> {
  readonly facts: readonly Fact[];
  readonly decisions: readonly KeptDecision[];
  readonly mappedBefore: ReadonlyMap<string, string>;
}

export function knownNow({ shipment, facts, decisions }: ShipmentMoment): Known {
  return { ...shipment, facts: facts(), decisions: decisions(), mappedBefore: new Map() };
}

/** @throws {Problem} 422 before the shipment was created */
export async function knownThen(
  { redis }: PanelDeps,
  moment: ShipmentMoment,
  atMs: number,
): Promise<Known> {
  const { record, state, statusUpdatedAtMs } = moment.shipment;
  if (atMs < record.createdAtMs) {
    throw invalidAsOf(`The shipment was created at ${isoOf(record.createdAtMs)}.`);
  }
  const later = await remapsAfter(redis, record.courier, atMs);
  const facts = moment.facts();
  const { trackingNumber } = record;
  const then = asOf({ facts, state, base: moment.base(), trackingNumber }, atMs, later);
  const isNow = then.facts.length === facts.length && later.length === 0;
  return {
    record,
    facts: then.facts,
    state: then.state,
    mappedBefore: then.mappedBefore,
    statusUpdatedAtMs: isNow ? statusUpdatedAtMs : updatedThen(then.facts),
    decisions: moment.decisions().filter((one) => isOfThen(one, atMs, later)),
  };
}

/** The time of a status change is kept of the latest one alone: an earlier one is the second in which its event was received. */
function updatedThen(facts: readonly Fact[]): number | null {
  const last = stepsOf(facts).findLast(({ change }) => change.changed)?.fact;
  return last ? Math.floor(last.receivedAtMs / 1_000) * 1_000 : null;
}

/** A decision belongs to what had been received, even where it was made a moment later; one of a later remap does not. */
function isOfThen({ atMs: decidedAtMs }: KeptDecision, atMs: number, later: readonly Remap[]) {
  return !later.some(({ createdAtMs }) => createdAtMs <= decidedAtMs && createdAtMs > atMs);
}

/** A delivery by the attempts that had been made. An end without an attempt has no time, and is shown as it is now. */
export function deliveryThen(delivery: Delivery, atMs: number): Delivery {
  const attempts = delivery.attempts.filter((one) => one.atMs <= atMs);
  if (attempts.length === delivery.attempts.length) return delivery;
  const last = attempts.at(-1);
  if (!last) {
    return { ...delivery, generation: 1, ...endThen("queued"), attempts };
  }
  const next = delivery.attempts[attempts.length];
  const state = last.error === null ? "delivered" : "failed";
  const isRetried = next?.generation === last.generation;
  const end = isRetried ? endThen("waiting", next.atMs) : endThen(state, null, last.error);
  return { ...delivery, generation: last.generation, ...end, attempts };
}

function endThen(
  state: DeliveryState,
  nextAttemptAtMs: number | null = null,
  reason: string | null = null,
): Pick<Delivery, "state" | "nextAttemptAtMs" | "reason"> {
  return { state, nextAttemptAtMs, reason };
}

function isoOf(ms: number): string {
  return new Date(ms).toISOString();
}
