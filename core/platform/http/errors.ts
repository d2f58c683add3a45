/** What a thrown value means to an HTTP caller; each role has its own shape of the body. */

import { Problem } from "#core/platform/errors/problem.ts";
import type { Log } from "#core/platform/process/log.ts";
import { REQUESTS, storeFailures } from "#core/platform/process/metrics.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import { isStoreUnavailable, storeOf } from "#core/platform/redis/store-unavailable.ts";

const RETRY_AFTER_SECONDS = "1";

/**
 * A `Problem` is returned as it is, and an unavailable store is a 503; anything else is a bug: logged, and a 500 that
 * reveals nothing.
 */
export function toProblem(error: unknown, redis: Redis, log: Log): Problem {
  if (error instanceof Problem) return error;
  if (isStoreUnavailable(error, redis)) {
    storeFailures.inc({ part: REQUESTS, store: storeOf(error) });
    const detail = "The store is unavailable; nothing was acknowledged.";
    return new Problem(503, "STORE_UNAVAILABLE", detail, {
      headers: { "retry-after": RETRY_AFTER_SECONDS },
    });
  }
  log.error(loggable(error), "unexpected error");
  return new Problem(500, "INTERNAL_ERROR", "An unexpected error on our side.");
}

/** A response that violates its own schema is logged by path only: the error carries the values, which may be personal data. */
function loggable(error: unknown): object {
  const { code, valueError } = error as {
    readonly code?: unknown;
    readonly valueError?: { readonly path?: string };
  };
  return code === "VALIDATION" ? { code, path: valueError?.path } : { err: error };
}
