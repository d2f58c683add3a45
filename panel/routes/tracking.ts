/** `GET /t/{token}`: the public tracking page, behind `trackingUrl` of document 1. */
import { opens, parseTrackingLink } from "#core/domain/tracking-link.ts";
import { publicRoutes } from "#core/http/access.ts";
import { readHistory, readShipments } from "#core/redis/shipments.ts";
import type { Runtime } from "#core/runtime.ts";
import { noTrackingPage, trackingPage } from "#panel/tracking-page.ts";

export function trackingRoute({ redis, live }: Pick<Runtime, "redis" | "live">) {
  return publicRoutes("tracking").get("/t/:token", async ({ params }) => {
    const link = parseTrackingLink(params.token);
    const [configuration, [shipment]] = await Promise.all([
      live.refresh(),
      readShipments(redis, [link?.shipmentId ?? 0]),
    ]);
    const channel = shipment && configuration.channels.get(shipment.record.channelId);
    if (!link || !shipment || !channel?.trackingPage) return noTrackingPage();
    if (!opens(link, shipment.record.trackingToken)) return noTrackingPage();
    const facts = await readHistory(redis, link.shipmentId);
    return trackingPage(shipment, facts, channel, configuration);
  });
}
