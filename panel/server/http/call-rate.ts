/**
 * Request rate of each caller of the panel: an account, over all of its sessions, or the operator of `PANEL_TOKEN`. Changes have
 * a rate of their own, since they wait for each other. Exact over all panel processes.
 */

import { takeCourierRate } from "#core/events/store/courier-rate.ts";
import { Problem } from "#core/platform/errors/problem.ts";
import { isStoreUnavailable } from "#core/platform/redis/store-unavailable.ts";
import { type Caller, type PanelDeps, READING } from "#panel/server/caller.ts";

/** An account of a company or a courier: more than a person, and a page that loads, ever asks for. */
export const MEMBER_CALLS = { perSecond: 100, burst: 500 } as const;
export const MEMBER_CHANGES = { perSecond: 20, burst: 200 } as const;
/** An operator, whose scripts may go through everything that the installation has. */
export const OPERATOR_CALLS = { perSecond: 2_000, burst: 10_000 } as const;
export const OPERATOR_CHANGES = { perSecond: 500, burst: 5_000 } as const;

/**
 * While the store is unavailable nobody is counted: operators have to see what is missing.
 * @throws {Problem} 429
 */
export async function refuseTooMany(
  { redis, live }: Pick<PanelDeps, "redis" | "live">,
  { account, actor, kind }: Caller,
  method: string,
): Promise<void> {
  const isRead = READING.has(method);
  const [calls, changes] =
    kind === "operator" ? [OPERATOR_CALLS, OPERATOR_CHANGES] : [MEMBER_CALLS, MEMBER_CHANGES];
  const subject = `panel ${isRead ? "calls" : "changes"} ${account?.id ?? actor}`;
  const { allowed, retryAfterMs } = await takeCourierRate(
    redis,
    subject,
    isRead ? calls : changes,
    live.now(),
  ).catch((error) => {
    if (isStoreUnavailable(error, redis)) return { allowed: true, retryAfterMs: 0 };
    throw error;
  });
  if (allowed) return;
  const seconds = String(Math.max(1, Math.ceil(retryAfterMs / 1000)));
  throw new Problem(429, "RATE_LIMITED", `Too many requests; retry after ${seconds} s.`, {
    headers: { "retry-after": seconds },
  });
}
