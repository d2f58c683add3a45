/** `GET /panel/api/channels/{code}/onboarding`: what a merchant's channel has, and what it lacks, by fact. */
import { Type } from "@sinclair/typebox";
import { route } from "#core/platform/http/access.ts";
import { companyKeys, companyPartition } from "#core/platform/redis/keys.ts";
import { nullableText } from "#core/platform/schema/nullable.ts";
import type { Runtime } from "#core/runtime/runtime.ts";
import { readVerified } from "#core/webhooks/store/verified-endpoints.ts";
import { panelRoutes } from "#panel/server/panel-routes.ts";
import { channelOf } from "#panel/server/webhooks/webhook-access.ts";

export const ChannelSteps = Type.Object({
  apiKey: Type.Boolean({ description: "it has a key that works" }),
  courier: Type.Boolean({ description: "it ships with a courier" }),
  endpointId: Type.Union(nullableText.anyOf, { description: "of its first endpoint; null = none" }),
  webhookVerifiedAt: Type.Union(nullableText.anyOf, {
    description: "when a test event was delivered last, ISO 8601; null = none has been",
  }),
  shipment: Type.Boolean({ description: "it has registered a shipment" }),
});

export function channelStepsRoute(runtime: Runtime) {
  const { redis, live } = runtime;
  return panelRoutes(runtime, "channel-onboarding").get(
    "/panel/api/channels/:channelCode/onboarding",
    async ({ params }) => {
      const configuration = await live.refresh();
      const channel = channelOf(configuration, params.channelCode);
      const { id, companyId, couriers, endpoints, active } = channel;
      const keys = [...configuration.apiKeyById.values()];
      const ids = endpoints.map((endpoint) => endpoint.id);
      const [verifiedAtMs, shipments] = await Promise.all([
        readVerified(redis, ids),
        redis.zCard(companyKeys(companyPartition(companyId)).index(id, "id")),
      ]);
      return {
        apiKey: active && keys.some((key) => key.channelId === id && key.active),
        courier: couriers.size > 0,
        endpointId: ids[0] ?? null,
        webhookVerifiedAt: verifiedAtMs === null ? null : new Date(verifiedAtMs).toISOString(),
        shipment: shipments > 0,
      };
    },
    route({
      access: { can: "channels:read", of: "channel" },
      response: ChannelSteps,
      summary: "The steps from a contract to the first shipment, by what is there",
    }),
  );
}
