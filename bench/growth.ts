/**
 * What an event costs as shipments grow (row 14): `bun bench/growth.ts [--events 60k] [--everysec] [--json]`.
 * Every size has roles and a Redis of its own, is warmed up, and is given the same events, of 10,000 shipments spread evenly
 * over all: first the whole way of row 4, then event log to state as in row 3. Costs are CPU time, since the sender shares the
 * machine. 5m takes about 15 GB of memory and a quarter of an hour, most of it for putting the shipments there.
 */
import { freemem } from "node:os";
import { readLags } from "#core/platform/log/streams.ts";
import { readLedger } from "#core/webhooks/store/deliveries/ledger.ts";
import type { Population } from "./events.ts";
import * as harness from "./harness.ts";
import { figureOf } from "./rows.ts";
import { benchSetup, emptyLogs, loadShipments } from "./shipments.ts";
import { runSustained } from "./sustained-run.ts";
import type { Cost, Size } from "./table.ts";
import { processLog } from "./tracking.ts";

const { tell, flags } = harness;
const { events: EVENTS } = harness.readOptions({ events: [60_000, 10_000] });
const WARM_UP = Math.ceil(EVENTS / 3_000) * 1_000;
const ACTIVE = 10_000;
const RUN_LIMIT_SECONDS = 300;
/** Of the machine's memory, with what is copied while the append-only file is written. */
const BYTES_PER_SHIPMENT = 3_000;

async function costed(
  { runtime: { redis } }: harness.Store,
  roles: readonly Pick<harness.Role, "name" | "pid">[],
  work: () => Promise<unknown>,
): Promise<Cost> {
  const costing = await harness.startCosting(redis, roles);
  await work();
  const costs = await costing(EVENTS);
  const { redis: redisUs = 0 } = costs;
  return { redisUs, ownUs: harness.totalOf(costs) - redisUs };
}

async function measureSize(store: harness.Store, shipments: number): Promise<Size> {
  const { runtime, env } = store;
  const { redis } = runtime;
  if (freemem() < shipments * BYTES_PER_SHIPMENT) throw new Error("not enough memory is free");
  await loadShipments(store, shipments);
  const ingest = await harness.startServer("ingest", env);
  const population: Population = { shipments, active: ACTIVE, underway: ACTIVE };
  const common = { url: ingest.url, population, seconds: RUN_LIMIT_SECONDS };
  let from = 0;
  const send = async (limit: number, behind?: () => ReturnType<typeof readLags>) => {
    await runSustained({ ...common, from, limit, ...(behind && { behind }) });
    from += limit;
  };
  const others = ["analytics", "processors"].map((name) => harness.startRole(name, env));
  const lags = () => readLags(redis);
  await send(WARM_UP, lags);
  const wholeWay = await costed(store, [ingest, ...others], () => send(EVENTS, lags));
  for (const role of others) await role.stop();
  await send(WARM_UP);
  await processLog(runtime, WARM_UP);
  const logBefore = await harness.usedBytes(redis);
  await send(EVENTS);
  const logBytes = ((await harness.usedBytes(redis)) - logBefore) / EVENTS;
  tell(`  ${Math.round(logBytes)} bytes of Redis memory an event in the log, its eventId in`);
  const own = [{ name: "track", pid: process.pid }];
  const toState = await costed(store, own, () => processLog(runtime, EVENTS));
  const { applied } = await readLedger(redis);
  if (applied !== from) throw new Error(`${applied} of ${from} events were applied`);
  await emptyLogs(redis);
  return { shipments, wholeWay, toState };
}

const total = ({ redisUs, ownUs }: Cost) => redisUs + ownUs;

await harness.runPart(async () => {
  const sizes: Size[] = [];
  for (const shipments of flags.quick
    ? [10_000, 20_000]
    : [10_000, 100_000, 1_000_000, 5_000_000]) {
    await using stack = new AsyncDisposableStack();
    const store = await harness.openStore(harness.deferTo(stack), benchSetup());
    sizes.push(await measureSize(store, shipments));
  }
  const [first, last] = [sizes[0], sizes.at(-1)];
  if (!first || !last) throw new Error("no sizes");
  const [few, many] = [first.shipments, last.shipments];
  const names = { many, few, times: Math.round(many / few) };
  // Cost at the largest size beside the cost at the smallest: 1 is none, and what linear growth is, the work says.
  const costs = (part: "wholeWay" | "toState") => {
    return { ours: total(last[part]), peer: total(first[part]) };
  };
  const whole = figureOf("growth whole", costs("wholeWay"), names);
  return {
    figures: [figureOf("growth state", costs("toState"), names), { ...whole, growth: sizes }],
  };
});
