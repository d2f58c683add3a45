/**
 * An unavailable shard of a cluster: what needs it fails, and everything else is done all the same (design, "Part of the store away is
 * part of the service away"). One server is unavailable as a whole, and whatever needs it waits.
 */
import { isCluster, type Redis } from "./client.ts";
import { isStoreUnavailable, Unavailable } from "./store-unavailable.ts";

/** Whether a failure may concern one shard alone. */
export function isShardUnavailable(error: unknown, redis: Redis): boolean {
  return isCluster(redis) && isStoreUnavailable(error, redis) && !(error instanceof Unavailable);
}

/** For `catch`: nothing in place of what an unavailable shard would have answered. @throws every other error */
export function unlessShardUnavailable(redis: Redis): (error: unknown) => undefined {
  return (error) => {
    if (!isShardUnavailable(error, redis)) throw error;
  };
}

/** Hash tags, and keys without one, that could not be read. */
export type Missing = Set<string>;

/**
 * For `catch`: what to count in place of an answer that an unavailable shard did not give, and a note of what is missing.
 * @param missing absent = the whole is wanted or nothing
 * @throws every other error
 */
export function orMissing<T>(
  redis: Redis,
  missing: Missing | undefined,
  key: string,
  otherwise: T,
): (error: unknown) => T {
  return (error) => {
    if (missing === undefined || !isShardUnavailable(error, redis)) throw error;
    missing.add(/^\{[^}]+\}/.exec(key)?.[0] ?? key);
    return otherwise;
  };
}
