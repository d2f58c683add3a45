/** A shipment that is nobody's, for previews and tests of templates. */

import { SAMPLE_SHIPMENT } from "#core/shipments/rules/sample-shipment.ts";
import type { Language } from "#core/shipments/rules/shipment.ts";
import { statusText } from "#core/statuses/rules/status-text.ts";
import { messageValues } from "./message-values.ts";
import type { Values } from "./render-template.ts";

/** @param publicUrl where tracking pages are; the sample's link leads to none */
export function sampleValues(language: Language, merchant: string, publicUrl: string): Values {
  const summary = {
    ...SAMPLE_SHIPMENT,
    statusDescription: statusText("IN_TRANSIT", language),
    trackingUrl: `${publicUrl}/t/sample`,
  };
  const variables = { custom1: "custom1", custom2: "custom2", custom3: "custom3" };
  return messageValues(summary, merchant, variables);
}
