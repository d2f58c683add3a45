/**
 * Remaps: a change of a courier's mapping and the refolding of the shipments it concerns. Written down before it takes
 * effect, so that whoever dies in the middle is continued:
 *
 * | state     | means                                                     | left by                              |
 * |-----------|-----------------------------------------------------------|--------------------------------------|
 * | announced | written down; the catalogue may not say it yet            | `activateRemap`, under the setup lock |
 * | running   | every new fact is remapped; the old ones are processed     | the processors, page by page         |
 * | done      | every fact of the codes is mapped as the catalogue says    | -                                    |
 *
 * Remaps run one after the other, the oldest first.
 */

import type { CourierEntity } from "#core/configuration/rules/entities.ts";
import { bumpVersion, readEntity, saveEntity } from "#core/configuration/store/entities.ts";
import { expectSetupLock } from "#core/configuration/store/setup-lock.ts";
import { type Redis, run, script } from "#core/platform/redis/client.ts";
import { companyKeys, REMAP_KEYS } from "#core/platform/redis/keys.ts";
import { type Lock, LockLost, takeLock } from "#core/platform/redis/lock.ts";
import { partitionsOf } from "#core/platform/redis/partitions.ts";
import { limit } from "#core/platform/schema/limit.ts";
import { type CatalogueEntry, pairsOf, sameMapping } from "#core/statuses/rules/map-status.ts";
import saveSource from "./save-remap.lua" with { type: "text" };

const saveScript = script(saveSource);

/** Remaps kept of one courier, the newest; an older one is forgotten, also where it is not done. */
const REMAPS_KEPT = limit(1_000, "remaps listed per courier", "the oldest are dropped");
/** If the process that runs a remap dies, another takes over after this long; waiting processes poll. */
const LEASE = {
  leaseMs: limit(
    10_000,
    "lease of the remaps",
    "renewed after a third; others wait for as long if the holder is killed",
  ),
  waitLimitMs: 0,
};

/** Remaps read together. */
const REMAPS_AT_ONCE = 100;

export interface RemapEntry {
  readonly code: string;
  /** Null = the catalogue has no entry of the code. */
  readonly before: CatalogueEntry | null;
  readonly after: CatalogueEntry | null;
}

export interface RemapOrder {
  readonly courier: string;
  /** Who wanted it: `operator` or `setup file`. */
  readonly by: string;
  readonly entries: readonly RemapEntry[];
  /** The remap that this one takes back; null otherwise. */
  readonly reverts: string | null;
}

export type RemapState = "announced" | "running" | "done";

/** Where the work stands: everything up to it is done. */
export interface RemapCursor {
  readonly partition: number;
  /** Sorted set that is walked, and the last shipment of it. */
  readonly key: string;
  readonly shipmentId: number;
}

export interface RemapProgress {
  readonly cursor: RemapCursor;
  /** Whether all shipments of the courier are looked at, or those with unmapped events of the codes. */
  readonly isScan: boolean;
  /** Shipments looked at. */
  readonly examined: number;
  /** Shipments whose history was remapped, and those of them whose current pair has changed. */
  readonly shipments: number;
  readonly statesChanged: number;
  /** Events remapped. */
  readonly events: number;
}

export interface Remap extends RemapOrder {
  readonly id: string;
  readonly createdAtMs: number;
  readonly state: RemapState;
  readonly progress: RemapProgress;
  readonly finishedAtMs: number | null;
}

export const NO_PROGRESS: RemapProgress = {
  cursor: { partition: 0, key: "", shipmentId: 0 },
  isScan: false,
  examined: 0,
  shipments: 0,
  statesChanged: 0,
  events: 0,
};

/** Writes a remap down; it takes effect with `activateRemap`. Under the setup lock. */
export async function announceRemap(
  redis: Redis,
  order: RemapOrder,
  nowMs: number,
): Promise<string> {
  await expectSetupLock();
  const number = await redis.incr(REMAP_KEYS.next);
  const id = `rmp_${number}`;
  const list = REMAP_KEYS.ofCourier(order.courier);
  const outdated = await redis.lRange(list, REMAPS_KEPT - 1, -1);
  const transaction = redis
    .multi()
    .hSet(REMAP_KEYS.remap(id), {
      order: JSON.stringify(order),
      state: "announced",
      progress: JSON.stringify({ ...NO_PROGRESS, isScan: needsScan(order.entries) }),
      createdAtMs: String(nowMs),
    })
    .lPush(list, id)
    .lTrim(list, 0, REMAPS_KEPT - 1)
    .zAdd(REMAP_KEYS.open, { score: number, value: id });
  for (const old of outdated) transaction.del(REMAP_KEYS.remap(old));
  await transaction.exec();
  return id;
}

/** Facts of a code that had a mapping are in no list: all shipments of the courier are looked at. */
export function needsScan(entries: readonly RemapEntry[]): boolean {
  return remapped(entries).some(({ before }) => pairsOf(before).length > 0);
}

/** The entries that map an event otherwise than before: those of an import may only describe a code otherwise. */
export function remapped(entries: readonly RemapEntry[]): RemapEntry[] {
  return entries.filter(({ before, after }) => !sameMapping(before, after));
}

/**
 * Makes a remap count for every new fact. Under the setup lock, after the catalogue says it.
 * @param version of the configuration that says it: facts mapped with an older one are not committed from now on
 */
export async function activateRemap(redis: Redis, id: string, version: number): Promise<void> {
  await expectSetupLock();
  const partitions = partitionsOf("k").map(companyKeys);
  await Promise.all(partitions.map(({ mappingFloor }) => redis.set(mappingFloor, String(version))));
  const untold = await Promise.all(partitions.map(({ ledger }) => redis.hGet(ledger, "untold")));
  const key = REMAP_KEYS.remap(id);
  if (untold.some((count) => Number(count ?? 0) > 0)) {
    await redis.hSet(key, "progress", JSON.stringify({ ...NO_PROGRESS, isScan: true }));
  }
  await redis.hSet(key, "state", "running");
}

/** Writes the entries of a remap into the catalogue, notifies every process and starts it. Under the setup lock. */
export async function applyRemap(redis: Redis, id: string, order: RemapOrder): Promise<void> {
  const courier = await readEntity(redis, "courier", order.courier);
  if (!courier) throw new Error(`no courier ${order.courier}`);
  await saveCatalogue(redis, courier, order.entries);
  await activateRemap(redis, id, await bumpVersion(redis));
}

export async function saveCatalogue(
  redis: Redis,
  courier: CourierEntity,
  changes: ReadonlyArray<Pick<RemapEntry, "code" | "after">>,
): Promise<void> {
  const entries = new Map(courier.catalogue.map((entry) => [entry.code, entry]));
  for (const { code, after } of changes) {
    if (after) entries.set(code, after);
    else entries.delete(code);
  }
  const catalogue = [...entries.values()];
  await saveEntity(redis, "courier", courier.code, { ...courier, catalogue });
}

export async function readRemap(redis: Redis, id: string): Promise<Remap | null> {
  if (!/^rmp_\d{1,15}$/.test(id)) return null;
  const { order, state, progress, createdAtMs, finishedAtMs } = await redis.hGetAll(
    REMAP_KEYS.remap(id),
  );
  if (order === undefined || progress === undefined) return null;
  return {
    ...(JSON.parse(order) as RemapOrder),
    id,
    createdAtMs: Number(createdAtMs),
    state: state as RemapState,
    progress: JSON.parse(progress),
    finishedAtMs: finishedAtMs === undefined ? null : Number(finishedAtMs),
  };
}

/** Remaps of a courier, the newest first. */
export async function listRemaps(
  redis: Redis,
  courier: string,
  offset: number,
  limit: number,
): Promise<Remap[]> {
  const ids = await redis.lRange(REMAP_KEYS.ofCourier(courier), offset, offset + limit - 1);
  const found = await Promise.all(ids.map((id) => readRemap(redis, id)));
  return found.filter((remap) => remap !== null);
}

/** Remaps of a courier that were made after a time (UTC milliseconds), the newest first, as far as they are kept. */
export async function remapsAfter(redis: Redis, courier: string, atMs: number): Promise<Remap[]> {
  const found: Remap[] = [];
  for (let offset = 0; ; offset += REMAPS_AT_ONCE) {
    const page = await listRemaps(redis, courier, offset, REMAPS_AT_ONCE);
    found.push(...page.filter(({ createdAtMs }) => createdAtMs > atMs));
    const isOlder = page.some(({ createdAtMs }) => createdAtMs <= atMs);
    if (isOlder || page.length < REMAPS_AT_ONCE) return found;
  }
}

export function countRemaps(redis: Redis, courier: string): Promise<number> {
  return redis.lLen(REMAP_KEYS.ofCourier(courier));
}

/** The oldest remap that is not done. */
export async function nextRemap(redis: Redis): Promise<Remap | null> {
  for (;;) {
    const [id] = await redis.zRange(REMAP_KEYS.open, 0, 0);
    if (id === undefined) return null;
    const remap = await readRemap(redis, id);
    if (remap) return remap;
    await redis.zRem(REMAP_KEYS.open, id);
  }
}

/** @throws {LockLost} if another process runs it by now; nothing is written then */
export function saveProgress(
  redis: Redis,
  lease: Lock,
  id: string,
  progress: RemapProgress,
): Promise<void> {
  return save(redis, lease, id, JSON.stringify(progress), "");
}

/** @throws {LockLost} */
export function finishRemap(redis: Redis, lease: Lock, id: string, nowMs: number): Promise<void> {
  return save(redis, lease, id, "", String(nowMs));
}

/**
 * Where the one-time refold of shipments that events ahead of their time decide stands: a remap of no code, in no list, which
 * whoever asks first begins. A remap that an operator orders goes before it.
 * @returns null = it is done
 */
export async function readRefold(redis: Redis): Promise<RemapProgress | null> {
  const progress = JSON.stringify({ ...NO_PROGRESS, isScan: true });
  const key = REMAP_KEYS.refold;
  const [, , fields] = await redis
    .multi()
    .hSetNX(key, "progress", progress)
    .hSetNX(key, "state", "running")
    .hGetAll(key)
    .exec();
  const refold = fields as unknown as Readonly<Record<string, string>>;
  return refold["state"] === "done" ? null : JSON.parse(refold["progress"] ?? progress);
}

/** @throws {LockLost} */
export function saveRefold(redis: Redis, lease: Lock, progress: RemapProgress): Promise<void> {
  return save(redis, lease, "", JSON.stringify(progress), "", REMAP_KEYS.refold);
}

/** @throws {LockLost} */
export function finishRefold(redis: Redis, lease: Lock, nowMs: number): Promise<void> {
  return save(redis, lease, "", "", String(nowMs), REMAP_KEYS.refold);
}

async function save(
  redis: Redis,
  { owner }: Lock,
  id: string,
  progress: string,
  finishedAtMs: string,
  key = REMAP_KEYS.remap(id),
): Promise<void> {
  const keys = [REMAP_KEYS.lease, key, REMAP_KEYS.open];
  const kept = await run<number>(redis, saveScript, keys, [owner, id, progress, finishedAtMs]);
  if (kept !== 1) throw new LockLost();
}

/**
 * The lock for running remaps, one process at a time; two would do no harm, only double the work. Null = another process
 * has it.
 */
export function takeRemapLease(redis: Redis): Promise<Lock | null> {
  return takeLock(redis, REMAP_KEYS.lease, LEASE);
}
