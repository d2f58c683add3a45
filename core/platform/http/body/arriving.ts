/** The time that a body has to arrive, which ends early when the process stops. */
import { Problem } from "#core/platform/errors/problem.ts";
import { LAST_BODY_LIMIT_MS } from "#core/platform/process/stop-limits.ts";

/** Refuse the bodies that are arriving. */
const refusals = new Set<() => void>();
let isOver = false;

/**
 * @param late the answer to a sender that takes longer than `limitMs`
 * @throws {Problem} `late`, or 503 when the process stops
 */
export async function inTime<T>(
  arriving: Promise<T>,
  limitMs: number,
  late: () => Problem,
): Promise<T> {
  const { promise: refused, reject } = Promise.withResolvers<never>();
  const refuse = () => reject(stopped());
  const timer = setTimeout(() => reject(late()), limitMs);
  refusals.add(refuse);
  if (isOver) refuse();
  try {
    return await Promise.race([arriving, refused]);
  } finally {
    clearTimeout(timer);
    refusals.delete(refuse);
  }
}

/** The ports of this process have closed: what is still arriving has `LAST_BODY_LIMIT_MS`. */
export function endArrivals(): void {
  setTimeout(() => {
    isOver = true;
    for (const refuse of refusals) refuse();
  }, LAST_BODY_LIMIT_MS).unref();
}

function stopped(): Problem {
  const headers = { "retry-after": "1", connection: "close" };
  const detail = "The process is stopping, and the body had not arrived; nothing was accepted.";
  return new Problem(503, "STORE_UNAVAILABLE", detail, { headers });
}
