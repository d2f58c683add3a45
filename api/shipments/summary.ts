/** The summary of a stored shipment with the names that the configuration gives. */
import { type ShipmentSummary, shipmentSummary } from "#core/domain/shipments/shipment-view.ts";
import type { Configuration } from "#core/redis/config/configuration.ts";
import type { StoredShipment } from "#core/redis/shipments/shipments.ts";
import { viewNames } from "#core/redis/shipments/view-names.ts";

export function summaryOf(shipment: StoredShipment, configuration: Configuration): ShipmentSummary {
  const { record, state, statusUpdatedAtMs } = shipment;
  return shipmentSummary(record, state, statusUpdatedAtMs, viewNames(shipment, configuration));
}
