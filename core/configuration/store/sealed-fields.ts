/** Every sealed text in the store: where it is, and how it is re-sealed with another key while others read and write. */

import type { EntityKind, Issued } from "#core/configuration/rules/entities.ts";
import { chunks } from "#core/platform/process/chunks.ts";
import { type Redis, run, script } from "#core/platform/redis/client.ts";
import { type Vault, WrongKey } from "#core/platform/secrets/secrets.ts";
import { entityIds, entityKey } from "./entities.ts";
import resealSource from "./reseal.lua" with { type: "text" };
import { underAccountLock, underSetupLock } from "./setup-lock.ts";

const resealScript = script(resealSource);

/** Entities that are re-sealed per acquisition of the setup lock: other writers wait that long. */
const PER_LOCK = 50;

type Change = (sealed: string) => string;

/** Texts that contain a list of token hashes as well as sealed secrets. */
const TOKEN_HASH = /^[0-9a-f]{64}$/;

/** For a field that is a list. */
function inEach<T>(changed: (item: T, change: Change) => T) {
  return (text: string, change: Change) =>
    JSON.stringify((JSON.parse(text) as T[]).map((item) => changed(item, change)));
}

/** For a field that is a record of sealed texts. */
function inEachMember(text: string, change: Change): string {
  const members = Object.entries(JSON.parse(text) as Readonly<Record<string, string>>);
  return JSON.stringify(Object.fromEntries(members.map(([name, one]) => [name, change(one)])));
}

/** How to re-seal the texts of each field. Add every new field that contains one here. */
const FIELDS: Readonly<
  Partial<Record<EntityKind, Readonly<Record<string, (text: string, change: Change) => string>>>>
> = {
  courier: {
    signingSecrets: inEach<string>((one, change) => change(one)),
    panelSigningSecrets: inEach<Issued>((one, change) => ({ ...one, value: change(one.value) })),
    revoked: inEach<string>((one, change) => (TOKEN_HASH.test(one) ? one : change(one))),
  },
  endpoint: {
    secret: (text, change) => change(text),
    previousSecret: (text, change) => change(text),
    headers: inEachMember,
  },
  alarmReceiver: {
    url: (text, change) => change(text),
  },
  account: {
    totpSecret: (text, change) => change(text),
  },
};
const KINDS = Object.keys(FIELDS) as EntityKind[];

interface Field {
  readonly name: string;
  readonly text: string;
}

async function fieldsOf(redis: Redis, kind: EntityKind, id: string): Promise<Field[]> {
  const names = Object.keys(FIELDS[kind] ?? {});
  const texts = await redis.hmGet(entityKey(kind, id), names);
  return names.flatMap((name, at) => (texts[at] ? [{ name, text: texts[at] ?? "" }] : []));
}

function changed(kind: EntityKind, { name, text }: Field, change: Change): string {
  return FIELDS[kind]?.[name]?.(text, change) ?? text;
}

/** In no particular order. */
export async function allSealed(redis: Redis): Promise<string[]> {
  const found: string[] = [];
  for (const kind of KINDS) {
    for (const id of await entityIds(redis, kind)) {
      for (const field of await fieldsOf(redis, kind, id)) {
        changed(kind, field, (sealed) => {
          found.push(sealed);
          return sealed;
        });
      }
    }
  }
  return found;
}

/**
 * Re-seals with the vault's current key everything that another key sealed. It may be interrupted and repeated at any time.
 * Under the setup lock, and an account's, no writer brings an old text back; if the lock is lost, the entity is left for the next pass.
 * @returns how many secrets were sealed; 0 = all of them have the current key
 * @throws {WrongKey} for a secret that no key of the vault opens
 */
export async function resealAll(redis: Redis, vault: Vault): Promise<number> {
  let sealed = 0;
  for (const kind of KINDS) {
    for (const ids of chunks(await entityIds(redis, kind), PER_LOCK)) {
      await underSetupLock(redis, async () => {
        for (const id of ids) {
          const reseal = () => resealEntity(redis, vault, kind, id);
          const isAccount = kind === "account";
          sealed += await (isAccount ? underAccountLock(redis, id, reseal) : reseal()).catch(
            (error) => {
              throw error instanceof WrongKey
                ? new WrongKey(`${kind} ${id}: ${error.message}`)
                : error;
            },
          );
        }
      });
    }
  }
  return sealed;
}

async function resealEntity(
  redis: Redis,
  vault: Vault,
  kind: EntityKind,
  id: string,
): Promise<number> {
  // The same text may be in two fields, and must stay equal.
  const fresh = new Map<string, string>();
  const args: string[] = [];
  for (const field of await fieldsOf(redis, kind, id)) {
    const text = changed(kind, field, (sealed) => {
      if (vault.isCurrent(sealed)) return sealed;
      const again = fresh.get(sealed) ?? vault.seal(vault.open(sealed));
      fresh.set(sealed, again);
      return again;
    });
    if (text !== field.text) args.push(field.name, field.text, text);
  }
  if (fresh.size > 0) await run(redis, resealScript, [entityKey(kind, id)], args);
  return fresh.size;
}
