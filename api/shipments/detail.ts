/** `GET /v2/shipments/{id}` (document 1, "Shipments"): state, history and notifications of a single point in time. */

import { type Caller, merchantRoutes } from "#api/auth/authenticated.ts";
import type { ApiDeps } from "#api/deps.ts";
import { NOT_MODIFIED, TAG_HEADERS, tagged } from "#api/http/paging.ts";
import { EXAMPLE_SUMMARY } from "#api/shipments/example-summary.ts";
import { ownMoment } from "#api/shipments/own-shipment.ts";
import { detailPart, ShipmentDetail } from "#api/shipments/shipment-detail.ts";
import { expectedDeliveryOf } from "#core/benchmarks/store/expected-delivery.ts";
import { readNotifications } from "#core/merchants/store/notifications.ts";
import { declared, route } from "#core/platform/http/access.ts";
import { idInPath, json } from "#core/platform/openapi/operation.ts";
import { summaryOf } from "#core/shipments/store/summary.ts";

export const EXAMPLE_DETAIL: ShipmentDetail = {
  ...EXAMPLE_SUMMARY,
  planning: { deliveryDate: null, latestShipDate: null, latestDeliveryDate: null },
  parcels: [],
  orderItems: [],
  history: [
    {
      date: "2026-11-22 11:05:00",
      courierStatus: "Consegnata",
      place: "Roma",
      status: "Consegnata",
      statusCode: "DELIVERED",
      statusDetail: null,
    },
  ],
  notifications: [],
  newTrackingNumbers: ["GLS000000002"],
  expectedDelivery: null,
  expectedDeliveryReason: "ENDED",
};

const operation = declared({
  access: { scope: "shipments:read" },
  id: "readShipment",
  summary: "Read a shipment with its history",
  parameters: [idInPath(EXAMPLE_SUMMARY.id)],
  answers: {
    200: { ...json("The shipment.", ShipmentDetail, EXAMPLE_DETAIL), headers: TAG_HEADERS },
    ...NOT_MODIFIED,
  },
  errors: ["SHIPMENT_NOT_FOUND", "ARCHIVE_UNAVAILABLE"],
});

export function detailRoute(deps: ApiDeps) {
  return merchantRoutes(deps).get(
    "/v2/shipments/:id",
    async ({ params, request, caller }): Promise<Response> =>
      tagged(request, await detailOf(deps, caller, params.id)),
    route(operation),
  );
}

/** @throws {Problem} 404, 503 */
export async function detailOf(
  deps: ApiDeps,
  { channel, configuration }: Pick<Caller, "channel" | "configuration">,
  id: string,
): Promise<ShipmentDetail> {
  const moment = await ownMoment(deps, channel, id);
  const { shipment } = moment;
  const facts = moment.facts();
  const nowMs = deps.live.now();
  const notifications = await readNotifications(deps.redis, moment, configuration, nowMs);
  const expecting = await expectedDeliveryOf(deps.redis, shipment, facts, nowMs);
  return {
    ...summaryOf(shipment, configuration),
    ...detailPart(shipment, facts, notifications, configuration.statusDetails, expecting),
  };
}
