/**
 * Request rate of each caller of the panel: an account, over all of its sessions, or the operator of `PANEL_TOKEN`. Changes have
 * a rate of their own, since they wait for each other. Exact over all panel processes.
 */

import { takeCourierRate } from "#core/events/store/courier-rate.ts";
import { Problem } from "#core/platform/errors/problem.ts";
import { isStoreUnavailable } from "#core/platform/redis/store-unavailable.ts";
import { rate } from "#core/platform/schema/limit.ts";
import { type Caller, type PanelDeps, READING } from "#panel/server/caller.ts";

/** An account of a company or a courier: more than a person, and a page that loads, ever asks for. */
export const MEMBER_CALLS = rate(
  500,
  100,
  "requests to the panel of an account of a company or courier",
  "429",
);
export const MEMBER_CHANGES = rate(
  200,
  20,
  "changes in the panel of an account of a company or courier",
  "429",
);
/** An operator, whose scripts may go through everything that the installation has. */
export const OPERATOR_CALLS = rate(10_000, 2_000, "requests to the panel of an operator", "429");
export const OPERATOR_CHANGES = rate(5_000, 500, "changes in the panel of an operator", "429");

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
