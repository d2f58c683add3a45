/**
 * A part of a cluster that is away: what needs it fails, and everything else is done all the same (design, "Part of the store away is part
 * of the service away"). One server is away whole, and whatever needs it waits.
 */
import { isCluster, type Redis } from "./client.ts";
import { isStoreUnavailable, Unavailable } from "./store-unavailable.ts";

/** Whether a failure may concern a part of the store alone. */
export function isPartAway(error: unknown, redis: Redis): boolean {
  return isCluster(redis) && isStoreUnavailable(error, redis) && !(error instanceof Unavailable);
}

/** For `catch`: nothing in place of what a part that is away would have answered. @throws every other error */
export function unlessPartIsAway(redis: Redis): (error: unknown) => undefined {
  return (error) => {
    if (!isPartAway(error, redis)) throw error;
  };
}

/** Hash tags, and keys without one, that could not be read. */
export type Missing = Set<string>;

/**
 * For `catch`: what to count in place of an answer that a part that is away did not give, and a note of what is missing.
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
    if (missing === undefined || !isPartAway(error, redis)) throw error;
    missing.add(/^\{[^}]+\}/.exec(key)?.[0] ?? key);
    return otherwise;
  };
}
