/** What the product has stored about a shipment, held against the reference model. */
import type { CourierEntity } from "#core/configuration/rules/entities.ts";
import type { Fact } from "#core/events/rules/fact.ts";
import type { ShipmentState } from "#core/shipments/rules/fold.ts";
import type { Verdict } from "#core/webhooks/rules/trigger.ts";
import {
  deliveryFault,
  FIRST_PAIRS,
  type ModelChange,
  type ModelStatistics,
  modelChanges,
  modelMapping,
  modelNumber,
  modelState,
  type RawDelivery,
  verdictFault,
} from "./reference-model.ts";

/** One value that is not what the rule makes of the facts. */
export interface Difference {
  /** Null where it is about no shipment in particular. */
  readonly shipmentId: number | null;
  /** What differs, such as `state.status` or `index.ship`. */
  readonly what: string;
  /** What the product has. */
  readonly found: unknown;
  /** What the rule says. */
  readonly expected: unknown;
  /** The section of the specification, or of the design, that decides. */
  readonly rule: string;
}

/** An expectation: two values that must be equal, and the rule that says so. */
export type Expectation = readonly [what: string, found: unknown, expected: unknown, rule: string];

export function differencesOf(
  shipmentId: number | null,
  expectations: readonly Expectation[],
): Difference[] {
  return expectations.flatMap(([what, found, expected, rule]) =>
    Bun.deepEquals(found, expected) ? [] : [{ shipmentId, what, found, expected, rule }],
  );
}

const FOLD = "document 2: the most recent event is the current status; invariant 3";
const SAID = "document 2, data rule 3: the most recent event that carries it";
const COUNTED = "document 2: every event once; invariant 1";
/** Further numbers and parcels than these are not kept (docs/limits.md). */
const NUMBERS_KEPT = 100;
const PARCELS_KEPT = 1_000;

/** State and history. @param facts all that the shipment has had: none has left the history */
export function compareState(
  shipmentId: number,
  state: ShipmentState,
  facts: readonly Fact[],
): Difference[] {
  const model = modelState(facts, state.pair.status);
  const { parcels, aliases } = model;
  const hasAllNumbers = aliases.length <= NUMBERS_KEPT;
  const hasAllParcels = Object.keys(parcels).length <= PARCELS_KEPT;
  const pair = `${state.pair.status}:${state.pair.detail}`;
  const wasIn = [...FIRST_PAIRS, ...state.entered].includes(pair);
  return differencesOf(shipmentId, [
    ["state.status", state.pair.status, model.status, FOLD],
    ["state.detail", state.pair.detail, model.detail, FOLD],
    ["state.mapped", state.mapped?.by.key ?? null, model.mappedKey, FOLD],
    ["state.last", state.last?.by.key ?? null, model.lastKey, "document 1, statusDate"],
    [
      "state.date",
      state.last?.by.occurredAtMs ?? null,
      model.lastOccurredAtMs,
      "document 1, statusDate",
    ],
    ["state.place", state.last?.value.place ?? null, model.lastPlace, "document 1, statusPlace"],
    ["state.keys", state.keys, model.keys, COUNTED],
    ["state.pairs", state.pairs, model.pairs, COUNTED],
    ["state.entered", wasIn, true, "document 3: enters a status+detail pair"],
    ["state.estimate", state.estimate?.value ?? null, model.estimate, SAID],
    ["state.proof", state.proof?.value ?? null, model.proof, SAID],
    ["state.pickupPoint", state.pickupPoint?.value ?? null, model.pickupPoint, SAID],
    ["state.actionUrl", state.actionUrl?.value ?? null, model.actionUrl, SAID],
    [
      "state.aliases",
      hasAllNumbers && state.aliases,
      hasAllNumbers && aliases,
      "document 2, data rule 1",
    ],
    ["state.attemptNumber", state.attemptNumber, model.attemptNumber, COUNTED],
    ["state.failedAttempts", state.failedAttempts, model.failedAttempts, COUNTED],
    ["state.exceptions", state.exceptions, model.exceptions, COUNTED],
    ["state.unmapped", state.unmapped, model.unmapped, "document 2: unmapped codes are flagged"],
    ["state.isReturn", state.isReturn, model.isReturn, "document 2, isReturn"],
    [
      "state.departedAt",
      state.departedAtMs,
      model.departedAtMs,
      "design, Lead: transit runs from the first DEPARTED",
    ],
    [
      "state.parcels",
      hasAllParcels && parcelPairs(state),
      hasAllParcels && parcels,
      "document 2, parcel.trackingNumber",
    ],
  ]);
}

/** A version before kept parcels under the number as it was given too. */
function parcelPairs({ parcels }: ShipmentState): Record<string, string> {
  const rows = Object.entries(parcels).map(([number, { value }]): [string, string] => [
    modelNumber(number),
    `${value.status}:${value.detail}`,
  ]);
  return Object.fromEntries(rows.sort(([one], [other]) => (one < other ? -1 : 1)));
}

/** @param courier whose remaps have all been carried out */
export function compareMappings(
  shipmentId: number,
  facts: readonly Fact[],
  courier: Pick<CourierEntity, "catalogue">,
  isErased: boolean,
): Difference[] {
  const withRules = new Set(
    courier.catalogue.filter(({ rules }) => rules !== undefined).map(({ code }) => code),
  );
  return facts.flatMap((fact) => {
    // What a narrower rule looked at may have been erased, or never kept of a parked event.
    const isCut = isErased || fact.parked === true;
    if (isCut && withRules.has(fact.event.status.code)) return [];
    const expected = modelMapping(courier.catalogue, fact.event);
    const rule = "document 2: status codes are mapped by the catalogue";
    return differencesOf(shipmentId, [
      [`history.${fact.key}.mapping`, fact.mapping, expected, rule],
    ]);
  });
}

export interface DecidedVerdict {
  readonly factKey: string;
  readonly endpointId: string;
  readonly verdict: Verdict;
  /** The delivery that exists; null = none does. */
  readonly delivery: (RawDelivery & { readonly trigger: string; readonly factKey: string }) | null;
}

/**
 * Verdicts, and what became of what was sent.
 * @param facts in the order they were applied
 * @param isReplayable the facts are mapped as they were when the decisions were made, and none has left
 */
export function compareVerdicts(
  shipmentId: number,
  facts: readonly Fact[],
  verdicts: readonly DecidedVerdict[],
  isReplayable: boolean,
): Difference[] {
  const changes = new Map(modelChanges(facts).map((change) => [change.key, change]));
  const decided = verdicts.flatMap((one) =>
    verdictDifferences(shipmentId, one, changes.get(one.factKey), isReplayable),
  );
  return [...decided, ...undecided(shipmentId, facts, verdicts)];
}

function verdictDifferences(
  shipmentId: number,
  { factKey, endpointId, verdict, delivery }: DecidedVerdict,
  change: ModelChange | undefined,
  isReplayable: boolean,
): Difference[] {
  const what = `webhook.${endpointId}.${factKey}`;
  const fault =
    isReplayable && change ? verdictFault(verdict, delivery?.trigger ?? null, change) : null;
  const broken = delivery ? deliveryFault(delivery) : null;
  return differencesOf(shipmentId, [
    [`${what}.verdict`, fault === null || verdict, fault ?? true, "document 3, Trigger semantics"],
    [
      `${what}.delivery`,
      delivery !== null,
      verdict === "send",
      "document 3: a delivery for what is sent, and for nothing else",
    ],
    [`${what}.fact`, delivery?.factKey ?? factKey, factKey, "invariant 6: the frozen fact"],
    [
      `${what}.state`,
      broken === null || (delivery?.state ?? null),
      broken ?? true,
      "document 3, Delivery",
    ],
  ]);
}

/** Invariant 4: an endpoint that decided before and after an event has decided about it too. */
function undecided(
  shipmentId: number,
  facts: readonly Fact[],
  verdicts: readonly DecidedVerdict[],
): Difference[] {
  const byEndpoint = Map.groupBy(verdicts, ({ endpointId }) => endpointId);
  return [...byEndpoint].flatMap(([endpointId, own]) => {
    const keys = new Set(own.map(({ factKey }) => factKey));
    const places = facts.flatMap(({ key }, at) => (keys.has(key) ? [at] : []));
    const between = facts.slice(places[0] ?? 0, (places.at(-1) ?? -1) + 1);
    return between.flatMap(({ key }) =>
      differencesOf(shipmentId, [
        [
          `webhook.${endpointId}.${key}.decided`,
          keys.has(key),
          true,
          "invariant 4: a decision for every change and endpoint",
        ],
      ]),
    );
  });
}

/** A row of the table of deliveries that counts. */
export type StatisticsRow = ModelStatistics;

export function compareStatistics(
  shipmentId: number,
  row: StatisticsRow | null,
  expected: ModelStatistics | null,
): Difference[] {
  const rule = "document 1, Couriers: one row per delivered shipment";
  if (row === null || expected === null) {
    return differencesOf(shipmentId, [["benchmarks.row", row !== null, expected !== null, rule]]);
  }
  const names = Object.keys(expected) as (keyof ModelStatistics)[];
  return differencesOf(
    shipmentId,
    names.map((name): Expectation => [`benchmarks.${name}`, row[name], expected[name], rule]),
  );
}
