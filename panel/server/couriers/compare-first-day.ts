/** The first-day comparison of a courier: the lines of a file beside the events that it has sent of the same tracking numbers. */

import { channelsOfShipments, readAnywhere } from "#core/archive/store/archive.ts";
import {
  type ComparedLine,
  compareTracking,
  type ReceivedEvent,
  SAME_TIME_MS,
  type TrackedLine,
} from "#core/events/rules/compare-tracking.ts";
import type { Fact } from "#core/events/rules/fact.ts";
import { matchingNumber } from "#core/events/rules/reference.ts";
import { resolveReferences } from "#core/events/store/references.ts";
import { factKeyOf } from "#core/events/store/seen.ts";
import { chunks } from "#core/platform/process/chunks.ts";
import { turns } from "#core/platform/process/next-turn.ts";
import { trackingReference } from "#core/platform/redis/keys.ts";
import { limit } from "#core/platform/schema/limit.ts";
import { NO_ARCHIVE } from "#core/search/store/archive-search.ts";
import { readHistories } from "#core/shipments/store/shipments.ts";
import type { PanelDeps } from "#panel/server/caller.ts";

/** Numbers that are looked up in one go. */
const NUMBERS_AT_ONCE = 100;
/** Whose histories are read in one go: each may be of 1,000 events. */
const SHIPMENTS_AT_ONCE = 10;
export const FURTHER_LISTED = limit(
  1_000,
  "further events that a first-day comparison lists",
  "all are counted",
);

export type FirstDayLine =
  | ComparedLine
  | (TrackedLine & { readonly result: "unknownNumber"; readonly received: null });

export interface FurtherEvent extends ReceivedEvent {
  readonly trackingNumber: string;
}

export interface FirstDay {
  /** In the order of the file. */
  readonly lines: readonly FirstDayLine[];
  /** Received within the time of the file, and no line says it. */
  readonly further: readonly FurtherEvent[];
}

/** @throws {Problem} 503 ARCHIVE_UNAVAILABLE */
export async function compareFirstDay(
  deps: PanelDeps,
  courier: string,
  tracked: readonly TrackedLine[],
): Promise<FirstDay> {
  const times = tracked.map(({ occurredAtMs }) => occurredAtMs);
  const fromMs = times.reduce((one, other) => Math.min(one, other), Number.MAX_SAFE_INTEGER);
  const toMs = times.reduce((one, other) => Math.max(one, other), 0);
  const byNumber = [
    ...Map.groupBy(tracked, ({ trackingNumber }) => matchingNumber(trackingNumber)),
  ];
  const lines: FirstDayLine[] = [];
  const further: FurtherEvent[] = [];
  const turn = turns();
  for (const part of chunks(byNumber, NUMBERS_AT_ONCE)) {
    const numbers = part.map(([number]) => number);
    const received = await receivedOf(deps, courier, numbers);
    for (const [number, own] of part) {
      if (turn.due()) await turn.take();
      const trackingNumber = own[0]?.trackingNumber ?? number;
      const events = received.get(number);
      if (!events) {
        const unknown = { result: "unknownNumber", received: null } as const;
        lines.push(...own.map((line) => ({ ...line, ...unknown })));
        continue;
      }
      const compared = compareTracking(own, events);
      lines.push(...compared.lines);
      for (const event of compared.left) {
        const { occurredAtMs } = event;
        const isWithin = occurredAtMs > fromMs - SAME_TIME_MS && occurredAtMs < toMs + SAME_TIME_MS;
        if (isWithin) further.push({ ...event, trackingNumber });
      }
    }
  }
  return { lines: lines.sort((one, other) => one.line - other.line), further };
}

/** Events of the courier by the matching form of a number; a number that means no shipment of the courier is absent. */
async function receivedOf(
  deps: PanelDeps,
  courier: string,
  numbers: readonly string[],
): Promise<Map<string, ReceivedEvent[]>> {
  const { redis, live, archive = NO_ARCHIVE } = deps;
  const references = numbers.map((number) => trackingReference(courier, number));
  const candidates = await resolveReferences(redis, references);
  const idsOf = references.map(({ key }) =>
    (candidates.get(key) ?? []).map(({ shipmentId }) => shipmentId),
  );
  const histories = new Map<number, History>();
  for (const ids of chunks([...new Set(idsOf.flat())], SHIPMENTS_AT_ONCE)) {
    const found = await readAnywhere<Fact[]>(redis, archive, ids, {
      channelIds: channelsOfShipments(live.configuration(), ids),
      readHot: (some) => readHistories(redis, some),
      thaw: ({ facts }) => facts.facts(),
      withoutDamaged: true,
    });
    for (const [id, facts] of found) histories.set(id, historyOf(facts));
  }
  const received = new Map<string, ReceivedEvent[]>();
  const turn = turns();
  for (const [at, number] of numbers.entries()) {
    if (turn.due()) await turn.take();
    const ids = idsOf[at] ?? [];
    if (ids.length === 0) continue;
    const facts = ids.flatMap((id) => histories.get(id)?.of(number) ?? []);
    const own = facts.filter(({ key, event }) => key === factKeyOf(courier, event.eventId));
    // Several shipments have the same event where several merchants follow the parcel.
    const byKey = new Map(own.map((fact) => [fact.key, receivedEvent(fact)]));
    received.set(number, [...byKey.values()]);
  }
  return received;
}

interface History {
  /**
   * Facts of the parcel with the number: events that name it, or the number that it had before or has got since, and events
   * that name the shipment alone.
   */
  readonly of: (number: string) => Fact[];
}

function historyOf(facts: readonly Fact[]): History {
  const parcelOf = parcels(facts);
  const named = facts.map(({ event: { trackingNumber, parcel } }) =>
    [trackingNumber, parcel?.trackingNumber].flatMap((one) =>
      one === undefined ? [] : [parcelOf(matchingNumber(one))],
    ),
  );
  return {
    of(number) {
      const wanted = parcelOf(number);
      return facts.filter((_, at) => named[at]?.length === 0 || named[at]?.includes(wanted));
    },
  };
}

/** @returns the number that stands for all that a parcel has had; of numbers that change in a circle, one of them */
function parcels(history: readonly Fact[]): (number: string) => string {
  const next = new Map<string, string>();
  for (const { event } of history) {
    const { trackingNumber, trackingNumberChange } = event;
    if (trackingNumber !== undefined && trackingNumberChange)
      next.set(
        matchingNumber(trackingNumber),
        matchingNumber(trackingNumberChange.newTrackingNumber),
      );
  }
  const known = new Map<string, string>();
  return (number) => {
    const passed = new Set<string>();
    let last = number;
    while (!known.has(last) && !passed.has(last) && next.has(last)) {
      passed.add(last);
      last = next.get(last) ?? last;
    }
    const found = known.get(last) ?? last;
    for (const one of passed) known.set(one, found);
    return found;
  };
}

function receivedEvent({ event, occurredAtMs }: Fact): ReceivedEvent {
  return { eventId: event.eventId, code: event.status.code, occurredAtMs };
}
