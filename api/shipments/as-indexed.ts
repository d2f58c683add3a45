/** Rows of a page sorted by statusUpdatedAt, as the index had them. */
import type { Hit } from "#core/search/store/index-ranges.ts";
import type { StoredShipment } from "#core/shipments/store/shipments.ts";

/**
 * A shipment that changed again after the index was read keeps the statusUpdatedAt it was found by: a reader that goes on
 * from the last item's (reconciliation procedure) must not skip what lies in between.
 */
export function asIndexed(
  shipments: readonly StoredShipment[],
  hits: readonly Hit[],
): StoredShipment[] {
  const seconds = new Map(hits.map(({ id, score }) => [id, score]));
  return shipments.map((shipment) => {
    const second = seconds.get(shipment.record.id) ?? 0;
    return { ...shipment, statusUpdatedAtMs: second === 0 ? null : second * 1000 };
  });
}

/** No shipment has changed since the index was read. */
export function isAsIndexed(shipments: readonly StoredShipment[], hits: readonly Hit[]): boolean {
  const seconds = new Map(hits.map(({ id, score }) => [id, score]));
  return shipments.every(
    ({ record, statusUpdatedAtMs }) =>
      (statusUpdatedAtMs ?? 0) === (seconds.get(record.id) ?? 0) * 1000,
  );
}
