/** `GET /panel/api/number-conflicts`: tracking number changes that point to the number of another live shipment. */

import { Type } from "@sinclair/typebox";
import { CONFLICTS_LISTED, listConflicts } from "#core/events/store/number-conflicts.ts";
import { route } from "#core/platform/http/access.ts";
import { nullableText } from "#core/platform/schema/nullable.ts";
import type { Runtime } from "#core/runtime/runtime.ts";
import {
  cursorBehind,
  LONG_PAGE,
  offsetPageOf,
  offsetQuery,
} from "#panel/server/http/list-page.ts";
import { panelRoutes } from "#panel/server/panel-routes.ts";

const NumberConflicts = Type.Object({
  total: Type.Integer({ description: `at most ${CONFLICTS_LISTED}: the oldest are removed` }),
  items: Type.Array(
    Type.Object({
      courier: Type.String(),
      eventId: Type.String({ description: "of the event that announced the new number" }),
      shipmentId: Type.Integer({ description: "the shipment whose number changes" }),
      newTrackingNumber: Type.String(),
      otherShipmentIds: Type.Array(Type.Integer(), {
        description: "shipments that had the new number and had not ended",
      }),
      at: Type.String({ description: "when the event was received, ISO 8601" }),
    }),
  ),
  nextCursor: nullableText,
});

export function numberConflictsRoute(runtime: Runtime) {
  return panelRoutes(runtime, "number-conflicts").get(
    "/panel/api/number-conflicts",
    async ({ query }) => {
      const page = offsetPageOf(query, LONG_PAGE);
      const { conflicts, total } = await listConflicts(runtime.redis, page.offset, page.limit);
      const items = conflicts.map(({ atMs, otherShipmentIds, ...conflict }) => ({
        ...conflict,
        otherShipmentIds: [...otherShipmentIds],
        at: new Date(atMs).toISOString(),
      }));
      return { total, items, nextCursor: cursorBehind(page, total) };
    },
    route({
      access: { can: "overview:read", of: "installation" },
      query: offsetQuery(LONG_PAGE),
      response: NumberConflicts,
      summary: "Number changes that point to another live shipment's number, the newest first",
    }),
  );
}
