/**
 * End to end, from the HTTP message to the row in ClickHouse, beside the same work as BullMQ jobs (row 4):
 * `bun bench/end-to-end.ts [--seconds 120] [--shipments 256k] [--everysec] [--quick] [--json]`. Every role is a process of its own,
 * one each, and so is the sender; all share the machine. The sender keeps fewer messages in flight the nearer the slowest stage is to
 * 16,000 events behind, and none there, so the figure is what that stage can keep up. It counts the events whose row was found in
 * ClickHouse afterwards, over the time from the first message to the last row. What is left out is sending webhooks (rows 7
 * and 8). The lag is the age of the oldest entry that a stage had before it, in the second half of the run beside the first.
 */
import { openClickhouse } from "#analytics/clickhouse/clickhouse.ts";
import type { Config } from "#core/platform/environment/config.ts";
import { readLags } from "#core/platform/log/streams.ts";
import { readLedger } from "#core/webhooks/store/deliveries/ledger.ts";
import { PEER_QUEUES, peerClickhouse } from "./end-to-end-bullmq.ts";
import { STEPS } from "./events.ts";
import * as harness from "./harness.ts";
import { figureOf } from "./rows.ts";
import { benchSetup, loadShipments } from "./shipments.ts";
import { type Behind, runSustained, worstLag } from "./sustained-run.ts";

/** Warm-up: sent and processed before the clock starts, so that every process is up and its code is warm. */
const { seconds, shipments, warmUp, holdAt } = harness.readOptions({
  seconds: [120, 4],
  shipments: [256_000, 16_000],
  warmUp: [20_000, 2_000],
  holdAt: [16_000, 8_000],
});
const UNDERWAY = shipments / 16;
/** Lives of those that are underway at the same time. */
const EVENTS_PER_BLOCK = STEPS.length * UNDERWAY;
/** A run that is shorter is over before its lag has come to rest. */
const FLAT_FROM_SECONDS = 60;

type Way = typeof OURS;

const OURS = {
  name: "ours",
  /** Of a peer. */
  file: undefined as string | undefined,
  behind: ({ runtime }: harness.Store): Promise<readonly Behind[]> => readLags(runtime.redis),
  clickhouse: (config: Config) => config,
};

const PEER: Way = {
  name: "BullMQ",
  file: "bench/end-to-end-bullmq.ts",
  behind: ({ runtime: { redis } }) =>
    Promise.all(
      PEER_QUEUES.map(async (group) => {
        const lists = [`bull:${group}:wait`, `bull:${group}:active`];
        const [waiting = 0, active = 0] = await Promise.all(lists.map((key) => redis.lLen(key)));
        return { group, entries: waiting + active, seconds: 0 };
      }),
    ),
  clickhouse: peerClickhouse,
};

/**
 * @param from index of the first event in the lives of the shipments
 * @throws when an event has no row, or more than one
 */
async function measure(store: harness.Store, way: Way, from: number) {
  const { runtime, env } = store;
  const { redis } = runtime;
  const others = ["analytics", "processors"].map((name) => harness.startRole(name, env, way.file));
  const ingest = await harness.startServer("ingest", env, way.file);
  const roles = [ingest, ...others];
  const population = { shipments, active: shipments, underway: UNDERWAY };
  const behind = () => {
    const ended = roles.find((role) => role.hasEnded());
    if (ended) throw new Error(`${ended.name} has ended`);
    return way.behind(store);
  };
  const common = { url: ingest.url, holdAt, population, behind };
  await runSustained({ ...common, from, limit: warmUp, seconds: 60 });
  const bytesBefore = await harness.infoOf(redis, "persistence");
  const costing = await harness.startCosting(redis, roles);
  const limit = Number.MAX_SAFE_INTEGER;
  const sustained = await runSustained({ ...common, from: from + warmUp, limit, seconds });
  const { events, seconds: took } = sustained;
  if (events === 0) throw new Error(`${way.name}: no event came through in time`);
  const costs = await costing(events);
  for (const role of roles) await role.stop();
  const bytes = await harness.infoOf(redis, "persistence");
  const isRewritten = bytes("aof_base_size") !== bytesBefore("aof_base_size");
  const appended = (bytes("aof_current_size") - bytesBefore("aof_current_size")) / events;
  if (!isRewritten) harness.tell(`  ${Math.round(appended)} bytes appended an event`);
  await checkRows(way.clickhouse(runtime.config), warmUp + events);
  const { early, late } = worstLag(sustained.samples);
  return { events, rate: events / took, cost: harness.totalOf(costs), early, late };
}

async function checkRows(config: Config, events: number): Promise<void> {
  const clickhouse = await openClickhouse(config, "write");
  try {
    const answer = await clickhouse.query({
      query: "SELECT toUInt32(uniqExact(shipment_id, fact_key)) AS facts FROM events",
      format: "JSONEachRow",
    });
    const [found] = await answer.json<{ facts: number }>();
    if (found?.facts !== events) throw new Error(`${found?.facts} rows of ${events} events`);
  } finally {
    await clickhouse.close();
  }
}

await harness.runPart(async (defer) => {
  const store = await harness.openStore(defer, benchSetup());
  const { redis } = store.runtime;
  await loadShipments(store, shipments);
  const ours = await measure(store, OURS, 0);
  const { accepted, applied } = await readLedger(redis);
  const sent = warmUp + ours.events;
  if (accepted !== sent || applied !== sent) {
    throw new Error(`${accepted} accepted, ${applied} applied of ${sent} events`);
  }
  // Shipments that have had no event yet.
  const blocks = Math.ceil(sent / EVENTS_PER_BLOCK);
  const peer = await measure(store, PEER, blocks * EVENTS_PER_BLOCK);
  const lag = figureOf("end-to-end lag", { ours: ours.late, peer: ours.early });
  const figures = [
    figureOf("end-to-end rate", { ours: ours.rate, peer: peer.rate }, { seconds }),
    figureOf("end-to-end cost", { ours: ours.cost, peer: peer.cost }),
    ...(seconds < FLAT_FROM_SECONDS ? [] : [lag]),
  ];
  return { figures, redis, about: harness.fsyncText() };
});
