import { SAMPLE_SHIPMENT } from "#core/shipments/rules/sample-shipment.ts";
import type { ShipmentSummary } from "#core/shipments/rules/shipment-view.ts";

/** The example of the reference. */
export const EXAMPLE_SUMMARY: ShipmentSummary = {
  ...SAMPLE_SHIPMENT,
  id: 4096,
  trackingNumber: "AB123456789",
  courier: "GLS_ITA",
  courierName: "GLS Italy",
  status: "DELIVERED",
  statusDescription: "Consegnata",
  statusDate: "2026-11-22 11:05:00",
  statusUpdatedAt: "2026-11-22 11:05:02",
  shipDate: "2026-11-20",
  orderReference: "1001",
  orderDate: "2026-11-19",
  origin: "shopify",
};
