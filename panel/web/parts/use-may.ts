import { useSuspenseQuery } from "@tanstack/react-query";
import type { Capability } from "#core/accounts/rules/roles.ts";
import { meQuery } from "#panel/web/queries.ts";

/** Whether the visitor may do something: who may not sees no button for it. */
export function useMay(capability: Capability): boolean {
  return useSuspenseQuery(meQuery).data.capabilities.includes(capability);
}
