/** A label as it is read later, after it was made. */

import { type Static, Type } from "@sinclair/typebox";
import { LabelView } from "#core/merchants/rules/label.ts";
import { transmissionNumberOf } from "#core/merchants/rules/slip.ts";
import type { StoredLabel } from "#core/merchants/store/labels.ts";
import { nullableText } from "#core/platform/schema/nullable.ts";
import { romeIso } from "#core/platform/time/rome-time.ts";
import { labelView } from "./create.ts";

export const LabelAgain = Type.Object({
  ...LabelView.properties,
  createdAt: Type.String({ description: "ISO 8601" }),
  transmission: Type.Union(
    [
      Type.Object({
        transmissionId: Type.Integer(),
        transmissionNumber: Type.String(),
        slipUrl: Type.String(),
      }),
      Type.Null(),
    ],
    { description: "the transmission that holds it; null while it is not confirmed" },
  ),
  voidedAt: { ...nullableText, description: "ISO 8601; null unless it was voided" },
});
export type LabelAgain = Static<typeof LabelAgain>;

export const EXAMPLE_LABEL: LabelAgain = {
  id: 81,
  trackingNumbers: [{ number: "GEN000000000081", description: "parcel 1 of 1" }],
  courier: "GENERIC",
  reference: "1001",
  labels: ["JVBERi0xLjMK"],
  labelFormat: "PDF",
  extShipmentId: null,
  isExisting: true,
  createdAt: "2026-11-20T09:00:00.000+01:00",
  transmission: null,
  voidedAt: null,
};

export function labelAgain(
  { id, record, transmission, voidedAtMs }: StoredLabel,
  labels: readonly string[],
  publicUrl: string,
): LabelAgain {
  return {
    ...labelView({ id, record, labels, isExisting: true }),
    createdAt: romeIso(record.createdAtMs),
    transmission: transmission && {
      transmissionId: transmission.id,
      transmissionNumber: transmissionNumberOf(transmission.id),
      slipUrl: `${publicUrl}/slips/${transmission.slipToken}`,
    },
    voidedAt: voidedAtMs === null ? null : romeIso(voidedAtMs),
  };
}
