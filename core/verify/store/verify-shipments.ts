/**
 * Holds a running installation against the reference model. It reads only, page by page, and rests after each for nine times as
 * long as it worked. Shipments change while they are read: what differs is read again until it agrees, or has differed in every
 * look.
 */

import { channelsOfShipments } from "#core/archive/store/archive.ts";
import type { Configuration } from "#core/configuration/store/configuration.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import { idsAfter, type Position } from "#core/platform/redis/ids-after.ts";
import {
  companyKeys,
  companyPartition,
  indexMember,
  REMAP_KEYS,
} from "#core/platform/redis/keys.ts";
import { limit } from "#core/platform/schema/limit.ts";
import {
  type HotHistory,
  readHotHistories,
  readShipments,
  type StoredShipment,
} from "#core/shipments/store/shipments.ts";
import { type Remap, remapsAfter } from "#core/statuses/store/remaps.ts";
import {
  compareMappings,
  compareState,
  compareVerdicts,
  type Difference,
  differencesOf,
} from "#core/verify/rules/compare.ts";
import { readBalance } from "#core/webhooks/store/deliveries/ledger.ts";
import { compareIndices, compareReferences, readVerdicts } from "./read-evidence.ts";

/** Shipments compared between two rests. */
const PAGE = limit(
  50,
  "shipments that a comparison with the reference model reads at once",
  "the next page",
);
/** Work of a tenth of a core at most: the rest after each page is so many times as long as its work. */
const REST = 9;
const LOOKS_MS = [250, 500, 1_000, 2_000, 4_000, 8_000];
/** Differences that are looked at again, and listed. */
const LISTED = limit(
  1_000,
  "differences listed by a comparison with the reference model",
  "further ones are counted",
);

export interface VerifyDeps {
  readonly redis: Redis;
  /** The configuration as it is now. */
  readonly refresh: () => Promise<Configuration>;
  readonly now: () => number;
  /** What ClickHouse holds; null = it is not looked at. */
  readonly analytics: AnalyticsEvidence | null;
  readonly sleep?: (ms: number) => Promise<unknown>;
  /** Rest after each page, in times of its work. */
  readonly rest?: number;
  /** Looks at what differs, and the waits before them. */
  readonly looksMs?: readonly number[];
}

/** A shipment as it is in Redis. */
export interface KeptWhole extends HotHistory {
  readonly shipment: StoredShipment;
}

/** Whatever ClickHouse says of shipments, compared by those who can read it. */
export interface AnalyticsEvidence {
  /** @param kept shipments as they are in Redis */
  readonly compareHot: (kept: readonly KeptWhole[]) => Promise<Difference[]>;
  /** A page of the archive behind a shipment; null = the end. */
  readonly archivedAfter: (channelId: number, after: number) => Promise<readonly number[] | null>;
  readonly compareArchived: (channelId: number, ids: readonly number[]) => Promise<Difference[]>;
  /** How many of each status the archive has. */
  readonly compareCounts: (companyId: number, channelId: number) => Promise<Difference[]>;
}

export interface Verified {
  /** Shipments compared. */
  readonly shipments: number;
  readonly archived: number;
  /** Those whose history is over its limit: their state cannot be recomputed, and all else was compared. */
  readonly trimmed: number;
  /** Differences found, of which `LISTED` are listed. */
  readonly count: number;
  readonly differences: readonly Difference[];
}

export interface VerifyTerms {
  /** Part of the shipments, 1 = all. */
  readonly share: number;
  readonly isStopping?: () => boolean;
}

interface Tally {
  shipments: number;
  archived: number;
  trimmed: number;
  count: number;
  readonly suspects: Difference[];
}

export async function verifyInstallation(deps: VerifyDeps, terms: VerifyTerms): Promise<Verified> {
  const tally: Tally = { shipments: 0, archived: 0, trimmed: 0, count: 0, suspects: [] };
  const { isStopping = () => false } = terms;
  for (const { id: channelId, companyId } of (await deps.refresh()).channels.values()) {
    for await (const ids of sampled(hotPages(deps.redis, companyId, channelId), terms.share)) {
      if (isStopping()) break;
      await paced(deps, async () => {
        const found = await compareHot(deps, ids);
        tally.shipments += found.shipments;
        tally.trimmed += found.trimmed;
        suspect(tally, found.differences);
      });
    }
    for await (const ids of sampled(archivedPages(deps, channelId), terms.share)) {
      if (isStopping()) break;
      await paced(deps, async () => {
        tally.archived += ids.length;
        suspect(tally, (await deps.analytics?.compareArchived(channelId, ids)) ?? []);
      });
    }
    if (!isStopping()) suspect(tally, await compareSizes(deps, companyId, channelId));
  }
  suspect(tally, await compareLedger(deps));
  const differences = await lasting(deps, tally.suspects);
  const unlisted = tally.count - tally.suspects.length;
  const { shipments, archived, trimmed } = tally;
  return { shipments, archived, trimmed, count: differences.length + unlisted, differences };
}

function suspect(tally: Tally, found: readonly Difference[]): void {
  tally.count += found.length;
  tally.suspects.push(...found.slice(0, LISTED - tally.suspects.length));
}

async function paced(
  { sleep = Bun.sleep, rest = REST }: VerifyDeps,
  work: () => Promise<void>,
): Promise<void> {
  const startMs = performance.now();
  await work();
  await sleep((performance.now() - startMs) * rest);
}

async function* hotPages(redis: Redis, companyId: number, channelId: number) {
  const key = companyKeys(companyPartition(companyId)).index(channelId, "id");
  let position: Position = { shipmentId: 0, place: 0 };
  for (;;) {
    const { ids, place } = await idsAfter(redis, key, position, PAGE);
    if (ids.length > 0) yield ids;
    if (ids.length < PAGE) return;
    position = { shipmentId: ids.at(-1) ?? 0, place };
  }
}

async function* archivedPages({ analytics }: VerifyDeps, channelId: number) {
  if (analytics === null) return;
  let after = 0;
  for (;;) {
    const ids = await analytics.archivedAfter(channelId, after);
    if (ids === null || ids.length === 0) return;
    yield ids;
    after = ids.at(-1) ?? after;
  }
}

async function* sampled(pages: AsyncIterable<readonly number[]>, share: number) {
  for await (const page of pages) {
    const ids = share >= 1 ? page : page.filter(() => Math.random() < share);
    if (ids.length > 0) yield ids;
  }
}

interface Compared {
  readonly shipments: number;
  readonly trimmed: number;
  readonly differences: readonly Difference[];
}

async function compareHot(deps: VerifyDeps, ids: readonly number[]): Promise<Compared> {
  const { redis } = deps;
  const configuration = await deps.refresh();
  const [kept, stored] = await Promise.all([
    readHotHistories(redis, ids),
    readShipments(redis, ids),
  ]);
  const records = new Map(stored.map((one) => [one.record.id, one]));
  const found = new Set(kept.map(({ from }) => from.id));
  const missing = ids.filter((id) => !found.has(id));
  const differences = missing.map(unknownMember);
  const shipments = kept.map(({ from }) => from);
  differences.push(...(await compareReferences(redis, configuration, shipments)));
  const remaps = await readRemaps(redis, kept, records);
  const context = { deps, configuration, remaps };
  const compared = kept.map((one) => compareOne(context, one, records.get(one.from.id)));
  differences.push(...(await Promise.all(compared)).flat());
  const whole = kept.flatMap((one) => {
    const shipment = records.get(one.from.id);
    return shipment ? [{ ...one, shipment }] : [];
  });
  if (deps.analytics) differences.push(...(await deps.analytics.compareHot(whole)));
  return {
    shipments: kept.length,
    trimmed: kept.filter(({ from }) => from.state.dropped > 0).length,
    differences,
  };
}

/** What comparisons of a page share. */
interface PageContext {
  readonly deps: VerifyDeps;
  readonly configuration: Configuration;
  readonly remaps: Remaps;
}

interface Remaps {
  /** By courier, those since the oldest of its shipments was created. */
  readonly of: ReadonlyMap<string, readonly Remap[]>;
  /** Some are not carried out yet. */
  readonly isOpen: boolean;
}

async function readRemaps(
  redis: Redis,
  kept: readonly HotHistory[],
  records: ReadonlyMap<number, StoredShipment>,
): Promise<Remaps> {
  const byCourier = Map.groupBy(kept, ({ from }) => from.meta.courier);
  const read = [...byCourier].map(async ([courier, own]) => {
    const created = own.map(({ from }) => records.get(from.id)?.record.createdAtMs ?? 0);
    return [courier, await remapsAfter(redis, courier, Math.min(...created))] as const;
  });
  return { of: new Map(await Promise.all(read)), isOpen: (await redis.zCard(REMAP_KEYS.open)) > 0 };
}

/** No event of the shipment has been mapped again since it was applied, and none was replaced: what each did can be told again. */
function isAsDecided(
  { of }: Remaps,
  { from, history }: HotHistory,
  shipment: StoredShipment | undefined,
): boolean {
  const codes = new Set(history.map(({ event }) => event.status.code));
  const isRemapped = (of.get(from.meta.courier) ?? []).some(
    ({ createdAtMs, entries }) =>
      createdAtMs >= (shipment?.record.createdAtMs ?? 0) &&
      entries.some(({ code }) => codes.has(code)),
  );
  return !isRemapped && from.state.dropped === 0 && isInOrderOfReceipt(history);
}

async function compareOne(
  { deps, configuration, remaps }: PageContext,
  kept: HotHistory,
  shipment: StoredShipment | undefined,
): Promise<Difference[]> {
  const { from, history } = kept;
  const { id, meta, state } = from;
  const courier = configuration.couriers.get(meta.courier);
  const [{ verdicts, lists }, indices] = await Promise.all([
    readVerdicts(deps.redis, id, deps.now()),
    shipment ? compareIndices(deps.redis, { from, shipment }) : [],
  ]);
  const isWhole = state.dropped === 0;
  const catalogue = [...(courier?.catalogue.values() ?? [])];
  return [
    ...(isWhole ? compareState(id, state, history) : []),
    ...(courier && !remaps.isOpen && isWhole
      ? compareMappings(id, history, { catalogue }, meta.isErased === true)
      : []),
    ...indices,
    ...compareVerdicts(id, history, verdicts, isAsDecided(remaps, kept, shipment)),
    ...lists,
  ];
}

function isInOrderOfReceipt(history: HotHistory["history"]): boolean {
  return history.every(
    ({ receivedAtMs, parked, againMs }, at) =>
      parked !== true &&
      againMs === undefined &&
      receivedAtMs >= (history[at - 1]?.receivedAtMs ?? 0),
  );
}

/** Members of an index that no shipment accounts for. */
async function compareSizes(
  { redis, analytics }: VerifyDeps,
  companyId: number,
  channelId: number,
): Promise<Difference[]> {
  const { index } = companyKeys(companyPartition(companyId));
  const [ids, ships, updates] = await Promise.all([
    redis.zCard(index(channelId, "id")),
    redis.zCard(index(channelId, "ship")),
    redis.zCard(index(channelId, "upd")),
  ]);
  const rule = "document 1, search: every index has the channel's shipments, and no others";
  return [
    ...differencesOf(null, [
      [`channel.${channelId}.ship`, ships, ids, rule],
      [`channel.${channelId}.upd`, updates, ids, rule],
    ]),
    ...((await analytics?.compareCounts(companyId, channelId)) ?? []),
  ];
}

async function compareLedger({ redis, refresh }: VerifyDeps): Promise<Difference[]> {
  const { difference } = await readBalance(redis, await refresh());
  return differencesOf(
    null,
    Object.entries(difference).map(
      ([line, rest]) => [`ledger.${line}`, rest, 0, "invariant 10"] as const,
    ),
  );
}

/** Those that are there in each look. */
async function lasting(deps: VerifyDeps, suspects: readonly Difference[]): Promise<Difference[]> {
  const { sleep = Bun.sleep, looksMs = LOOKS_MS } = deps;
  let left = [...suspects];
  for (const waitMs of looksMs) {
    if (left.length === 0) return left;
    await sleep(waitMs);
    const again = await lookAgain(deps, left);
    const known = new Set(left.map(placeOf));
    left = again.filter((one) => known.has(placeOf(one)));
  }
  return left;
}

function placeOf({ shipmentId, what }: Difference): string {
  return `${shipmentId} ${what}`;
}

async function lookAgain(deps: VerifyDeps, left: readonly Difference[]): Promise<Difference[]> {
  const configuration = await deps.refresh();
  const ids = [...new Set(left.flatMap(({ shipmentId }) => shipmentId ?? []))];
  const found: Difference[] = [];
  for (let from = 0; from < ids.length; from += PAGE) {
    const part = ids.slice(from, from + PAGE);
    const { differences } = await compareHot(deps, part);
    found.push(...differences.filter(({ what }) => what !== UNKNOWN));
    const missing = differences.flatMap(({ what, shipmentId }) =>
      what === UNKNOWN && shipmentId !== null ? [shipmentId] : [],
    );
    found.push(...(await unaccounted(deps, configuration, missing)));
    const onBothSides = left.flatMap(({ what, shipmentId }) =>
      what.startsWith("archive.") && shipmentId !== null ? [shipmentId] : [],
    );
    found.push(...(await archivedAgain(deps, configuration, [...missing, ...onBothSides])));
  }
  for (const { id, companyId } of configuration.channels.values()) {
    found.push(...(await compareSizes(deps, companyId, id)));
  }
  return [...found, ...(await compareLedger(deps))];
}

async function archivedAgain(
  { analytics }: VerifyDeps,
  configuration: Configuration,
  ids: readonly number[],
): Promise<Difference[]> {
  if (analytics === null || ids.length === 0) return [];
  const found: Difference[] = [];
  for (const channelId of channelsOfShipments(configuration, ids)) {
    found.push(...(await analytics.compareArchived(channelId, [...new Set(ids)])));
  }
  return found;
}

/** Members of an index that have no shipment, and have not left the index with it meanwhile. */
async function unaccounted(
  { redis }: VerifyDeps,
  configuration: Configuration,
  ids: readonly number[],
): Promise<Difference[]> {
  const found: Difference[] = [];
  for (const { id: channelId, companyId } of ids.length === 0
    ? []
    : configuration.channels.values()) {
    const key = companyKeys(companyPartition(companyId)).index(channelId, "id");
    for (const id of ids) {
      if ((await redis.zScore(key, indexMember(id))) !== null) found.push(unknownMember(id));
    }
  }
  return found;
}

const UNKNOWN = "index.shipment";

function unknownMember(shipmentId: number): Difference {
  const rule = "document 1, search: what is indexed exists";
  return { shipmentId, what: UNKNOWN, found: null, expected: shipmentId, rule };
}
