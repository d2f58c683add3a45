/** What the parts of a setup file are written with, and what comes of it. */

import type { Entities, EntityKind } from "#core/configuration/rules/entities.ts";
import { saveEntity } from "#core/configuration/store/entities.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import type { Vault } from "#core/platform/secrets/secrets.ts";
import type { GeneratedSecret } from "#core/platform/secrets/unshown-secrets.ts";
import type { Stored } from "./stored-setup.ts";

/** Called with new secrets before the entities that have their hashes are saved. */
export type KeepSecrets = (secrets: readonly GeneratedSecret[]) => Promise<void>;

export interface SetupWriter {
  readonly redis: Redis;
  readonly vault: Vault;
  readonly stored: Stored;
  readonly nowMs: number;
  /** Saves an entity unless it is as it was. */
  readonly save: <K extends EntityKind>(
    kind: K,
    id: string,
    before: Entities[K] | undefined,
    after: Entities[K],
  ) => Promise<void>;
  /** What the file left out: shown once, by `keep`. */
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
  keep: KeepSecrets = async () => {},
): SetupWriter {
  let kept = 0;
  const writer: SetupWriter = {
    redis,
    vault,
    stored,
    nowMs,
    generated: [],
    remaps: [],
    written: 0,
    async save(kind, id, before, after) {
      if (before && Bun.deepEquals(before, { ...before, ...after })) return;
      await keep(writer.generated.slice(kept));
      kept = writer.generated.length;
      await saveEntity(redis, kind, id, after);
      writer.written += 1;
    },
  };
  return writer;
}
