/**
 * References of archived shipments, in buckets that stay compact: 20 to 24 bytes each instead of about 150. A reference is found
 * here while it belongs to an archived shipment alone; where several shipments share it, all of them stand in its own key, and
 * those that are archived say so there.
 *
 * | bytes | of the value                                                                       |
 * |-------|------------------------------------------------------------------------------------|
 * | 5     | shipment                                                                           |
 * | 3     | channel; absent with all that follows where the reference is an externalId         |
 * | 3     | when it ended, hours since 1970; 0 = it had not; the highest bit: owns the number  |
 * | 3     | `orderHash`; 0 = no order reference                                                |
 *
 * Buckets belong to generations of a year, each with its own number of buckets, so that they stay below
 * `hash-max-listpack-entries` (512 by default).
 */

import type { Candidate } from "#core/events/rules/match-reference.ts";
import { chunks } from "#core/platform/process/chunks.ts";
import {
  binary,
  perPartition,
  type Redis,
  readTogether,
  run,
  script,
} from "#core/platform/redis/client.ts";
import {
  compactBucketKey,
  compactPlace,
  type Reference,
  SYSTEM_KEY,
} from "#core/platform/redis/keys.ts";
import { packList } from "#core/platform/redis/packed-list.ts";
import { idBytes, partitionCount } from "#core/platform/redis/partitions.ts";
import { limit } from "#core/platform/schema/limit.ts";
import compactSource from "./compact.lua" with { type: "text" };
import findSource from "./find-references.lua" with { type: "text" };
import forgetSource from "./forget.lua" with { type: "text" };

const compactScript = script(compactSource);
const findScript = script(findSource);
const forgetScript = script(forgetSource);

const HOUR_MS = 3_600_000;
const GENERATION_MS = 365 * 24 * HOUR_MS;
/** Mean fill of a bucket. */
const BUCKET_FILL = 128;
/** References of a day's shipments for each event of a day: two for a shipment of eight events. */
const REFERENCES_PER_EVENT = 1 / 4;
/** References that one call makes compact: about 1 ms of Redis. */
const COMPACTED_PER_CALL = limit(
  128,
  "references of archived shipments made compact by one call",
  "the next call",
);
/** References that one call looks up in both forms: about 1 ms of Redis. */
const LOOKED_UP_PER_CALL = limit(
  500,
  "references of archived shipments looked up in both forms by one call",
  "the next call",
);
/** How long a process relies on the generations that it has read. */
const LAYOUT_MS = 5_000;
/** From the beginning of a generation until something stands in it: by then every process looks there. */
const GENERATION_WAIT_MS = 3 * LAYOUT_MS;

const OWNS = 0x800000;
/** Of a tracking number after the shipment's id: its channel, when it ended, its order; three bytes each. */
const NUMBER_BYTES = 9;

/** Newest first. */
interface Layout {
  readonly generations: ReadonlyArray<{ readonly number: number; readonly buckets: number }>;
  readonly readAtMs: number;
}

const layouts = new WeakMap<Redis, Promise<Layout>>();
const FIELD = "compact:";

async function layoutOf(redis: Redis): Promise<Layout> {
  const known = await layouts.get(redis)?.catch(() => null);
  if (known && performance.now() - known.readAtMs < LAYOUT_MS) return known;
  const reading = readLayout(redis);
  layouts.set(redis, reading);
  return reading;
}

async function readLayout(redis: Redis): Promise<Layout> {
  const readAtMs = performance.now();
  const fields = Object.entries(await redis.hGetAll(SYSTEM_KEY));
  const generations = fields
    .filter(([name]) => name.startsWith(FIELD))
    .map(([name, buckets]) => ({
      number: Number(name.slice(FIELD.length)),
      buckets: Number.parseInt(buckets, 10),
    }))
    .sort((one, other) => other.number - one.number);
  return { generations, readAtMs };
}

/**
 * Begins the generation of a moment, unless it has begun.
 * @returns milliseconds until something may stand in it, whichever process began it
 */
export async function beginGeneration(
  redis: Redis,
  nowMs: number,
  eventsPerDay: number,
): Promise<number> {
  const days = GENERATION_MS / (24 * HOUR_MS);
  const expected = (eventsPerDay * REFERENCES_PER_EVENT * days) / partitionCount("t") / BUCKET_FILL;
  const buckets = String(Math.max(1, Math.ceil(expected)));
  const field = `${FIELD}${Math.floor(nowMs / GENERATION_MS)}`;
  const isNew = (await redis.hSetNX(SYSTEM_KEY, field, `${buckets} ${Date.now()}`)) === 1;
  if (isNew) layouts.delete(redis);
  const [, begunAtMs = 0] = String(await redis.hGet(SYSTEM_KEY, field))
    .split(" ")
    .map(Number);
  return Math.max(0, begunAtMs + GENERATION_WAIT_MS - Date.now());
}

/** Whether anything was ever archived. */
export async function hasCompact(redis: Redis): Promise<boolean> {
  return (await layoutOf(redis)).generations.length > 0;
}

function bucketsOf({ generations }: Layout, reference: Reference): string[] {
  const { bits } = compactPlace(reference);
  return generations.map(({ number, buckets }) =>
    compactBucketKey(reference.partition, number, bits % buckets),
  );
}

/** Where references may stand in buckets, those of the newest generation first, in the order given. */
export async function compactBuckets(
  redis: Redis,
  references: readonly Reference[],
): Promise<{ readonly keys: readonly string[]; readonly name: Buffer }[]> {
  const layout = await layoutOf(redis);
  return references.map((reference) => {
    return { keys: bucketsOf(layout, reference), name: compactPlace(reference).name };
  });
}

/** An archived shipment under one of its references. */
export interface CompactReference {
  readonly reference: Reference;
  readonly isNumber: boolean;
  readonly candidate: Candidate;
}

/** Marks references as pointing to the archive. Idempotent. */
export async function compactReferences(
  redis: Redis,
  items: readonly CompactReference[],
): Promise<void> {
  const layout = await layoutOf(redis);
  const groups = Map.groupBy(items, ({ reference }) => reference.partition);
  await perPartition(groups, async (_, group) => {
    for (const part of chunks(group, COMPACTED_PER_CALL)) {
      const keys = part.flatMap(({ reference }) => [
        reference.key,
        ...bucketsOf(layout, reference),
      ]);
      const items = part.flatMap(({ reference, isNumber, candidate }) => {
        const value = encode(candidate, isNumber);
        const start = `[${candidate.shipmentId},`;
        const line = archivedLine(candidate, value);
        const name = candidate.isPlaceholder ? "" : compactPlace(reference).name;
        return [start, line, name, value];
      });
      const generations = String(layout.generations.length);
      await run(redis, compactScript, keys, [generations, packList(items), String(idBytes())]);
    }
  });
}

/**
 * Shipments are found by these references no more. Idempotent.
 * @returns how many did until then
 */
export async function forgetReferences(
  redis: Redis,
  items: ReadonlyArray<Pick<CompactReference, "reference"> & { readonly shipmentId: number }>,
): Promise<number> {
  const layout = await layoutOf(redis);
  const groups = Map.groupBy(items, ({ reference }) => reference.partition);
  let forgotten = 0;
  await perPartition(groups, async (_, group) => {
    for (const part of chunks(group, COMPACTED_PER_CALL)) {
      const keys = part.flatMap(({ reference }) => [
        reference.key,
        ...bucketsOf(layout, reference),
      ]);
      const args = part.flatMap(({ reference, shipmentId }) => [
        `[${shipmentId},`,
        compactPlace(reference).name,
        packedId(shipmentId),
      ]);
      const generations = String(layout.generations.length);
      forgotten += await run<number>(redis, forgetScript, keys, [generations, ...args]);
    }
  });
  return forgotten;
}

function packedId(shipmentId: number): Buffer {
  const bytes = Buffer.alloc(idBytes());
  bytes.writeUIntLE(shipmentId, 0, bytes.length);
  return bytes;
}

/** What a reference finds, in one of its two forms. */
export type FoundReference =
  | { readonly kind: "lines"; readonly lines: string }
  | { readonly kind: "compact"; readonly candidate: Candidate };

/**
 * What references find that had no lines a moment ago, by reference key; those that find nothing are absent. Lines and buckets are
 * read at one moment: a reference may have changed its form since.
 */
export async function resolveCompact(
  redis: Redis,
  references: readonly Reference[],
): Promise<Map<string, FoundReference>> {
  const found = new Map<string, FoundReference>();
  if (references.length === 0) return found;
  const layout = await layoutOf(redis);
  if (layout.generations.length === 0) return found;
  const generations = String(layout.generations.length);
  const groups = Map.groupBy(references, ({ partition }) => partition);
  const reads = readTogether(redis, groups).flatMap((group) =>
    chunks(group, LOOKED_UP_PER_CALL).map(async (part) => {
      const keys = part.flatMap((reference) => [reference.key, ...bucketsOf(layout, reference)]);
      const args = [generations, ...part.map((reference) => compactPlace(reference).name)];
      const reply = await run<(Buffer | null)[]>(redis, findScript, keys, args, binary(redis));
      for (const [at, { key }] of part.entries()) {
        const [lines, value] = reply.slice(2 * at);
        if (lines) found.set(key, { kind: "lines", lines: String(lines) });
        else if (value) found.set(key, { kind: "compact", candidate: decodeCompact(value) });
      }
    }),
  );
  await Promise.all(reads);
  return found;
}

function encode({ shipmentId, channelId, archived }: Candidate, isNumber: boolean): Buffer {
  const end = idBytes();
  const value = Buffer.alloc(isNumber ? end + NUMBER_BYTES : end);
  value.writeUIntLE(shipmentId, 0, end);
  if (!isNumber) return value;
  const { endedAtMs = null, ownsNumber = false, orderHash = null } = archived ?? {};
  const hours = endedAtMs === null ? 0 : Math.ceil(endedAtMs / HOUR_MS);
  value.writeUIntLE(channelId, end, 3);
  value.writeUIntLE(hours + (ownsNumber ? OWNS : 0), end + 3, 3);
  value.writeUIntLE(orderHash ?? 0, end + 6, 3);
  return value;
}

/** The company is not known here. */
export function decodeCompact(value: Buffer): Candidate {
  const end = idBytes();
  const shipmentId = value.readUIntLE(0, end);
  const isNumber = value.length === end + NUMBER_BYTES;
  const ended = isNumber ? value.readUIntLE(end + 3, 3) : 0;
  const hours = ended % OWNS;
  const endedAtMs = hours === 0 ? null : hours * HOUR_MS;
  return {
    shipmentId,
    companyId: -shipmentId,
    channelId: isNumber ? value.readUIntLE(end, 3) : 0,
    isPlaceholder: false,
    orderReference: null,
    // It matters only where it may have ended long before the event.
    shipDay: Math.floor((endedAtMs ?? 0) / (24 * HOUR_MS)),
    archived: {
      endedAtMs,
      ownsNumber: ended >= OWNS,
      orderHash: (isNumber && value.readUIntLE(end + 6, 3)) || null,
    },
  };
}

/** As it stands among other lines of its reference (`references.ts`). */
function archivedLine(candidate: Candidate, value: Buffer): string {
  const { shipmentId, channelId, isPlaceholder, orderReference, companyId, shipDay } = candidate;
  const placeholder = Number(isPlaceholder);
  const hex = value.toString("hex");
  return JSON.stringify([
    shipmentId,
    channelId,
    placeholder,
    orderReference,
    hex,
    companyId,
    shipDay,
  ]);
}
