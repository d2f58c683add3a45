import type { Capability } from "#core/accounts/rules/roles.ts";
import { useMay } from "#panel/web/parts/use-may.ts";
import { isShadow } from "./choices.ts";

/** Whether the settings of a channel are the account's to change. A channel of test mode has those of its live channel. */
export function useMayChange(capability: Capability, channelCode: string): boolean {
  return useMay(capability) && !isShadow(channelCode);
}
