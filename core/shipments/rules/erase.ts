/** What is left of a shipment whose recipient's data was erased: numbers, statuses, times and places stay. */
import type { CourierEvent } from "#core/events/rules/event.ts";
import { type Fact, withoutPersonalData } from "#core/events/rules/fact.ts";
import type { OrderItem, ShipmentRecord } from "./shipment.ts";

/** Without the recipient, and without every text in which the merchant may have named one. */
export function erasedRecord(record: ShipmentRecord): ShipmentRecord {
  const { consignee, note, tag, customAttributes, commercialContactEmail, ...kept } = record;
  const { orderItems, parcels, ...rest } = kept;
  return {
    ...rest,
    ...(orderItems && { orderItems: orderItems.map(erasedItem) }),
    ...(parcels && { parcels: parcels.map(({ content, ...parcel }) => parcel) }),
  };
}

/** The article stays: its number, name, price and measures. */
function erasedItem(item: OrderItem): OrderItem {
  const { notes, url, imageUrl, custom1, custom2, custom3, custom4, custom5, ...kept } = item;
  return kept;
}

export function erasedFact(fact: Fact): Fact {
  return { ...fact, event: erasedEvent(fact.event) };
}

/** Without free texts of the courier too, but for the description of its status, which every answer shows. */
export function erasedEvent(received: CourierEvent): CourierEvent {
  const { attributes, reason, trackingNumberChange, ...event } = withoutPersonalData(received);
  const code = reason?.code;
  const newTrackingNumber = trackingNumberChange?.newTrackingNumber;
  return {
    ...event,
    ...(code !== undefined && { reason: { code } }),
    ...(newTrackingNumber !== undefined && { trackingNumberChange: { newTrackingNumber } }),
  };
}
