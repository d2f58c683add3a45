/**
 * The entities of the configuration. One that cannot be read counts as it was last read: entities are spread over all shards of a cluster,
 * an unavailable shard accepts no change, and a change on another shard, such as a revoked key, must not wait for it.
 */
import { EntityId } from "redis-om";
import type { EntityKind } from "#core/configuration/rules/entities.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import { isShardUnavailable } from "#core/platform/redis/unavailable-shard.ts";
import { entityIds, readEntities, type Stored } from "./entities.ts";

export type ReadEntities = <K extends EntityKind>(name: K) => Promise<Stored<K>[]>;

export interface KnownEntities {
  /** @throws if a shard is unavailable and the kind has never been read */
  readonly read: ReadEntities;
  /** Why something that was read since the last call was taken from memory; null = nothing was. */
  readonly takeFailure: () => Error | null;
}

type ById<K extends EntityKind> = ReadonlyMap<string, Stored<K>>;

export function rememberEntities(redis: Redis): KnownEntities {
  const known: { [K in EntityKind]?: ById<K> } = {};
  let failure: Error | null = null;

  function instead<T>(value: T) {
    return (error: unknown): T => {
      if (!isShardUnavailable(error, redis)) throw error;
      failure = error as Error;
      return value;
    };
  }

  async function readInParts<K extends EntityKind>(name: K, before: ById<K>): Promise<Stored<K>[]> {
    const ids = await entityIds(redis, name).catch(instead([...before.keys()]));
    const reading = ids.map((id) => {
      const own = before.get(id);
      return readEntities(redis, name, [id]).catch(instead(own ? [own] : []));
    });
    return (await Promise.all(reading)).flat();
  }

  async function readAll<K extends EntityKind>(name: K): Promise<Stored<K>[]> {
    try {
      return await readEntities(redis, name, await entityIds(redis, name));
    } catch (error) {
      const before: ById<K> | undefined = known[name];
      if (!before || !isShardUnavailable(error, redis)) throw error;
      return readInParts(name, before);
    }
  }

  return {
    async read<K extends EntityKind>(name: K) {
      const found = await readAll(name);
      const byId = new Map(found.map((one) => [idOf(one), one]));
      (known as Record<K, ById<K>>)[name] = byId;
      return found;
    },
    takeFailure() {
      const taken = failure;
      failure = null;
      return taken;
    },
  };
}

/** As redis-om keeps it beside the fields. */
function idOf(entity: object): string {
  return String((entity as { readonly [EntityId]?: string })[EntityId]);
}
