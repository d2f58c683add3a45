/** The summary of a stored shipment with the names that the configuration gives. */

import type { Configuration } from "#core/configuration/store/configuration.ts";
import { type ShipmentSummary, shipmentSummary } from "#core/shipments/rules/shipment-view.ts";
import type { StoredShipment } from "#core/shipments/store/shipments.ts";
import { viewNames } from "#core/shipments/store/view-names.ts";

export const EXAMPLE_SUMMARY: ShipmentSummary = {
  id: 4096,
  channelId: 1,
  trackingNumber: "AB123456789",
  trackingUrl: null,
  courier: "GLS_ITA",
  courierName: "GLS Italy",
  status: "DELIVERED",
  statusDescription: "Consegnata",
  statusDetail: 0,
  statusDetailDescription: null,
  statusDate: "2026-11-22 11:05:00",
  statusUpdatedAt: "2026-11-22 11:05:02",
  statusPlace: "Roma",
  shipDate: "2026-11-20",
  orderReference: "1001",
  platformOrderId: null,
  orderDate: null,
  tag: null,
  note: null,
  origin: "shopify",
  isReturn: false,
  consignee: {
    name: "Mario Rossi",
    street: null,
    city: "Roma",
    postcode: "00184",
    state: null,
    country: "IT",
    email: null,
    phone: null,
  },
  monetary: { totalValue: null, codAmount: null, shippingCost: null, currency: "EUR" },
  customAttributes: { custom1: null, custom2: null, custom3: null },
};

export function summaryOf(shipment: StoredShipment, configuration: Configuration): ShipmentSummary {
  const { record, state, statusUpdatedAtMs } = shipment;
  return shipmentSummary(record, state, statusUpdatedAtMs, viewNames(shipment, configuration));
}
