/** `GET /v2/shipments/{id}` (document 1, "Shipments"). */
import { Elysia } from "elysia";
import { authenticated } from "#api/auth/authenticated.ts";
import type { ApiDeps } from "#api/deps.ts";
import { detailPart } from "#api/shipments/shipment-detail.ts";
import { summaryOf } from "#api/shipments/summary.ts";
import { Problem } from "#core/problem.ts";
import { readNotifications } from "#core/redis/notifications.ts";
import { readHistory, readShipments } from "#core/redis/shipments.ts";

/** Ids have at most twelve digits; any other text is the id of no shipment. */
const ID_FORM = /^[1-9]\d{0,11}$/;

export function detailRoute(deps: ApiDeps) {
  const { redis } = deps;
  return new Elysia().use(authenticated(deps)).get(
    "/v2/shipments/:id",
    async ({ params, caller: { channel, configuration } }) => {
      const id = ID_FORM.test(params.id) ? Number(params.id) : 0;
      // A missing one is read like any other, so that a foreign one is not told apart by time.
      const [shipment] = await readShipments(redis, [id]);
      if (shipment?.record.channelId !== channel.id) throw notFound();
      const [facts, notifications] = await Promise.all([
        readHistory(redis, id),
        readNotifications(redis, id),
      ]);
      return {
        ...summaryOf(shipment, configuration),
        ...detailPart(shipment.record, facts, notifications, configuration.statusDetails),
      };
    },
    { scope: "shipments:read" },
  );
}

/** The same for a missing shipment, one of another channel and a text that is no id. */
function notFound(): Problem {
  return new Problem(404, "SHIPMENT_NOT_FOUND", "There is no such shipment.");
}
