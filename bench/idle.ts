/**
 * The product at rest after full load (row 18): `bun bench/idle.ts [--load 60] [--rest 180] [--seconds 60] [--quick] [--json]`,
 * in seconds. All roles in one process on an embedded Redis as shipped, with 10,000 shipments. It takes all the events that it
 * can, then nothing; then CPU of both processes over `--seconds`, and what the product keeps in memory.
 */
import { readFile } from "node:fs/promises";
import { readLags } from "#core/platform/log/streams.ts";
import * as harness from "./harness.ts";
import { figureOf } from "./rows.ts";
import { benchSetup, loadShipments } from "./shipments.ts";
import { runSustained } from "./sustained-run.ts";

/** The rest is longer than the allocator keeps freed memory (`ALLOCATOR_OF_ALL`). */
const { load, rest, seconds } = harness.readOptions({
  load: [60, 5],
  rest: [180, 10],
  seconds: [60, 10],
});
const SHIPMENTS = 10_000;

await harness.runPart(async (defer) => {
  const store = await harness.openStore(defer, benchSetup());
  const { redis } = store.runtime;
  await loadShipments(store, SHIPMENTS);
  const { ingest, child } = await harness.startProduct(defer, store);
  await runSustained({
    url: ingest,
    from: 0,
    limit: Number.MAX_SAFE_INTEGER,
    seconds: load,
    population: { shipments: SHIPMENTS, active: SHIPMENTS, underway: SHIPMENTS },
    behind: () => readLags(redis),
  });
  await Bun.sleep(rest * 1_000);
  const costing = await harness.startCosting(redis, [{ name: "product", pid: child.pid }]);
  await Bun.sleep(seconds * 1_000);
  const perSecondUs = harness.totalOf(await costing(seconds));
  const status = await readFile(`/proc/${child.pid}/status`, "utf8");
  const residentKb = Number(/VmRSS:\s*(\d+) kB/.exec(status)?.[1]);
  const figures = [
    figureOf("idle cpu", { ours: perSecondUs / 1e4 }),
    figureOf("idle memory", { ours: residentKb / 1_024 }),
  ];
  return { figures, redis, about: `${rest} s of rest` };
});
