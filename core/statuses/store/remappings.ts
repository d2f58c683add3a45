/** The shipments that a change of a courier's mapping concerns, and what it makes of their facts. */

import type { Configuration } from "#core/configuration/store/configuration.ts";
import type { Fact } from "#core/events/rules/fact.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import { idsAfter } from "#core/platform/redis/ids-after.ts";
import { companyKeys, companyPartition, unmappedName } from "#core/platform/redis/keys.ts";
import { partitionCount } from "#core/platform/redis/partitions.ts";
import type { ShipmentState } from "#core/shipments/rules/fold.ts";
import { isDecidedAhead, refold, remapFacts } from "#core/shipments/rules/refold.ts";
import {
  type HotShipment,
  readHotHistories,
  readHotShipments,
} from "#core/shipments/store/shipments.ts";
import { type Catalogue, pairsOf } from "#core/statuses/rules/map-status.ts";
import { type RemapCursor, type RemapEntry, remapped } from "./remaps.ts";

/** Shipments read at once. */
const PAGE = 100;

/** What is looked for. */
export interface RemapScope {
  readonly courier: string;
  readonly codes: ReadonlySet<string>;
  /** `STATUS:detail` that the codes were mapped to: a shipment without any of them, nor an unmapped event, is passed by. */
  readonly pairs: ReadonlySet<string>;
  readonly isScan: boolean;
}

export function scopeOf(
  courier: string,
  entries: readonly RemapEntry[],
  isScan: boolean,
): RemapScope {
  const changed = remapped(entries);
  const before = changed.flatMap((entry) => pairsOf(entry.before));
  return {
    courier,
    codes: new Set(changed.map(({ code }) => code)),
    pairs: new Set(before.map(({ status, detail }) => `${status}:${detail}`)),
    isScan,
  };
}

export interface Remapping {
  readonly from: HotShipment;
  readonly history: readonly Fact[];
  /** The history with its facts mapped as the catalogue says. */
  readonly facts: readonly Fact[];
}

/** Those of the shipments whose facts a catalogue maps otherwise than they were. */
export async function readRemappings(
  redis: Redis,
  scope: RemapScope,
  catalogue: Catalogue,
  ids: readonly number[],
): Promise<Remapping[]> {
  const hot = [...(await readHotShipments(redis, ids)).values()].filter(
    ({ meta, state }) => meta.courier === scope.courier && mayHold(state, scope),
  );
  // Recomputed state and history, from one point in time: a preview shows both, and a remap commits on that version.
  const whole = await readHotHistories(
    redis,
    hot.map(({ id }) => id),
  );
  return whole.flatMap(({ from, history }) => {
    const facts = remapFacts(history, scope.codes, catalogue);
    return facts === null ? [] : [{ from, history, facts }];
  });
}

/** Those of the shipments that an event ahead of its time decides otherwise than their history says, to be refolded from it. */
export async function readHeldAhead(redis: Redis, ids: readonly number[]): Promise<Remapping[]> {
  const hot = [...(await readHotShipments(redis, ids)).values()];
  const ahead = hot.filter(({ state }) => isDecidedAhead(state)).map(({ id }) => id);
  if (ahead.length === 0) return [];
  const whole = await readHotHistories(redis, ahead);
  return whole.flatMap(({ from, history }) => {
    const { state } = refold(from.state, history, from.base);
    return Bun.deepEquals(state, from.state) ? [] : [{ from, history, facts: history }];
  });
}

/** Every shipment of every channel, and none in the archive. */
export const ALL_SHIPMENTS: RemapScope = {
  courier: "",
  codes: new Set(),
  pairs: new Set(),
  isScan: true,
};

function mayHold({ unmapped, pairs }: ShipmentState, scope: RemapScope): boolean {
  return unmapped > 0 || pairs.some((pair) => scope.pairs.has(pair));
}

export interface ShipmentPage {
  readonly ids: readonly number[];
  /** They stand in a list of unmapped events, which archived shipments are in too. */
  readonly mayBeArchived: boolean;
  /** Those of them that Redis has were looked at before, unless they have just come back from the archive. */
  readonly isRepetition: boolean;
  /** Where to go on after this page. */
  readonly cursor: RemapCursor;
}

/**
 * Shipments that a remap may concern, in pages: those with unmapped events of the codes; in a scan after all of every channel, which
 * archived ones do not stand in.
 * The sets are walked in the order of their names and of the ids, so that a cursor finds its position again in sets that
 * shrink and grow meanwhile.
 */
export async function* shipmentsToRemap(
  redis: Redis,
  configuration: Configuration,
  scope: RemapScope,
  from: RemapCursor,
): AsyncGenerator<ShipmentPage> {
  for (let partition = from.partition; partition < partitionCount("k"); partition += 1) {
    const { isScan } = scope;
    const channels = isScan ? channelSets(configuration, partition) : [];
    const lists = new Set(await unmappedSets(redis, partition, scope));
    const isResumed = partition === from.partition;
    for (const key of [...channels.sort(), ...[...lists].sort()]) {
      const mayBeArchived = lists.has(key);
      const isRepetition = isScan && mayBeArchived;
      if (isResumed && key < from.key) continue;
      let shipmentId = isResumed && key === from.key ? from.shipmentId : 0;
      let place = 0;
      for (;;) {
        const page = await idsAfter(redis, key, { shipmentId, place }, PAGE);
        const { ids } = page;
        place = page.place;
        shipmentId = ids.at(-1) ?? shipmentId;
        const cursor = { partition, key, shipmentId };
        if (ids.length > 0) yield { ids, mayBeArchived, isRepetition, cursor };
        if (ids.length < PAGE) break;
      }
    }
  }
}

function channelSets({ channels }: Configuration, partition: number): string[] {
  return [...channels.values()]
    .filter(({ companyId }) => companyPartition(companyId) === partition)
    .map(({ id }) => companyKeys(partition).index(id, "id"));
}

async function unmappedSets(
  redis: Redis,
  partition: number,
  { courier, codes }: RemapScope,
): Promise<string[]> {
  const keys = companyKeys(partition);
  const wanted = [...codes];
  if (wanted.length === 0) return [];
  const present = await redis.smIsMember(
    keys.unmappedCodes,
    wanted.map((code) => unmappedName(courier, code)),
  );
  return wanted.filter((_, at) => present[at]).map((code) => keys.unmappedShipments(courier, code));
}
