/** `GET /v2/shipments/{id}` (document 1, "Shipments"). */
import { Elysia } from "elysia";
import { authenticated } from "#api/auth/authenticated.ts";
import type { ApiDeps } from "#api/deps.ts";
import { ownShipment } from "#api/shipments/own-shipment.ts";
import { detailPart } from "#api/shipments/shipment-detail.ts";
import { summaryOf } from "#api/shipments/summary.ts";
import { readNotifications } from "#core/redis/notifications.ts";
import { readHistory } from "#core/redis/shipments.ts";

export function detailRoute(deps: ApiDeps) {
  const { redis, live } = deps;
  return new Elysia().use(authenticated(deps)).get(
    "/v2/shipments/:id",
    async ({ params, caller: { channel, configuration } }) => {
      const shipment = await ownShipment(redis, channel, params.id);
      const { id } = shipment.record;
      const [facts, notifications] = await Promise.all([
        readHistory(redis, id),
        readNotifications(redis, id, configuration, live.now()),
      ]);
      return {
        ...summaryOf(shipment, configuration),
        ...detailPart(shipment, facts, notifications, configuration.statusDetails),
      };
    },
    { scope: "shipments:read" },
  );
}
