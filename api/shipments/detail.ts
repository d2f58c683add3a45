/** `GET /v2/shipments/{id}` (document 1, "Shipments"): state, history and notifications of a single point in time. */
import { Elysia } from "elysia";
import { authenticated } from "#api/auth/authenticated.ts";
import type { ApiDeps } from "#api/deps.ts";
import { ownMoment } from "#api/shipments/own-shipment.ts";
import { detailPart } from "#api/shipments/shipment-detail.ts";
import { summaryOf } from "#api/shipments/summary.ts";
import { readNotifications } from "#core/redis/merchant/notifications.ts";

export function detailRoute(deps: ApiDeps) {
  const { redis, live } = deps;
  return new Elysia().use(authenticated(deps)).get(
    "/v2/shipments/:id",
    async ({ params, caller: { channel, configuration } }) => {
      const moment = await ownMoment(redis, channel, params.id);
      const { shipment, facts } = moment;
      const notifications = await readNotifications(redis, moment, configuration, live.now());
      return {
        ...summaryOf(shipment, configuration),
        ...detailPart(shipment, facts(), notifications, configuration.statusDetails),
      };
    },
    { scope: "shipments:read" },
  );
}
