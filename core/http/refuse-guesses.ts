/** Limits guesses at a bearer token of ours, such as `PANEL_TOKEN`, by the network they come from. */
import { Problem } from "#core/problem.ts";
import type { Redis } from "#core/redis/client.ts";
import { isStoreUnavailable } from "#core/redis/store-unavailable.ts";
import { refuseGuess, type SecretShown } from "#core/redis/wrong-secrets.ts";

/**
 * Only wrong tokens count. While the store is unavailable a right one passes: operators are who sees to that.
 * @throws {Problem} 429, to a right token that was never used from there too: a guess learns nothing
 */
export async function refuseGuesses(
  redis: Redis,
  shown: SecretShown,
  now: () => Promise<number>,
): Promise<void> {
  const waitMs = await now()
    .then((nowMs) => refuseGuess(redis, shown, nowMs))
    .catch((error) => {
      if (shown.holder !== null && isStoreUnavailable(error, redis)) return 0;
      throw error;
    });
  if (waitMs === 0) return;
  const seconds = String(Math.ceil(waitMs / 1000));
  throw new Problem(429, "RATE_LIMITED", `Too many wrong tokens; retry after ${seconds} s.`, {
    headers: { "retry-after": seconds },
  });
}
