/**
 * Configuration entities and accounts, mapped by redis-om as hashes. A save replaces the whole entity, so they are written only
 * under the setup lock, accounts under a lock of their own (`setup-lock.ts`). Lists and records are kept as JSON text: redis-om joins string lists by
 * `|` and would split values that contain one. A process of an earlier version keeps the fields that it does not know.
 */
import { Type } from "@sinclair/typebox";
import { EntityId, Repository, Schema } from "redis-om";
import { ENTITIES, type Entities, type EntityKind } from "#core/configuration/rules/entities.ts";
import { decoded, encoded, storedAs } from "#core/configuration/rules/entity.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import { newStamp, noteWrittenVersion, refuseStale, type VersionStamp } from "./change-context.ts";
import { announceLeftOver, expectSetupLock, markUnannounced } from "./setup-lock.ts";

/** An entity as it is stored: with its version, and who made it. */
export type Stored<K extends EntityKind> = Entities[K] & VersionStamp;

const STAMP_FIELDS = {
  version: Type.String(),
  changedFor: Type.String(),
  changedBy: Type.String(),
  changedAtMs: Type.Number(),
};
const fieldsOf = (name: EntityKind) => ({ ...ENTITIES[name].fields, ...STAMP_FIELDS });

const SCHEMAS = Object.fromEntries(
  (Object.keys(ENTITIES) as EntityKind[]).map((name) => {
    const definition = Object.entries(fieldsOf(name)).map(([field, schema]) => {
      const type = storedAs(schema);
      return [field, { type: type === "json" ? ("string" as const) : type }] as const;
    });
    const hash = { dataStructure: "HASH" } as const;
    return [name, new Schema(`config:${name}`, Object.fromEntries(definition), hash)];
  }),
) as Readonly<Record<EntityKind, Schema>>;

const idsKey = (name: EntityKind) => `config:ids:${name}`;

export const entityKey = (name: EntityKind, id: string) => `config:${name}:${id}`;

/** In a fixed order. */
export async function entityIds(redis: Redis, name: EntityKind): Promise<string[]> {
  return (await redis.sMembers(idsKey(name))).sort();
}

function repository(redis: Redis, name: EntityKind) {
  // redis-om 0.4 types an older client. Hashes need only the commands that have not changed, so package.json gives it ours by
  // an override, and no second client is loaded.
  return new Repository(SCHEMAS[name], redis as never);
}

export async function allEntities<K extends EntityKind>(
  redis: Redis,
  name: K,
): Promise<Stored<K>[]> {
  return readEntities(redis, name, await entityIds(redis, name));
}

/** Those of ids that exist. */
export async function readEntities<K extends EntityKind>(
  redis: Redis,
  name: K,
  ids: string[],
): Promise<Stored<K>[]> {
  if (ids.length === 0) return [];
  const found = await repository(redis, name).fetch(ids);
  return found.map((entity) => decoded(fieldsOf(name), entity) as Stored<K>);
}

/** One entity, null when there is none. */
export async function readEntity<K extends EntityKind>(
  redis: Redis,
  name: K,
  id: string,
): Promise<Stored<K> | null> {
  if ((await redis.sIsMember(idsKey(name), id)) !== 1) return null;
  const [found] = await readEntities(redis, name, [id]);
  return found ?? null;
}

export interface Saved<K extends EntityKind> {
  readonly entity: Stored<K>;
  /** False: it was the same already. */
  readonly isWritten: boolean;
}

/**
 * Replaces the whole entity; one that is the same already is not written. Processes see it once `bumpVersion` has been called.
 * @throws {Problem} 412 if it is not the version that the author has read (`change-context.ts`)
 */
export async function saveEntity<K extends EntityKind>(
  redis: Redis,
  name: K,
  id: string,
  entity: Entities[K],
): Promise<Saved<K>> {
  await expectSetupLock();
  const known = await readEntity(redis, name, id);
  refuseStale(known);
  // What a later version stores beside the fields that are known here stays.
  const after = { ...known, ...entity };
  const same = known && { ...after, ...stampOf(known) };
  if (same && Bun.deepEquals(known, same)) {
    noteWrittenVersion(known);
    return { entity: known, isWritten: false };
  }
  await markChanged(redis, name);
  const changed = { ...after, ...newStamp() };
  noteWrittenVersion(changed);
  const stored = encoded(fieldsOf(name), changed);
  await repository(redis, name).save(id, { ...stored, [EntityId]: id } as never);
  await redis.sAdd(idsKey(name), id);
  return { entity: changed, isWritten: true };
}

function stampOf({ version, changedFor, changedBy, changedAtMs }: VersionStamp): VersionStamp {
  return { version, changedFor, changedBy, changedAtMs };
}

export async function removeEntity(redis: Redis, name: EntityKind, id: string): Promise<void> {
  await expectSetupLock();
  await markChanged(redis, name);
  await redis.sRem(idsKey(name), id);
  await repository(redis, name).remove(id);
}

/** Accounts are read whenever they are used: nobody has to be told of their changes. */
async function markChanged(redis: Redis, name: EntityKind): Promise<void> {
  if (name !== "account") await markUnannounced(redis);
}

/** A new number for an entity of this kind, from 1. */
export function nextId(redis: Redis, name: EntityKind): Promise<number> {
  return redis.incr(`config:next:${name}`);
}

/**
 * Raises the version that every process compares before it uses the configuration (`live.ts`), unless nothing has been written.
 * @returns the version in force
 */
export async function bumpVersion(redis: Redis): Promise<number> {
  await expectSetupLock();
  return announceLeftOver(redis);
}
