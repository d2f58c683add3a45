/** `GET /t/{token}`: the public tracking page, behind `trackingUrl` of document 1. */

import { type Archive, channelsOfShipments, readAnywhere } from "#core/archive/store/archive.ts";
import { publicRoutes } from "#core/platform/http/access.ts";
import type { Runtime } from "#core/runtime/runtime.ts";
import { isLanguage } from "#core/shipments/rules/shipment.ts";
import { opens, parseTrackingLink } from "#core/shipments/rules/tracking-link.ts";
import {
  readShipmentWithHistory,
  type ShipmentWithHistory,
} from "#core/shipments/store/shipments.ts";
import { noTrackingPage, trackingPage } from "./tracking-page.ts";

export function trackingRoute({ redis, live }: Pick<Runtime, "redis" | "live">, archive: Archive) {
  return publicRoutes("tracking").get("/t/:token", async ({ params, query }) => {
    const link = parseTrackingLink(params.token);
    const configuration = await live.refresh();
    const id = link?.shipmentId ?? 0;
    const shipments = await readAnywhere<ShipmentWithHistory>(redis, archive, [id], {
      channelIds: channelsOfShipments(configuration, [id]),
      async readHot() {
        const hot = await readShipmentWithHistory(redis, id);
        return new Map(hot ? [[id, hot]] : []);
      },
      thaw: ({ facts }) => facts,
      // Its token cannot be compared: the answer is the same as for a link that is none of ours.
      withoutDamaged: true,
    });
    const found = shipments.get(id);
    const channel = found && configuration.channels.get(found.shipment.record.channelId);
    if (!link || !found || !channel?.trackingPage) return noTrackingPage();
    if (!opens(link, found.shipment.record.trackingToken)) return noTrackingPage();
    const asked = String(query["lang"] ?? "");
    const language = isLanguage(asked) ? asked : found.shipment.record.language;
    return trackingPage(found.shipment, found.facts(), channel, configuration, language);
  });
}
