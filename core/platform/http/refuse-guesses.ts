/** Limits guesses at a bearer token of ours, such as `PANEL_TOKEN`, by the network they come from. */
import { Problem } from "#core/platform/errors/problem.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import { isStoreUnavailable } from "#core/platform/redis/store-unavailable.ts";
import { refuseGuess, type SecretShown } from "#core/platform/secrets/wrong-secrets.ts";

/**
 * Only wrong tokens count. While the store is unavailable a correct one is accepted, since operators have to mend the store.
 * @throws {Problem} 429, even for a correct token if it was never used from that network, so that a guess reveals nothing
 */
export async function refuseGuesses(
  redis: Redis,
  shown: SecretShown,
  now: () => Promise<number>,
): Promise<void> {
  const waitMs = await now()
    .then((nowMs) => refuseGuess(redis, shown, nowMs))
    .catch((error) => {
      if (shown.isRight && isStoreUnavailable(error, redis)) return 0;
      throw error;
    });
  if (waitMs === 0) return;
  const seconds = String(Math.ceil(waitMs / 1000));
  throw new Problem(429, "RATE_LIMITED", `Too many wrong tokens; retry after ${seconds} s.`, {
    headers: { "retry-after": seconds },
  });
}
