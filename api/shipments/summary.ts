/** The summary of a stored shipment with the names that the configuration gives. */
import { type ShipmentSummary, shipmentSummary } from "#core/domain/shipment-view.ts";
import type { Configuration } from "#core/redis/configuration.ts";
import type { StoredShipment } from "#core/redis/shipments.ts";

export function summaryOf(
  { record, state, statusUpdatedAtMs }: StoredShipment,
  { couriers, statusDetails }: Configuration,
): ShipmentSummary {
  return shipmentSummary(record, state, statusUpdatedAtMs, {
    courierName: couriers.get(record.courier)?.name ?? record.courier,
    statusDetail: statusDetails.get(state.pair.detail),
  });
}
