/** The summary of a stored shipment with the names that the configuration gives; the same in the API, in webhooks and in messages. */

import type { Configuration } from "#core/configuration/store/configuration.ts";
import { type ShipmentSummary, shipmentSummary } from "#core/shipments/rules/shipment-view.ts";
import { trackingUrl } from "#core/shipments/rules/tracking-link.ts";
import type { StoredShipment } from "./shipments.ts";

export function summaryOf(
  { record, state, statusUpdatedAtMs }: StoredShipment,
  { couriers, statusDetails, channels, publicUrl }: Configuration,
): ShipmentSummary {
  const { id, courier, trackingToken } = record;
  const hasPage = channels.get(record.channelId)?.trackingPage ?? false;
  return shipmentSummary(record, state, statusUpdatedAtMs, {
    courierName: couriers.get(courier)?.name ?? courier,
    statusDetail: statusDetails.get(state.pair.detail),
    trackingUrl: hasPage ? trackingUrl(publicUrl, id, trackingToken) : null,
  });
}
