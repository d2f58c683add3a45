/** Shipments in the company's partition: create, read, commit. The state's rules are in `core/domain/fold.ts`. */
import type { Fact } from "#core/domain/fact.ts";
import { initialState, type ShipmentState } from "#core/domain/fold.ts";
import type { ShipmentMeta, ShipmentRecord } from "#core/domain/shipment.ts";
import { type Change, encodeChange } from "./change-log.ts";
import { perPartition, type Redis, run, script } from "./client.ts";
import {
  companyKeys,
  companyPartition,
  companyTag,
  type ExactField,
  PARTITIONS,
  shipmentPartition,
} from "./keys.ts";
import commitSource from "./scripts/commit.lua" with { type: "text" };
import createSource from "./scripts/create.lua" with { type: "text" };
import readFieldsSource from "./scripts/read-fields.lua" with { type: "text" };

const commitScript = script(commitSource);
const createScript = script(createSource);
const readFieldsScript = script(readFieldsSource);

/** Shipments one script call writes: keeps a call under some 5 ms of Redis. */
const SHIPMENTS_PER_CALL = 100;
/**
 * Shipments of a company that may share one second of statusUpdatedAt: one less than the largest page, so that the
 * reconciliation procedure of document 1 always finds a later second on a full page.
 */
const SHARED_SECOND_LIMIT = 99;
const DAY_MS = 86_400_000;

export type NewShipment = Omit<ShipmentRecord, "id">;

/** The record without its id, and what the lane needs. @returns ids in the order given, null = exists already. */
export async function createShipments(
  redis: Redis,
  companyId: number,
  shipments: ReadonlyArray<{ record: NewShipment; meta: ShipmentMeta }>,
): Promise<(number | null)[]> {
  const partition = companyPartition(companyId);
  const keys = companyKeys(partition);
  const state = initialState("WAITING_TO_COMPUTE");
  const ids: (number | null)[] = [];
  for (let from = 0; from < shipments.length; from += SHIPMENTS_PER_CALL) {
    const args = shipments
      .slice(from, from + SHIPMENTS_PER_CALL)
      .flatMap(({ record, meta }) => [
        String(record.channelId),
        record.courier,
        record.trackingNumber,
        String(shipDay(record.shipDate)),
        JSON.stringify(state),
        JSON.stringify(meta),
        JSON.stringify(record),
        state.pair.status,
        JSON.stringify(exactValues(record)),
      ]);
    const reply = await run<number[]>(
      redis,
      createScript,
      [keys.shipmentIds, keys.changes],
      [companyTag(partition), String(partition), String(PARTITIONS), ...args],
    );
    for (const id of reply) ids.push(id === 0 ? null : id);
  }
  return ids;
}

function shipDay(shipDate: string): number {
  return Date.parse(shipDate) / DAY_MS;
}

function exactValues(record: NewShipment): Partial<Record<ExactField, string>> {
  const { orderReference, customAttributes } = record;
  const values: [ExactField, string | undefined][] = [
    ["orderReference", orderReference],
    ["custom1", customAttributes?.custom1],
    ["custom2", customAttributes?.custom2],
    ["custom3", customAttributes?.custom3],
  ];
  return Object.fromEntries(values.filter(([, value]) => value !== undefined && value !== ""));
}

/** What a commit must start from. */
export interface HotShipment {
  readonly id: number;
  readonly version: number;
  readonly state: ShipmentState;
  readonly meta: ShipmentMeta;
}

/** State and meta of every shipment that exists, one call a partition (and 100 shipments). */
export async function readHotShipments(
  redis: Redis,
  ids: readonly number[],
): Promise<Map<number, HotShipment>> {
  const found = new Map<number, HotShipment>();
  for (const [id, [version, state, meta]] of await readFields(redis, ids, ["v", "st", "m"])) {
    if (version === null || state === null || meta === null) continue;
    const hot = { id, version: Number(version), state: JSON.parse(state), meta: JSON.parse(meta) };
    found.set(id, hot);
  }
  return found;
}

/** A whole shipment as the API and the webhooks show it. */
export interface StoredShipment {
  readonly record: ShipmentRecord;
  readonly state: ShipmentState;
  /** UTC milliseconds; null until a carrier event changes the status. */
  readonly statusUpdatedAtMs: number | null;
}

/** Every shipment that exists among the ids, in their order. */
export async function readShipments(
  redis: Redis,
  ids: readonly number[],
): Promise<StoredShipment[]> {
  const rows = await readFields(redis, ids, ["c", "st", "u"]);
  return ids.flatMap((id) => {
    const [record, state, updated] = rows.get(id) ?? [];
    if (!record || !state) return [];
    return [
      {
        record: { id, ...JSON.parse(record) },
        state: JSON.parse(state),
        statusUpdatedAtMs: updated ? Number(updated) * 1000 : null,
      },
    ];
  });
}

async function readFields<Field extends string>(
  redis: Redis,
  ids: readonly number[],
  fields: readonly [Field, Field, Field],
): Promise<Map<number, readonly [string | null, string | null, string | null]>> {
  const rows = new Map<number, readonly [string | null, string | null, string | null]>();
  await perPartition(Map.groupBy(ids, shipmentPartition), async (partition, group) => {
    const keys = companyKeys(partition);
    for (let from = 0; from < group.length; from += SHIPMENTS_PER_CALL) {
      const part = group.slice(from, from + SHIPMENTS_PER_CALL);
      const names = part.map((id) => keys.shipment(id));
      const reply = await run<[string | null, string | null, string | null][]>(
        redis,
        readFieldsScript,
        names,
        [...fields],
      );
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
  const keys = companyKeys(shipmentPartition(id));
  const texts = await redis.lRange(keys.history(id), 0, -1);
  return texts.map((text) => JSON.parse(text));
}

export interface Commit {
  readonly from: HotShipment;
  readonly state: ShipmentState;
  /** Facts that the new state has and the old one has not. */
  readonly facts: readonly Fact[];
  readonly changes: readonly Change[];
  /** The pair changed by carrier events: `statusUpdatedAt` moves. */
  readonly stamp: boolean;
}

export type CommitOutcome = "committed" | "conflict";

/** Commits new states, one script call a partition (and 100 shipments); outcomes in the order given. */
export async function commitShipments(
  redis: Redis,
  commits: readonly Commit[],
  nowMs: number,
): Promise<CommitOutcome[]> {
  const outcomes: CommitOutcome[] = new Array(commits.length);
  const indexed = commits.map((commit, at) => ({ commit, at }));
  const groups = Map.groupBy(indexed, ({ commit }) => shipmentPartition(commit.from.id));
  await perPartition(groups, async (partition, group) => {
    const { changes, ledger } = companyKeys(partition);
    const head = [
      companyTag(partition),
      String(Math.floor(nowMs / 1000)),
      String(SHARED_SECOND_LIMIT),
    ];
    for (let from = 0; from < group.length; from += SHIPMENTS_PER_CALL) {
      const part = group.slice(from, from + SHIPMENTS_PER_CALL);
      const args = part.flatMap(({ commit }) => commitArguments(commit));
      const reply = await run<number[]>(redis, commitScript, [changes, ledger], [...head, ...args]);
      part.forEach(({ at }, position) => {
        outcomes[at] = reply[position] === -1 ? "conflict" : "committed";
      });
    }
  });
  return outcomes;
}

function commitArguments({ from, state, facts, changes, stamp }: Commit): string[] {
  const { companyId, channelId, shipDate } = from.meta;
  return [
    String(from.id),
    String(from.version),
    String(companyId),
    String(channelId),
    from.state.pair.status,
    state.pair.status,
    String(shipDay(shipDate)),
    stamp ? "1" : "0",
    JSON.stringify(state),
    String(facts.length),
    String(changes.length),
    ...facts.map((fact) => JSON.stringify(fact)),
    ...changes.map(encodeChange),
  ];
}
