/** Shipments in the company's partition: create, read, commit. The state's rules are in `core/shipments/rules/fold.ts`. */

import type { LaneFacts } from "#core/benchmarks/rules/lane.ts";
import type { Fact } from "#core/events/rules/fact.ts";
import { chunks, chunksBySize } from "#core/platform/process/chunks.ts";
import { turns } from "#core/platform/process/next-turn.ts";
import {
  binary,
  perPart,
  perPartition,
  type Redis,
  run,
  script,
} from "#core/platform/redis/client.ts";
import { type DeclaredKeys, declaredKeys } from "#core/platform/redis/declared-keys.ts";
import {
  companyKeys,
  indexMember,
  logCountsKey,
  shipmentPartition,
  unmappedName,
} from "#core/platform/redis/keys.ts";
import { type ListItem, packList } from "#core/platform/redis/packed-list.ts";
import { readFields } from "#core/platform/redis/read-fields.ts";
import { scriptOfParts } from "#core/platform/redis/script-parts.ts";
import { announce } from "#core/platform/redis/wake.ts";
import { limit } from "#core/platform/schema/limit.ts";
import { repeatedHour } from "#core/platform/time/rome-time.ts";
import type { ShipmentState } from "#core/shipments/rules/fold.ts";
import type { Base } from "#core/shipments/rules/history-limit.ts";
import { type UnmappedDelta, unmappedDeltas } from "#core/shipments/rules/refold.ts";
import { type ShipmentMeta, type ShipmentRecord, shipDay } from "#core/shipments/rules/shipment.ts";
import companyClock from "#core/shipments/store/parts/company-clock.lua" with { type: "text" };
import rowLog from "#core/shipments/store/parts/row-log.lua" with { type: "text" };
import unmappedCodes from "#core/shipments/store/parts/unmapped-codes.lua" with { type: "text" };
import { STATUSES } from "#core/statuses/rules/status.ts";
import { type Change, encodeChange } from "./change-log.ts";
import { BYTES_PER_ROW, DAY_SHIFT, ROWS_PER_BLOCK } from "./columns.ts";
import commitSource from "./commit.lua" with { type: "text" };
import {
  type HistoryChange,
  historyOf,
  partsOf,
  REPACKED_FIELDS,
  repacks,
} from "./history-parts.ts";
import readHashesSource from "./read-hashes.lua" with { type: "text" };
import { decodeHot, decodeRecord, encodeHot, encodeRecord, isUnderWay } from "./shipment-codec.ts";
import takeNumbersSource from "./take-numbers.lua" with { type: "text" };

export const commitScript = scriptOfParts(commitSource, {
  "row-log": rowLog,
  "company-clock": companyClock,
  "unmapped-codes": unmappedCodes,
});
const readHashesScript = script(readHashesSource);
const takeNumbersScript = script(takeNumbersSource);

/** Shipments one script call reads or writes: keeps a call under about 5 ms of Redis. */
export const SHIPMENTS_PER_CALL = limit(100, "shipments of a commit", "the next call");
/** Changes one commit call writes, and its entry of the change log holds; those of one shipment stay together. */
const CHANGES_PER_CALL = limit(
  SHIPMENTS_PER_CALL,
  "changes in an entry of the change log",
  "the next entry; those of one shipment stay together",
);
/**
 * Shipments of a company that may share one second of statusUpdatedAt: one less than the largest page, so that the
 * reconciliation procedure of document 1 always finds a later second on a full page.
 */
const SHARED_SECOND_LIMIT = 99;
/** Announced numbers that one call takes: less than 1 ms of Redis. */
const NUMBERS_PER_CALL = limit(
  500,
  "announced tracking numbers that one call takes",
  "the next call",
);
/** Unmapped codes listed per partition; events with further ones are still flagged in their shipments. */
const UNMAPPED_CODES_LIMIT = limit(
  5_000,
  "unmapped codes listed per partition",
  "events are counted, not listed by code",
);

/**
 * Makes shipments findable by further tracking numbers of theirs in the search, and nobody else's to create. A number
 * that another shipment of the channel has stays with that one.
 */
export async function takeNumbers(
  redis: Redis,
  numbers: ReadonlyArray<
    Pick<ShipmentMeta, "channelId" | "courier" | "trackingNumber"> & { readonly shipmentId: number }
  >,
): Promise<void> {
  const groups = Map.groupBy(numbers, ({ shipmentId }) => shipmentPartition(shipmentId));
  const cut = (group: typeof numbers) => chunks(group, NUMBERS_PER_CALL);
  await perPart(groups, cut, (partition, part) => {
    const keys = companyKeys(partition);
    const names = part.map((one) => keys.numbers(one.channelId, one.trackingNumber));
    const args = part.flatMap(({ courier, shipmentId }) => [courier, String(shipmentId)]);
    return run<number>(redis, takeNumbersScript, names, args);
  });
}

/** What a commit must start from. */
export interface HotShipment extends Head {
  readonly id: number;
  readonly state: ShipmentState;
  readonly meta: ShipmentMeta;
  /** What the facts say that have left the history; null = none have. */
  readonly base: Base | null;
}

/** What stands before the state, as numbers in one text: it is compared with every commit. */
export interface Head {
  readonly version: number;
  /** Of its row (`number-rows.lua`). */
  readonly rank: number;
  /** Facts at the end of the history that are not packed yet (`history-parts.ts`). */
  readonly unpacked: number;
  /** statusUpdatedAt, seconds since 1970; 0 = never. */
  readonly updated: number;
}

export function headOf(text: string): Head {
  const numbers = text.split(" ");
  return {
    version: Number(numbers[0]),
    rank: Number(numbers[1]),
    unpacked: Number(numbers[2]),
    updated: Number(numbers[3]),
  };
}

/** State and meta of every shipment that exists, one call a partition (and 100 shipments). */
export async function readHotShipments(
  redis: Redis,
  ids: readonly number[],
): Promise<Map<number, HotShipment>> {
  const found = new Map<number, HotShipment>();
  for (const [id, [head, hot]] of await readShipmentFields(redis, ids, ["v", "st"])) {
    if (head && hot) found.set(id, hotShipment(id, head, hot));
  }
  const long = [...found.values()].filter(({ state }) => state.dropped > 0);
  const bases = await readShipmentFields(
    redis,
    long.map(({ id }) => id),
    [BASE],
  );
  for (const shipment of long) {
    const packed = bases.get(shipment.id)?.[0];
    if (packed) found.set(shipment.id, { ...shipment, base: decodeHot(packed).state });
  }
  return found;
}

/** Those of the shipments that Redis does not have. */
export async function missingOf(redis: Redis, ids: readonly number[]): Promise<number[]> {
  const found = await readShipmentFields(redis, ids, ["v"]);
  return ids.filter((id) => !found.get(id)?.[0]);
}

function hotShipment(id: number, head: Buffer, hot: Buffer): HotShipment {
  const { version, rank, unpacked, updated } = headOf(head.toString("latin1"));
  const { meta, state } = decodeHot(hot);
  return { id, version, rank, unpacked, updated, state, meta, base: null };
}

/** A whole shipment as the API and the webhooks show it. */
export interface StoredShipment {
  readonly record: ShipmentRecord;
  readonly state: ShipmentState;
  /** UTC milliseconds; null until a courier event changes the status. */
  readonly statusUpdatedAtMs: number | null;
  readonly lane: LaneFacts;
}

/** Every shipment that exists among the ids, in their order. */
export async function readShipments(
  redis: Redis,
  ids: readonly number[],
): Promise<StoredShipment[]> {
  const rows = await readShipmentFields(redis, ids, ["c", "st", "v"]);
  return ids.flatMap((id) => storedShipment(id, rows.get(id) ?? []) ?? []);
}

/** @param row record, state and head as stored. @returns null where one is missing */
export function storedShipment(
  id: number,
  [packed, hot, head]: readonly (Buffer | null)[],
): StoredShipment | null {
  if (!packed || !hot || !head) return null;
  const { meta, state } = decodeHot(hot);
  const { updated } = headOf(head.toString("latin1"));
  return {
    record: { id, ...decodeRecord(packed, meta) },
    state,
    statusUpdatedAtMs: updated === 0 ? null : updated * 1_000,
    lane: meta,
  };
}

type FieldRow = readonly (Buffer | null)[];

async function readShipmentFields(
  redis: Redis,
  ids: readonly number[],
  fields: readonly string[],
): Promise<Map<number, FieldRow>> {
  const rows = new Map<number, FieldRow>();
  await perPartition(Map.groupBy(ids, shipmentPartition), async (partition, group) => {
    const keys = companyKeys(partition);
    for (let from = 0; from < group.length; from += SHIPMENTS_PER_CALL) {
      const part = group.slice(from, from + SHIPMENTS_PER_CALL);
      const names = part.map((id) => keys.shipment(id));
      const reply = await readFields<FieldRow>(redis, names, fields, binary(redis));
      part.forEach((id, at) => {
        const row = reply[at];
        if (row) rows.set(id, row);
      });
    }
  });
  return rows;
}

/** Facts of a shipment, in the order they were applied. */
export async function readHistory(redis: Redis, id: number): Promise<Fact[]> {
  return (await readHistories(redis, [id])).get(id) ?? [];
}

/** The same for many shipments, one call a partition (and 100 shipments). */
export async function readHistories(
  redis: Redis,
  ids: readonly number[],
): Promise<Map<number, Fact[]>> {
  const histories = new Map<number, Fact[]>();
  const turn = turns();
  for (const [id, fields] of await readWhole(redis, ids)) {
    histories.set(id, storedHistory(fields));
    // Each may be of 1,000 facts, which take about 4 ms.
    if (turn.due()) await turn.take();
  }
  return histories;
}

/** A shipment and its history, read at one point in time. */
export interface ShipmentWithHistory {
  readonly shipment: StoredShipment;
  /** In the order they were applied. */
  readonly facts: () => Fact[];
  /** What the facts say that have left the history; null = none have. */
  readonly base: () => Base | null;
}

export async function readShipmentWithHistory(
  redis: Redis,
  id: number,
): Promise<ShipmentWithHistory | null> {
  const fields = (await readWhole(redis, [id])).get(id);
  return fields ? withHistory(id, fields) : null;
}

/** @param row alternating fields and values, as stored. @returns null if there is no such shipment */
export function shipmentWithHistory(
  id: number,
  row: readonly Buffer[],
): ShipmentWithHistory | null {
  return withHistory(id, fieldsOf(row));
}

function withHistory(id: number, fields: Fields): ShipmentWithHistory | null {
  const row = ["c", "st", "v"].map((field) => fields.get(field) ?? null);
  const shipment = storedShipment(id, row);
  return (
    shipment && { shipment, facts: () => storedHistory(fields), base: () => storedBase(fields) }
  );
}

/** The state that a commit which rebuilds a history must start from. */
export interface HotHistory {
  readonly from: HotShipment;
  readonly history: readonly Fact[];
}

/** State, meta and history of every shipment that exists, each read at one point in time. */
export async function readHotHistories(
  redis: Redis,
  ids: readonly number[],
): Promise<HotHistory[]> {
  return [...(await readWhole(redis, ids))].flatMap(([id, fields]) => {
    const [head, hot] = ["v", "st"].map((field) => fields.get(field));
    if (!head || !hot) return [];
    const from = { ...hotShipment(id, head, hot), base: storedBase(fields) };
    return [{ from, history: storedHistory(fields) }];
  });
}

/** A shipment's hash. */
type Fields = ReadonlyMap<string, Buffer>;

/** Every shipment that exists among the ids, each read at one point in time: one call per partition and 100 shipments. */
async function readWhole(redis: Redis, ids: readonly number[]): Promise<Map<number, Fields>> {
  const found = new Map<number, Fields>();
  await perPartition(Map.groupBy(ids, shipmentPartition), async (partition, group) => {
    const keys = companyKeys(partition);
    for (let from = 0; from < group.length; from += SHIPMENTS_PER_CALL) {
      const part = group.slice(from, from + SHIPMENTS_PER_CALL);
      const names = part.map((id) => keys.shipment(id));
      const reply = await run<Buffer[][]>(redis, readHashesScript, names, [], binary(redis));
      part.forEach((id, at) => {
        const row = reply[at] ?? [];
        if (row.length > 0) found.set(id, fieldsOf(row));
      });
    }
  });
  return found;
}

/** What has left the history, packed like the state. */
const BASE = "b";

/** @param row fields and values in turn */
export function fieldsOf(row: readonly Buffer[]): Fields {
  const fields = new Map<string, Buffer>();
  for (let at = 0; at + 1 < row.length; at += 2) {
    fields.set(String(row[at]), row[at + 1] as Buffer);
  }
  return fields;
}

function storedHistory(fields: Fields): Fact[] {
  const hot = fields.get("st");
  return hot ? historyOf(decodeHot(hot).meta, fields) : [];
}

function storedBase(fields: Fields): Base | null {
  const packed = fields.get(BASE);
  return packed ? decodeHot(packed).state : null;
}

export interface Commit {
  readonly from: HotShipment;
  readonly state: ShipmentState;
  /** Facts that the new state has and the old one has not. */
  readonly facts: readonly Fact[];
  /** The history as it was, where `facts` are the whole of it again; absent where they are an addition. */
  readonly replaced?: readonly Fact[];
  /** Where facts leave the history with this commit: what all of them say that have left it. */
  readonly base?: Base;
  /** The record, where it changes too. */
  readonly record?: Omit<ShipmentRecord, "id">;
  readonly changes: readonly Change[];
  /** The pair changed by courier events: `statusUpdatedAt` moves. */
  readonly stamp: boolean;
  /** What the ledger counts; absent = every added fact is applied from the log. */
  readonly counts?: { readonly applied: number; readonly released: number };
}

/** "outdated": the facts were mapped with a configuration that has been replaced since. */
export type CommitOutcome = "committed" | "conflict" | "outdated";

/**
 * Commits new states, one script call a partition (and 100 shipments); outcomes in the order given.
 * @param mappedWith version of the configuration that mapped the facts; left out where a commit maps nothing
 */
export async function commitShipments(
  redis: Redis,
  commits: readonly Commit[],
  nowMs: number,
  mappedWith = Number.MAX_SAFE_INTEGER,
): Promise<CommitOutcome[]> {
  const outcomes: CommitOutcome[] = new Array(commits.length);
  const writes = commits.map((commit, at) => ({ commit, at, change: historyChange(commit) }));
  const stored = await readRepacked(redis, writes);
  const groups = Map.groupBy(writes, ({ commit }) => shipmentPartition(commit.from.id));
  // A stamp whose text exists twice would be read back as the earlier one, and a reconciliation would go in circles.
  const { fromMs, toMs } = repeatedHour(nowMs) ?? { fromMs: 0, toMs: 0 };
  const skipped = [String(fromMs / 1000), String(toMs / 1000)];
  const second = Math.floor(nowMs / 1000);
  const numbers = [second, SHARED_SECOND_LIMIT, mappedWith, UNMAPPED_CODES_LIMIT].map(String);
  const cut = (group: readonly (typeof writes)[number][]) =>
    chunksBySize(group, CHANGES_PER_CALL, sizeOfWrite);
  await perPart(groups, cut, async (partition, part) => {
    const names = companyKeys(partition);
    const { changes, ledger, mappingFloor, unmappedCodes } = names;
    const common = [changes, ledger, mappingFloor, unmappedCodes, logCountsKey(changes)];
    const keys: CallKeys = { ...declaredKeys(common), names };
    const { rows, codes, changes: lines, texts } = callArguments(keys, part, stored);
    const args = [...numbers, ...skipped, packList(rows), packList(codes), lines, ...texts];
    const reply = await run<number[]>(redis, commitScript, keys.declared, args);
    part.forEach(({ at }, position) => {
      outcomes[at] = outcomeOf(reply[position]);
    });
    announce(redis, "change");
  });
  return outcomes;
}

/** A write that announces no change still takes up one item. */
function sizeOfWrite({ commit }: { readonly commit: Commit }): number {
  return Math.max(1, commit.changes.length);
}

function outcomeOf(code: number | undefined): CommitOutcome {
  if (code === undefined) return "outdated";
  return code === -1 ? "conflict" : "committed";
}

/** A commit and what it does to the history. */
interface Write {
  readonly commit: Commit;
  readonly change: HistoryChange;
}

function historyChange({ from, state, facts, replaced }: Commit): HistoryChange {
  return {
    meta: from.meta,
    known: from.state.keys.length,
    unpacked: from.unpacked,
    facts,
    isReplaced: replaced !== undefined,
    isUnderWay: isUnderWay(state),
  };
}

/** The fields of those histories that a commit repacks, by shipment. */
async function readRepacked(
  redis: Redis,
  writes: readonly Write[],
): Promise<ReadonlyMap<number, FieldRow>> {
  const repacked = writes.filter(({ change }) => repacks(change));
  return readShipmentFields(
    redis,
    repacked.map(({ commit }) => commit.from.id),
    REPACKED_FIELDS,
  );
}

/** The keys that a call declares, and the names they are derived from. */
interface CallKeys extends DeclaredKeys {
  readonly names: ReturnType<typeof companyKeys>;
}

/** What `commit.lua` takes of the shipments of a call. */
interface CallArguments {
  readonly rows: ListItem[];
  readonly codes: ListItem[];
  /** Those of all shipments. */
  changes: string;
  /** The long ones, in the order of the shipments. */
  readonly texts: Array<string | Buffer>;
}

function callArguments(
  keys: CallKeys,
  writes: readonly Write[],
  stored: ReadonlyMap<number, FieldRow>,
): CallArguments {
  const call: CallArguments = { rows: [], codes: [], changes: "", texts: [] };
  for (const [at, write] of writes.entries()) {
    const { from, changes, replaced, facts } = write.commit;
    const lines = changes.map((change) => `${encodeChange(change)}\n`).join("");
    addWrite(call, keys, write, stored.get(from.id) ?? [], Buffer.byteLength(lines));
    call.changes += lines;
    for (const delta of unmappedDeltas(replaced ?? [], facts)) {
      call.codes.push([at + 1, ...codeItem(keys, from, delta)]);
    }
  }
  return call;
}

function addWrite(
  { rows, texts }: CallArguments,
  keys: CallKeys,
  { commit, change }: Write,
  stored: FieldRow,
  changesBytes: number,
): void {
  const { from, state, facts, replaced, base, record, changes, stamp } = commit;
  const { fields, dropped, unpacked } = partsOf(change, stored);
  const isRowChanged = stamp || from.state.pair.status !== state.pair.status;
  rows.push(
    String(from.id),
    indexMember(from.id),
    `${from.version} ${from.rank} ${from.unpacked} ${from.updated}`,
    `${from.version + 1} ${from.rank} ${unpacked} `,
    String(from.updated),
    String((from.rank % ROWS_PER_BLOCK) * BYTES_PER_ROW + (stamp ? 4 : 12)),
    ...keysOf(keys, from, isRowChanged),
    from.rank,
    shipDay(from.meta.shipDate) + DAY_SHIFT,
    STATUSES.indexOf(state.pair.status),
    Number(stamp),
    Number(isRowChanged),
    changes.length,
    changesBytes,
    commit.counts?.applied ?? (replaced === undefined ? facts.length : 0),
    commit.counts?.released ?? 0,
    fields.length / 2 + (base ? 1 : 0) + (record ? 1 : 0),
    dropped.length,
  );
  texts.push(encodeHot(from.meta, state));
  if (base) texts.push(BASE, encodeHot(from.meta, base));
  if (record) texts.push("c", encodeRecord(record, from.meta));
  texts.push(...fields, ...dropped);
}

function codeItem(
  { declareRun, names: { unmapped, unmappedShipments } }: CallKeys,
  { meta: { courier } }: HotShipment,
  { code, description, events, present, firstMs, lastMs }: UnmappedDelta,
): ListItem[] {
  return [
    ...[unmappedName(courier, code), description, String(firstMs), String(lastMs)],
    declareRun(unmapped(courier, code), unmappedShipments(courier, code)),
    ...[events, Number(present)],
  ];
}

/** Of the shipment, its company's clock, its channel's row log and index, and its row's block. */
function keysOf(
  { declare, declareRun, names }: CallKeys,
  { id, rank, meta: { companyId, channelId } }: HotShipment,
  isRowChanged: boolean,
): number[] {
  const { shipment, clock, rowLog, index, block } = names;
  return [
    declare(shipment(id)),
    declare(clock(companyId)),
    declareRun(rowLog(channelId), index(channelId, "upd")),
    isRowChanged ? declare(block(channelId, Math.floor(rank / ROWS_PER_BLOCK))) : 0,
  ];
}
