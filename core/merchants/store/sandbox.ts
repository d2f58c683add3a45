/** Sandbox entities of a channel (document 1, "Sandbox"): rows of the setup file that the API changes afterwards. */

import type { Channel } from "#core/configuration/store/configuration.ts";
import { expectSetupLock } from "#core/configuration/store/setup-lock.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import { companyKeys, companyPartition } from "#core/platform/redis/keys.ts";
import { swapField } from "#core/platform/redis/swap-field.ts";

export interface SandboxValues {
  readonly stringValue: string;
  readonly intValue: number;
  readonly boolValue: boolean;
  readonly floatValue: number;
  /** ISO 8601 with offset. */
  readonly dateTimeValue: string | null;
}

export interface SandboxEntity extends SandboxValues {
  readonly id: number;
  readonly createdAtMs: number;
  readonly updatedAtMs: number | null;
}

type Row = Partial<SandboxValues> & { readonly id: number };

interface StoredRow {
  /** Of the setup file's row. */
  readonly fingerprint: string;
  readonly createdAtMs: number;
  readonly row: Row;
  /** What the setup file says, once the API has changed or deleted the entity. */
  readonly fileRow?: Row;
  readonly updatedAtMs?: number;
  readonly deleted?: true;
}

const ROUNDS = 10;

interface Owner {
  readonly companyId: number;
  readonly channelId: number;
}

/**
 * A row of the setup file. What the API has changed since stays until the file's row changes; what it has deleted comes back.
 * @returns whether something was written
 */
export async function putSandbox(
  redis: Redis,
  { companyId, channelId }: Owner,
  row: Row,
  fingerprint: string,
  nowMs: number,
): Promise<boolean> {
  const key = companyKeys(companyPartition(companyId)).sandbox(channelId);
  const before = await redis.hGet(key, String(row.id));
  const stored: StoredRow | null = before === null ? null : JSON.parse(before);
  if (stored?.fingerprint === fingerprint && !stored.deleted) return false;
  const written: StoredRow = { fingerprint, createdAtMs: nowMs, row };
  await expectSetupLock();
  await redis.hSet(key, String(row.id), JSON.stringify(written));
  return true;
}

/** Makes every entity what the setup file says, in one step. @returns how many were changed or deleted */
export async function resetSandbox(redis: Redis, channel: Channel, nowMs: number): Promise<number> {
  const rows = Object.values(await redis.hGetAll(keyOf(channel)));
  const restored = rows.flatMap((text): [string, string][] => {
    const { fingerprint, fileRow }: StoredRow = JSON.parse(text);
    if (!fileRow) return [];
    const fresh: StoredRow = { fingerprint, createdAtMs: nowMs, row: fileRow };
    return [[String(fileRow.id), JSON.stringify(fresh)]];
  });
  if (restored.length > 0) await redis.hSet(keyOf(channel), Object.fromEntries(restored));
  return restored.length;
}

export async function readSandbox(
  redis: Redis,
  channel: Channel,
  id: number,
): Promise<SandboxEntity | null> {
  const text = await redis.hGet(keyOf(channel), String(id));
  return text === null ? null : entityOf(JSON.parse(text));
}

/** @param change null = the entity goes. @returns the entity as it was changed; null when there is none */
export async function changeSandbox(
  redis: Redis,
  channel: Channel,
  id: number,
  change: Partial<SandboxValues> | null,
  nowMs: number,
): Promise<SandboxEntity | null> {
  for (let round = 0; round < ROUNDS; round += 1) {
    const before = await redis.hGet(keyOf(channel), String(id));
    const stored: StoredRow | null = before === null ? null : JSON.parse(before);
    const entity = stored && entityOf(stored);
    if (before === null || !stored || !entity) return null;
    const { fileRow = stored.row } = stored;
    const after: StoredRow =
      change === null
        ? { ...stored, fileRow, row: { id }, deleted: true }
        : { ...stored, fileRow, row: { ...stored.row, ...change }, updatedAtMs: nowMs };
    const swap = { from: before, to: JSON.stringify(after) };
    if (await swapField(redis, keyOf(channel), String(id), swap)) return entityOf(after) ?? entity;
  }
  throw new Error("the entity kept changing");
}

function keyOf({ companyId, id }: Channel): string {
  return companyKeys(companyPartition(companyId)).sandbox(id);
}

function entityOf({ row, createdAtMs, updatedAtMs, deleted }: StoredRow): SandboxEntity | null {
  if (deleted) return null;
  return {
    id: row.id,
    stringValue: row.stringValue ?? "",
    intValue: row.intValue ?? 0,
    boolValue: row.boolValue ?? false,
    floatValue: row.floatValue ?? 0,
    dateTimeValue: row.dateTimeValue ?? null,
    createdAtMs,
    updatedAtMs: updatedAtMs ?? null,
  };
}
