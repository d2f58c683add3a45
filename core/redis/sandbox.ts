/** Sandbox entities of a channel (document 1, "Sandbox"): rows of the setup file that the API changes afterwards. */
import { type Redis, run, script } from "./client.ts";
import type { Channel } from "./configuration.ts";
import { companyKeys, companyPartition } from "./keys.ts";
import swapSource from "./scripts/swap-field.lua" with { type: "text" };

const swapScript = script(swapSource);

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

/** As `apply-setup.ts` writes it; a deleted one stays, so that the same file does not bring it back. */
interface StoredRow {
  readonly fingerprint: string;
  readonly createdAtMs: number;
  readonly row: Partial<SandboxValues> & { readonly id: number };
  readonly updatedAtMs?: number;
  readonly deleted?: true;
}

const ROUNDS = 10;

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
    const after: StoredRow =
      change === null
        ? { ...stored, row: { id }, deleted: true }
        : { ...stored, row: { ...stored.row, ...change }, updatedAtMs: nowMs };
    const args = [String(id), before, JSON.stringify(after)];
    if ((await run<number>(redis, swapScript, [keyOf(channel)], args)) === 1) {
      return entityOf(after) ?? entity;
    }
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
