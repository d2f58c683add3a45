/** `GET /panel/api/channels/{code}/usage`: what a channel uses of its allowance, and what is billed. */

import { Type } from "@sinclair/typebox";
import { readAddressChecks } from "#core/merchants/store/address-checks.ts";
import { readBudget, readSuspensions } from "#core/merchants/store/rate-limit.ts";
import { route } from "#core/platform/http/access.ts";
import { nullableText } from "#core/platform/schema/nullable.ts";
import type { Runtime } from "#core/runtime/runtime.ts";
import { panelRoutes } from "#panel/server/panel-routes.ts";
import { channelOf } from "#panel/server/webhooks/webhook-access.ts";
import { AddressChecks } from "./address-checks.ts";
import { RateLimitView } from "./companies.ts";

export const Usage = Type.Object({
  requests: Type.Object({
    ...RateLimitView.properties,
    remaining: Type.Integer({ description: "requests that the channel may make now" }),
    refillAt: Type.Union(nullableText.anyOf, { description: "null while the budget is full" }),
  }),
  suspendedKeys: Type.Array(
    Type.Object({ id: Type.Integer(), until: Type.String({ description: "ISO 8601" }) }),
    { description: "API keys that too many refused requests have suspended" },
  ),
  addressChecks: Type.Omit(AddressChecks, ["channel"]),
});

export function usageRoute(runtime: Runtime) {
  const { redis, live } = runtime;
  return panelRoutes(runtime, "usage").get(
    "/panel/api/channels/:channelCode/usage",
    async ({ params }) => {
      const configuration = await live.refresh();
      const channel = channelOf(configuration, params.channelCode);
      const keys = [...configuration.apiKeyById.values()].filter(
        ({ channelId, active }) => active && channelId === channel.id,
      );
      const nowMs = live.now();
      const [budget, suspensions, months] = await Promise.all([
        readBudget(redis, channel, nowMs),
        readSuspensions(
          redis,
          channel,
          keys.map(({ id }) => id),
          nowMs,
        ),
        readAddressChecks(redis, { companyId: channel.companyId, channelId: channel.id }),
      ]);
      const { bucketSize, refillRate } = channel;
      const { remaining, refillAtMs } = budget;
      return {
        requests: { bucketSize, refillRate, remaining, refillAt: isoOrNull(refillAtMs) },
        suspendedKeys: [...suspensions].map(([id, untilMs]) => ({
          id,
          until: new Date(untilMs).toISOString(),
        })),
        addressChecks: { total: months.reduce((sum, { checks }) => sum + checks, 0), months },
      };
    },
    route({
      access: { can: "channels:read", of: "channel" },
      response: Usage,
      summary: "The request budget now, suspended keys, and address checks by month",
    }),
  );
}

function isoOrNull(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString();
}
