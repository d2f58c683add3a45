/** What the parts of a setup file are written with, and what comes of it. */

import type { Entities, EntityKind } from "#core/configuration/rules/entities.ts";
import { saveEntity } from "#core/configuration/store/entities.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import type { Vault } from "#core/platform/secrets/secrets.ts";
import type { GeneratedSecret } from "#core/platform/secrets/unshown-secrets.ts";
import type { Stored } from "./stored-setup.ts";

/** Called with new secrets before the entities that have their hashes are saved. */
export type KeepSecrets = (secrets: readonly GeneratedSecret[]) => Promise<void>;

/** A file is applied at every start, so only what it says otherwise than the last time counts; a call of the panel means all that it says. */
export type SetupAuthor = "file" | "panel";

export interface SetupWriter {
  readonly by: SetupAuthor;
  /** Settings of the entity that the call is about which it empties. */
  readonly nullsOf: (kind: Cleared["kind"]) => Readonly<Record<string, null>>;
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
  /** Closed entities that the file names: nothing of them is changed. */
  readonly passedOver: string[];
  /** Announced remaps; they take effect with the new version of the configuration. */
  readonly remaps: string[];
  /** Entities that have changed so far. */
  written: number;
  /** Something has been saved, if only what a file has said. */
  hasSaved: boolean;
}

/** What is stored of a setup file, and changes nothing by itself. */
const OF_FILE = [
  "setupSaid",
  "setupActive",
  "setupAccepting",
  "setupCatalogue",
  "fileEntry",
  "fileSecretHash",
];

/** Settings that a call of the panel empties, which a file cannot. */
export interface Cleared {
  readonly kind: "company" | "channel";
  readonly names: readonly string[];
}

interface Terms {
  readonly by?: SetupAuthor;
  readonly cleared?: Cleared | undefined;
  readonly keep?: KeepSecrets;
}

export function createSetupWriter(
  redis: Redis,
  vault: Vault,
  stored: Stored,
  nowMs: number,
  { by = "file", cleared, keep = async () => {} }: Terms,
): SetupWriter {
  let kept = 0;
  const writer: SetupWriter = {
    by,
    nullsOf(kind) {
      const names = cleared?.kind === kind ? cleared.names : [];
      return Object.fromEntries(names.map((name) => [name, null]));
    },
    redis,
    vault,
    stored,
    nowMs,
    generated: [],
    passedOver: [],
    remaps: [],
    written: 0,
    hasSaved: false,
    async save(kind, id, before, after) {
      if (before && Bun.deepEquals(before, { ...before, ...after })) return;
      await keep(writer.generated.slice(kept));
      kept = writer.generated.length;
      await saveEntity(redis, kind, id, after);
      writer.hasSaved = true;
      if (!before || !Bun.deepEquals(effectOf(before), effectOf({ ...before, ...after }))) {
        writer.written += 1;
      }
    },
  };
  return writer;
}

function effectOf(entity: object): object {
  return Object.fromEntries(Object.entries(entity).filter(([name]) => !OF_FILE.includes(name)));
}
