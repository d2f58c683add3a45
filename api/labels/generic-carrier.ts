/** The test carrier GENERIC: makes real labels, calls nobody. */
import { parcelsOf } from "#core/merchants/rules/label.ts";
import { nextTurn } from "#core/platform/process/next-turn.ts";
import type { LabelCarrier, LabelOrder } from "./label-carrier.ts";
import { labelPdf } from "./label-pdf.ts";
import { labelSheets } from "./label-sheet.ts";
import { labelZpl } from "./label-zpl.ts";

export const genericCarrier: LabelCarrier = {
  needsWeight: false,
  async make(order) {
    const trackingNumbers = trackingNumbersOf(order);
    const numbers = trackingNumbers.map(({ number }) => number);
    const sheets = labelSheets({ ...order, trackingNumbers: numbers });
    const labels: string[] = [];
    // One at a time: a page takes about 30 ms, and other requests come in between.
    for (const sheet of sheets) {
      labels.push(order.format === "ZPL" ? labelZpl(sheet) : await labelPdf(sheet));
      await nextTurn();
    }
    return { kind: "ok", value: { trackingNumbers, extShipmentId: null, labels } };
  },
  // Made of the label's id alone: making it again makes the same.
  recover: async () => ({ kind: "ok", value: null }),
  confirm: async () => ({ kind: "ok", value: [] }),
  void: async () => ({ kind: "ok", value: null }),
};

/** `GEN` and the label's id; parcels after the first carry their number. */
function trackingNumbersOf({ id, request }: LabelOrder) {
  const count = parcelsOf(request).length;
  const main = `GEN${String(id).padStart(12, "0")}`;
  return Array.from({ length: count }, (_, at) => ({
    number: at === 0 ? main : `${main}-${at + 1}`,
    description: `parcel ${at + 1} of ${count}`,
  }));
}
