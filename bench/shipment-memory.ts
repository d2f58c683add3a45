/**
 * Bytes of Redis memory per shipment with 8 events, 1 parcel and 2 order lines (row 10), all in: state, history, indices,
 * references, tracking numbers: `bun bench/shipment-memory.ts [--shipments 20k] [--quick] [--json]`. Beside it the JSON text
 * of the same detail as the API answers it.
 */
import { detailPart } from "#api/shipments/shipment-detail.ts";
import type { Runtime } from "#core/runtime/runtime.ts";
import { readHistory, readShipments } from "#core/shipments/store/shipments.ts";
import { summaryOf } from "#core/shipments/store/summary.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { openStore, readOptions, runPart, usedBytes } from "./harness.ts";
import { figureOf } from "./rows.ts";
import { median } from "./table.ts";
import { addShipments, SHIPMENTS_AT_ONCE } from "./tracking.ts";

const { shipments } = readOptions({ shipments: [20_000, 2_000] });
/** Details that the JSON text is measured of. */
const DETAILS = 100;

/** As of a shipment that has ended. */
const NOT_EXPECTED = { expected: null, reason: "ENDED" } as const;

/** Of the detail as `GET /v2/shipments/{id}` answers it. */
async function jsonBytes({ redis, live }: Runtime, ids: readonly number[]): Promise<number> {
  const configuration = live.configuration();
  const sizes: number[] = [];
  for (const shipment of await readShipments(redis, ids)) {
    const history = await readHistory(redis, shipment.record.id);
    const summary = summaryOf(shipment, configuration);
    const rest = detailPart(shipment, history, [], configuration.statusDetails, NOT_EXPECTED);
    sizes.push(Buffer.byteLength(JSON.stringify({ ...summary, ...rest })));
  }
  return median(sizes);
}

await runPart(async (defer) => {
  const { runtime } = await openStore(defer, testSetup());
  const { redis } = runtime;
  await addShipments(runtime, 1_000_000, SHIPMENTS_AT_ONCE);
  const before = await usedBytes(redis);
  const ids = await addShipments(runtime, 0, shipments);
  const ours = ((await usedBytes(redis)) - before) / ids.length;
  const peer = await jsonBytes(runtime, ids.slice(0, DETAILS));
  const about = `${shipments.toLocaleString("en")} shipments`;
  return { figures: [figureOf("shipment-memory bytes", { ours, peer })], redis, about };
});
