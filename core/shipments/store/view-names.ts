/** What the summary of a shipment looks up in the configuration; the same in the API and in webhooks. */

import type { Configuration } from "#core/configuration/store/configuration.ts";
import type { ViewNames } from "#core/shipments/rules/shipment-view.ts";
import { trackingUrl } from "#core/shipments/rules/tracking-link.ts";
import type { StoredShipment } from "./shipments.ts";

export function viewNames(
  { record, state }: Pick<StoredShipment, "record" | "state">,
  { couriers, statusDetails, channels, publicUrl }: Configuration,
): ViewNames {
  const { id, courier, trackingToken } = record;
  const hasPage = channels.get(record.channelId)?.trackingPage ?? false;
  return {
    courierName: couriers.get(courier)?.name ?? courier,
    statusDetail: statusDetails.get(state.pair.detail),
    trackingUrl: hasPage ? trackingUrl(publicUrl, id, trackingToken) : null,
  };
}
