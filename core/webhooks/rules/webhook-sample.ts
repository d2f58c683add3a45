/** The fixed sample of a webhook that test events and examples show (document 3, "Test event"). */

import type { SetupStatusDetail } from "#core/setup/rules/setup.ts";
import { SAMPLE_SHIPMENT } from "#core/shipments/rules/sample-shipment.ts";
import type { ShipmentSummary } from "#core/shipments/rules/shipment-view.ts";
import type { StatusPair } from "#core/statuses/rules/status.ts";
import { statusDetailText, statusText } from "#core/statuses/rules/status-text.ts";
import type { FrozenFact } from "./webhook-payload.ts";

/** 2026-01-15 10:30:00 in Rome, the date of the sample. */
export const SAMPLE_FACT: FrozenFact = {
  occurredAtMs: Date.UTC(2026, 0, 15, 9, 30),
  courierStatus: "In transito",
  place: "Milano",
  status: "IN_TRANSIT",
  detail: 0,
};

/** What the sample is in, unless somebody chooses. */
export const SAMPLE_PAIR: StatusPair = { status: "IN_TRANSIT", detail: 0 };

/** The sample in a chosen status. @param registered the detail's entry in the registry; absent for 0 = none */
export function sampleIn(
  { status, detail }: StatusPair,
  registered: SetupStatusDetail | undefined,
): { readonly fact: FrozenFact; readonly shipment: ShipmentSummary } {
  return {
    fact: { ...SAMPLE_FACT, status, detail, courierStatus: statusText(status, "it") },
    shipment: {
      ...SAMPLE_SHIPMENT,
      status,
      statusDescription: statusText(status, "en"),
      statusDetail: detail,
      statusDetailDescription: statusDetailText(registered, "en"),
    },
  };
}
