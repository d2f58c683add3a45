/**
 * One merchant with one endpoint (rows 16 and 17): `bun bench/one-endpoint.ts [--deliveries 20000] [--rounds 3] [--quick]
 * [--json]`. HTTPS with keep-alive, 2 KB, signed; the receiver is a process of its own, Redis is as shipped, decisions are made
 * before the clock starts. Row 16: the receiver answers at once; beside BullMQ with `fetch` and as many workers as an endpoint
 * may have requests in flight. Row 17: it takes 100 ms, or a second; the first seconds, in which the concurrency finds its
 * level, are in it.
 */
import { parseArgs } from "node:util";
import { type Receivers, startReceivers } from "#bench/start-receivers.ts";
import { type Figure, machine, median, print, redisVersion } from "#bench/table.ts";
import { type BullmqJob, createBullmqPeer } from "#bench/webhook-bullmq.ts";
import { companyKeys, PARTITIONS } from "#core/platform/redis/keys.ts";
import type { SetupFile } from "#core/setup/rules/setup.ts";
import { DEFAULT_MAX_CONCURRENCY } from "#core/webhooks/rules/concurrency.ts";
import {
  type Decision,
  eventIdOf,
  recordDecisions,
} from "#core/webhooks/store/deliveries/deliveries.ts";
import { startDeliverer } from "#processors/webhooks/deliver.ts";
import { createTransport, type Transport } from "#processors/webhooks/transport.ts";
import { testSetup, WEBHOOK_SECRET } from "#test/support/data/setup.ts";
import { addShipment } from "#test/support/data/shipments.ts";
import { eventually } from "#test/support/eventually.ts";
import { openTestRuntime, type TestRuntime } from "#test/support/product/runtime.ts";

const SHIPMENTS = 50;
const BODY_BYTES = 2_048;
const DECISIONS_PER_CALL = 500;
const RUN_LIMIT_MS = 300_000;
const GOAL = { least: 3, oursLeast: 5_000 };
const ALARM = { least: 1 };
const COST_GOAL_US = 300;
/** How long the receiver takes, deliveries of a run and what is wanted a second. */
const SLOW = [
  { tookMs: 100, deliveries: 20_000, goal: 1_500, alarm: 300 },
  { tookMs: 1_000, deliveries: 8_000, goal: 200, alarm: 50 },
] as const;
const QUICK_SHARE = 10;

const { values } = parseArgs({
  options: {
    deliveries: { type: "string" },
    rounds: { type: "string" },
    quick: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
  },
});
const deliveries = Number(values.deliveries ?? (values.quick ? 5_000 : 20_000));
const rounds = Number(values.rounds ?? (values.quick ? 1 : 3));

/** One channel for each kind of receiver, with one endpoint. */
function benchSetup({ urlOf, slowUrlOf }: Receivers): SetupFile {
  const urls = [urlOf(0), ...SLOW.map(({ tookMs }, n) => slowUrlOf(n + 1, tookMs))];
  const companies = urls.map((url, n) => ({
    code: `company-${n}`,
    channels: [
      {
        code: `channel-${n}`,
        couriers: [{ code: "GLS_ITA" }],
        webhooks: [{ code: "hook", url, alertEmail: "ops@bench.test", secret: WEBHOOK_SECRET }],
      },
    ],
  }));
  return { ...testSetup(), companies };
}

async function addShipments(runtime: TestRuntime, channel: string): Promise<number[]> {
  const ids: number[] = [];
  for (let n = 0; n < SHIPMENTS; n += 1) {
    ids.push(await addShipment(runtime, `BENCH-${channel}-${n}`, { channel }));
  }
  return ids;
}

let changes = 0;

/** Decides and queues, as the consumer does, and nothing is sent yet. */
async function queue(runtime: TestRuntime, code: string, ids: number[], count: number) {
  const channels = [...runtime.live.configuration().channels.values()];
  const channel = channels.find((one) => one.code === code);
  const decisions = Array.from({ length: count }, (): Decision => {
    changes += 1;
    return {
      shipmentId: ids[changes % ids.length] ?? 0,
      channelId: channel?.id ?? 0,
      eventId: eventIdOf("bench", `${changes}-0`),
      entryId: `${changes}-0`,
      fact: {
        key: `fact-${changes}`,
        occurredAtMs: 0,
        receivedAtMs: 0,
        status: "IN_TRANSIT",
        // Fills the body up to its size.
        courierStatus: "x".repeat(BODY_BYTES - 1_000),
        place: "Milano",
        detail: 0,
      },
      verdicts: (channel?.endpoints ?? []).map(({ id, trigger }) => ({
        endpointId: id,
        trigger,
        verdict: "send" as const,
      })),
    };
  });
  for (let from = 0; from < count; from += DECISIONS_PER_CALL) {
    const part = decisions.slice(from, from + DECISIONS_PER_CALL);
    await recordDecisions(runtime.redis, part, runtime.live.now());
  }
}

async function delivered({ redis }: TestRuntime): Promise<number> {
  const partitions = Array.from({ length: PARTITIONS }, (_, n) => n);
  const fields = await Promise.all(
    partitions.map((n) => redis.hGet(companyKeys(n).ledger, "webhook:delivered")),
  );
  return fields.reduce((sum, field) => sum + Number(field ?? 0), 0);
}

/** @returns deliveries a second, from the first lease to the last recorded result */
async function runOurs(runtime: TestRuntime, transport: Transport, count: number): Promise<number> {
  const { redis, log, live, secrets } = runtime;
  const before = await delivered(runtime);
  const startMs = performance.now();
  const deliverer = startDeliverer({
    redis,
    log,
    live,
    transport,
    vault: secrets.vault,
    random: Math.random,
  });
  const isDone = async () => (await delivered(runtime)) - before >= count;
  await eventually(isDone, "everything is delivered", RUN_LIMIT_MS);
  const seconds = (performance.now() - startMs) / 1000;
  await deliverer.stop();
  return count / seconds;
}

/** CPU of this process, of Redis and of the receiver, microseconds. */
async function cpuUs({ redis }: TestRuntime, playing: Receivers): Promise<number> {
  const { user, system } = process.cpuUsage();
  const info = await redis.info("cpu");
  const seconds = (name: string) => Number(new RegExp(`${name}:([\\d.]+)`).exec(info)?.[1] ?? 0);
  const store = (seconds("used_cpu_user") + seconds("used_cpu_sys")) * 1_000_000;
  return user + system + store + (await playing.counts()).cpuUs;
}

/** As many jobs as there are deliveries, of the same body. */
function bullmqJobs({ urlOf }: Receivers): BullmqJob[] {
  return Array.from({ length: deliveries }, (_, n) => {
    const id = `evt_${String(n).padStart(32, "0")}`;
    return { id, url: urlOf(0), payload: { id, text: "x".repeat(BODY_BYTES - 60) } };
  });
}

/** Ours and its peer take turns, so that a slow moment of the machine meets both. */
async function measureAtOnce(runtime: TestRuntime, playing: Receivers, transport: Transport) {
  const ids = await addShipments(runtime, "channel-0");
  const peer = createBullmqPeer(runtime.config.redisUrl ?? "", playing.ca, DEFAULT_MAX_CONCURRENCY);
  const [ours, bullmq, costs]: [number[], number[], number[]] = [[], [], []];
  try {
    for (let round = 0; round <= rounds; round += 1) {
      await queue(runtime, "channel-0", ids, deliveries);
      await peer.add(bullmqJobs(playing));
      const before = await cpuUs(runtime, playing);
      ours.push(await runOurs(runtime, transport, deliveries));
      costs.push(((await cpuUs(runtime, playing)) - before) / deliveries);
      bullmq.push(await peer.run(deliveries));
    }
  } finally {
    await peer.close();
  }
  // The first round warms up.
  const warm = (figures: readonly number[]) => median(figures.slice(1));
  return { ours: warm(ours), bullmq: warm(bullmq), cost: warm(costs) };
}

async function measureSlow(runtime: TestRuntime, transport: Transport): Promise<Figure[]> {
  const figures: Figure[] = [];
  for (const [at, { tookMs, deliveries: all, goal, alarm }] of SLOW.entries()) {
    const code = `channel-${at + 1}`;
    const count = values.quick ? all / QUICK_SHARE : all;
    await queue(runtime, code, await addShipments(runtime, code), count);
    figures.push({
      row: 17,
      work: `webhooks, one endpoint whose receiver takes ${tookMs} ms`,
      ours: await runOurs(runtime, transport, count),
      beside: null,
      peer: null,
      unit: "1/s",
      goal: { oursLeast: goal },
      alarm: { oursLeast: alarm },
    });
  }
  return figures;
}

const playing = await startReceivers(1 + SLOW.length);
const runtime = await openTestRuntime(benchSetup(playing), { LOG_LEVEL: "warn" });
const options = { allowed: runtime.config.webhookAllowedCidrs, ca: playing.ca };
const transport = createTransport(options);
try {
  const { ours, bullmq, cost } = await measureAtOnce(runtime, playing, transport);
  const work = "webhooks, one endpoint, 2 KB, signed";
  const peer = `BullMQ + fetch, ${DEFAULT_MAX_CONCURRENCY} workers`;
  const figures: Figure[] = [
    { row: 16, work, ours, beside: peer, peer: bullmq, unit: "1/s", goal: GOAL, alarm: ALARM },
    {
      row: 16,
      work: "CPU of the machine for a delivery, its receiver in it",
      ours: cost,
      beside: null,
      peer: null,
      unit: "us",
      goal: { oursMost: COST_GOAL_US },
    },
    ...(await measureSlow(runtime, transport)),
  ];
  const version = await redisVersion(runtime.redis);
  print(figures, `${machine(version)}, medians of ${rounds}`, values.json);
} finally {
  transport.close();
  await runtime.end();
  await playing.stop();
}
