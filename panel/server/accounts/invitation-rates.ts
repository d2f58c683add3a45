/**
 * Every invitation is a mail to somebody who has not asked for it: how many go to one address, and how many one person and one tenant
 * send. Each tenant is counted alone, so that no answer tells what others have sent.
 */

import { tenantOf } from "#core/accounts/store/account-index.ts";
import type { NewAccount } from "#core/accounts/store/accounts.ts";
import { normalEmail } from "#core/accounts/store/accounts.ts";
import { takeCourierRate } from "#core/events/store/courier-rate.ts";
import { Problem } from "#core/platform/errors/problem.ts";
import { rate } from "#core/platform/schema/limit.ts";
import type { Caller, PanelDeps } from "#panel/server/caller.ts";

export const ADDRESS_RATE = rate(
  3,
  1 / 1_200,
  "invitations by a tenant to one address",
  "429 with `Retry-After`",
);
/** By one account, or with `PANEL_TOKEN`. */
export const INVITER_RATE = rate(
  50,
  1 / 30,
  "invitations by one account",
  "429 with `Retry-After`",
);
/** By all accounts of a company or a courier. Operators have no such limit. */
export const TENANT_RATE = rate(
  100,
  1 / 20,
  "invitations by all accounts of a company or a courier",
  "429 with `Retry-After`",
);

/** @throws {Problem} 429 */
export async function takeInvitation(
  { redis, secrets, live }: PanelDeps,
  { account, actor, kind }: Caller,
  wanted: NewAccount,
): Promise<void> {
  const to = secrets.vault.mac(`invitation ${tenantOf(wanted)} ${normalEmail(wanted.email)}`);
  const asks = [
    { subject: `invitations to ${to}`, limit: ADDRESS_RATE },
    { subject: `invitations by ${account?.id ?? actor}`, limit: INVITER_RATE },
    ...(account && kind !== "operator"
      ? [{ subject: `invitations of ${tenantOf(account)}`, limit: TENANT_RATE }]
      : []),
  ];
  // One after the other: what one limit refuses is not counted against the next one.
  for (const { subject, limit } of asks) {
    const { allowed, retryAfterMs } = await takeCourierRate(redis, subject, limit, live.now());
    if (!allowed) throw tooMany(retryAfterMs);
  }
}

function tooMany(waitMs: number): Problem {
  const seconds = String(Math.max(1, Math.ceil(waitMs / 1000)));
  const detail = `Too many invitations; retry after ${seconds} s.`;
  return new Problem(429, "TOO_MANY_INVITATIONS", detail, { headers: { "retry-after": seconds } });
}
