/** `GET /t/{token}`: the public tracking page, behind `trackingUrl` of document 1. */
import { opens, parseTrackingLink } from "#core/domain/shipments/tracking-link.ts";
import { publicRoutes } from "#core/http/access.ts";
import { readShipmentWithHistory } from "#core/redis/shipments/shipments.ts";
import type { Runtime } from "#core/runtime.ts";
import { noTrackingPage, trackingPage } from "#panel/tracking-page.ts";

export function trackingRoute({ redis, live }: Pick<Runtime, "redis" | "live">) {
  return publicRoutes("tracking").get("/t/:token", async ({ params }) => {
    const link = parseTrackingLink(params.token);
    const [configuration, found] = await Promise.all([
      live.refresh(),
      readShipmentWithHistory(redis, link?.shipmentId ?? 0),
    ]);
    const channel = found && configuration.channels.get(found.shipment.record.channelId);
    if (!link || !found || !channel?.trackingPage) return noTrackingPage();
    if (!opens(link, found.shipment.record.trackingToken)) return noTrackingPage();
    return trackingPage(found.shipment, found.facts(), channel, configuration);
  });
}
