/** What is left of a shipment whose recipient's data was erased: numbers, statuses, times and places stay. */
import type { CourierEvent } from "#core/domain/courier-events/event.ts";
import { type Fact, withoutPersonalData } from "#core/domain/courier-events/fact.ts";
import type { ShipmentRecord } from "./shipment.ts";

/** Without the recipient, and without every text in which the merchant may have named one. */
export function erasedRecord(record: ShipmentRecord): ShipmentRecord {
  const { consignee, note, customAttributes, commercialContactEmail, orderItems, ...kept } = record;
  if (!orderItems) return kept;
  const items = orderItems.map((item) => {
    const { notes, custom1, custom2, custom3, custom4, custom5, ...rest } = item;
    return rest;
  });
  return { ...kept, orderItems: items };
}

export function erasedFact(fact: Fact): Fact {
  return { ...fact, event: erasedEvent(fact.event) };
}

/** Without free texts of the courier too, but for the description of its status, which every answer shows. */
export function erasedEvent(received: CourierEvent): CourierEvent {
  const { attributes, reason, ...event } = withoutPersonalData(received);
  const code = reason?.code;
  return { ...event, ...(code !== undefined && { reason: { code } }) };
}
