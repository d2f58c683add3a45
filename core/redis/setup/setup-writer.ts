/** What the parts of a setup file are written with, and what comes of it. */
import type { Redis } from "#core/redis/client/client.ts";
import { type EntityKind, saveEntity } from "#core/redis/config/entities.ts";
import type { Vault } from "#core/secrets.ts";
import type { Stored } from "./stored-setup.ts";

/** A secret the file left out: generated now and shown this once. */
export interface GeneratedSecret {
  /** For example `channel acme-it, API key main`. */
  readonly owner: string;
  readonly secret: string;
}

export interface SetupWriter {
  readonly redis: Redis;
  readonly vault: Vault;
  readonly stored: Stored;
  readonly nowMs: number;
  /** Saves an entity unless it is as it was. */
  readonly save: <T extends object>(
    kind: EntityKind,
    id: string,
    before: T | undefined,
    after: T,
  ) => Promise<void>;
  readonly generated: GeneratedSecret[];
  /** Announced remaps; they take effect with the new version of the configuration. */
  readonly remaps: string[];
  /** Entities written so far. */
  written: number;
}

export function createSetupWriter(
  redis: Redis,
  vault: Vault,
  stored: Stored,
  nowMs: number,
): SetupWriter {
  const writer: SetupWriter = {
    ...{ redis, vault, stored, nowMs, generated: [], remaps: [], written: 0 },
    async save(kind, id, before, after) {
      if (before && sameFields(before, after)) return;
      await saveEntity(redis, kind, id, after as never);
      writer.written += 1;
    },
  };
  return writer;
}

/** A list as entities store it: what the file gives, else what stood there. */
export function listOf(given: readonly unknown[] | undefined, before: string | undefined): string {
  return given === undefined ? (before ?? "[]") : JSON.stringify(given);
}

/** redis-om drops empty texts on the way, so an absent field equals an empty one. */
function sameFields(before: object, after: object): boolean {
  const stored = before as Record<string, unknown>;
  return Object.entries(after).every(([field, value]) => (stored[field] ?? "") === value);
}
