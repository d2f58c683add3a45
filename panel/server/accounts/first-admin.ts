/** The first start on a store without an admin invites one, by a link that is printed this once. */

import { hasAdmin, inviteAccount } from "#core/accounts/store/accounts.ts";
import { Problem } from "#core/platform/errors/problem.ts";
import type { Runtime } from "#core/runtime/runtime.ts";

/** @param publicUrl where the panel is reachable; without a slash at the end */
export async function inviteFirstAdmin(
  { redis, live }: Pick<Runtime, "redis" | "live">,
  publicUrl: string,
): Promise<void> {
  if (await hasAdmin(redis, live.now())) return;
  const first = { email: "", name: "Admin", kind: "operator", role: "admin" } as const;
  const wanted = { ...first, companyCode: "", courierCode: "" };
  const invited = await inviteAccount(redis, wanted, live.now()).catch(otherProcess);
  if (!invited) return;
  process.stderr.write(
    `open this link to make the first admin's account of the control panel, shown only now: ${publicUrl}/invitation/${invited.token}\n`,
  );
}

/** One that has started at the same time has invited the admin. */
function otherProcess(error: unknown): null {
  if (error instanceof Problem && error.code === "ACCOUNT_EXISTS") return null;
  throw error;
}
