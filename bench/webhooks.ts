/**
 * Webhook deliveries a second over HTTPS with keep-alive, 2 KB, signed, 100 endpoints, beside a bare loop of signed requests
 * with the same transport and beside BullMQ with `fetch` (issue 9, rows 7 and 8): `bun bench/webhooks.ts
 * [--deliveries 20000] [--rounds 5] [--receivers 1000] [--everysec] [--quick] [--cost] [--json]`. Receivers are a process of
 * their own, Redis is as shipped; decisions are made before the clock starts, so that sending is measured. The last figure
 * tells how far connections are kept when there are many receivers. `--cost` tells on standard error what a request costs.
 */
import { parseArgs } from "node:util";
import { type Receivers, startReceivers } from "#bench/start-receivers.ts";
import { type Figure, machine, median, print, redisVersion } from "#bench/table.ts";
import { type BullmqJob, createBullmqPeer, requestHeaders } from "#bench/webhook-bullmq.ts";
import { companyKeys, PARTITIONS } from "#core/platform/redis/keys.ts";
import type { SetupFile } from "#core/setup/rules/setup.ts";
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

const ENDPOINTS_PER_CHANNEL = 5;
const ENDPOINTS = 100;
const IN_FLIGHT = 400;
const SHIPMENTS_PER_CHANNEL = 50;
const BODY_BYTES = 2_048;
const GOAL = 0.6;
const BULLMQ_GOAL = 3;
/** What CI fails at. */
const ALARM = 0.25;
const BULLMQ_ALARM = 1;
const RUN_LIMIT_MS = 300_000;
const ROUNDS_OVER_RECEIVERS = 4;

const { values } = parseArgs({
  options: {
    deliveries: { type: "string" },
    rounds: { type: "string" },
    receivers: { type: "string" },
    everysec: { type: "boolean", default: false },
    quick: { type: "boolean", default: false },
    cost: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
  },
});
const deliveries = Number(values.deliveries ?? (values.quick ? 5_000 : 20_000));
const rounds = Number(values.rounds ?? (values.quick ? 1 : 5));
const receivers = Number(values.receivers ?? (values.quick ? 200 : 1_000));

/** 20 companies of one channel with five endpoints each. */
function benchSetup({ urlOf }: Receivers): SetupFile {
  const companies = Array.from({ length: ENDPOINTS / ENDPOINTS_PER_CHANNEL }, (_, company) => ({
    code: `company-${company}`,
    channels: [
      {
        code: `channel-${company}`,
        couriers: [{ code: "GLS_ITA" }],
        webhooks: Array.from({ length: ENDPOINTS_PER_CHANNEL }, (_, n) => ({
          code: `hook-${n}`,
          url: urlOf(company * ENDPOINTS_PER_CHANNEL + n),
          alertEmail: "ops@bench.test",
          secret: WEBHOOK_SECRET,
        })),
      },
    ],
  }));
  return { ...testSetup(), companies };
}

/** @returns shipment ids by channel */
async function addShipments(runtime: TestRuntime): Promise<Map<number, number[]>> {
  const { channels } = runtime.live.configuration();
  const ids = new Map<number, number[]>();
  for (const channel of channels.values()) {
    const own: number[] = [];
    for (let n = 0; n < SHIPMENTS_PER_CHANNEL; n += 1) {
      own.push(await addShipment(runtime, `BENCH-${channel.code}-${n}`, { channel: channel.code }));
    }
    ids.set(channel.id, own);
  }
  return ids;
}

let changes = 0;

/** Decides and queues, as the consumer does, and nothing is sent yet. */
async function queue(runtime: TestRuntime, shipments: Map<number, number[]>): Promise<void> {
  const { channels } = runtime.live.configuration();
  const decisions: Decision[] = [];
  for (let n = 0; n * ENDPOINTS_PER_CHANNEL < deliveries; n += 1) {
    const channel = [...channels.values()][n % channels.size];
    const own = shipments.get(channel?.id ?? 0) ?? [];
    changes += 1;
    decisions.push({
      shipmentId: own[changes % own.length] ?? 0,
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
    });
  }
  const size = 500;
  for (let from = 0; from < decisions.length; from += size) {
    await recordDecisions(runtime.redis, decisions.slice(from, from + size), runtime.live.now());
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
async function runOurs(runtime: TestRuntime, transport: Transport): Promise<number> {
  const { redis, log, live, secrets } = runtime;
  const before = await delivered(runtime);
  let posted = 0;
  // Tells without asking the store when it is time to ask it.
  const counting: Transport = {
    ...transport,
    post: (...request) => {
      posted += 1;
      return transport.post(...request);
    },
  };
  const startMs = performance.now();
  const deliverer = startDeliverer({
    redis,
    log,
    live,
    transport: counting,
    vault: secrets.vault,
    random: Math.random,
    limits: { inFlight: IN_FLIGHT },
  });
  const isDone = async () =>
    posted >= deliveries && (await delivered(runtime)) - before >= deliveries;
  await eventually(isDone, "everything is delivered", RUN_LIMIT_MS);
  const seconds = (performance.now() - startMs) / 1000;
  await deliverer.stop();
  return deliveries / seconds;
}

/** @returns requests a second of a loop that only signs and posts, the same headers as ours */
async function runBare(
  { urlOf }: Receivers,
  transport: Transport,
  count: number,
  names: number,
  inFlight = IN_FLIGHT,
): Promise<number> {
  const id = "evt_bench";
  const body = JSON.stringify({ id, text: "x".repeat(BODY_BYTES - 32) });
  let next = 0;
  const startMs = performance.now();
  await Promise.all(
    Array.from({ length: inFlight }, async () => {
      while (next < count) {
        next += 1;
        const headers = requestHeaders(id, body, 1);
        const sent = await transport.post(urlOf(next % names), headers, body);
        if (sent.kind !== "answered") throw new Error(sent.error);
      }
    }),
  );
  return count / ((performance.now() - startMs) / 1000);
}

/** Idle connections are closed after 4 s, and a handshake costs as much as twenty requests: it is not what is measured. */
async function openConnections(playing: Receivers, transport: Transport): Promise<void> {
  const atOnce = IN_FLIGHT * 3;
  await runBare(playing, transport, atOnce * 2, ENDPOINTS, atOnce);
}

/** As many jobs as there are deliveries, of the same body and to the same endpoints. */
function bullmqJobs({ urlOf }: Receivers): BullmqJob[] {
  return Array.from({ length: deliveries }, (_, n) => {
    const id = `evt_${String(n).padStart(32, "0")}`;
    return { id, url: urlOf(n % ENDPOINTS), payload: { id, text: "x".repeat(BODY_BYTES - 60) } };
  });
}

interface Cpu {
  readonly ours: number;
  readonly redis: number;
  readonly receivers: number;
  readonly commands: number;
  readonly connections: number;
}

async function readCpu({ redis }: TestRuntime, playing: Receivers): Promise<Cpu> {
  const { user, system } = process.cpuUsage();
  const [info, stats] = [await redis.info("cpu"), await redis.info("commandstats")];
  const seconds = (name: string) => Number(new RegExp(`${name}:([\\d.]+)`).exec(info)?.[1] ?? 0);
  const calls = [...stats.matchAll(/calls=(\d+)/g)].map(([, count]) => Number(count));
  const { cpuUs, connections } = await playing.counts();
  return {
    ours: user + system,
    redis: (seconds("used_cpu_user") + seconds("used_cpu_sys")) * 1_000_000,
    receivers: cpuUs,
    commands: calls.reduce((sum, count) => sum + count, 0),
    connections,
  };
}

/** Runs the work and, where asked for, tells what a request of it has cost. */
async function costed(
  { name, runtime, playing }: { name: string; runtime: TestRuntime; playing: Receivers },
  work: () => Promise<number>,
): Promise<number> {
  if (!values.cost) return work();
  const before = await readCpu(runtime, playing);
  const perSecond = await work();
  const after = await readCpu(runtime, playing);
  const each = (part: keyof Cpu) => ((after[part] - before[part]) / deliveries).toFixed(2);
  process.stderr.write(
    `${name}: ${perSecond.toFixed(0)}/s; us a request: ${each("ours")} here, ${each("redis")} Redis, ` +
      `${each("receivers")} receivers; ${each("commands")} commands, ${each("connections")} connections\n`,
  );
  return perSecond;
}

/** Ours and its peers take turns, so that a slow moment of the machine meets all. */
async function measure(runtime: TestRuntime, playing: Receivers, transport: Transport) {
  const { redis, config } = runtime;
  const shipments = await addShipments(runtime);
  const peer = createBullmqPeer(config.redisUrl ?? "", playing.ca);
  const [ours, bare, bullmq]: [number[], number[], number[]] = [[], [], []];
  const about = (name: string) => ({ name, runtime, playing });
  try {
    for (let round = 0; round <= rounds; round += 1) {
      await queue(runtime, shipments);
      await peer.add(bullmqJobs(playing));
      const loop = () => runBare(playing, transport, deliveries, ENDPOINTS);
      await openConnections(playing, transport);
      bare.push(await costed(about("bare loop"), loop));
      await openConnections(playing, transport);
      ours.push(await costed(about("ours"), () => runOurs(runtime, transport)));
      bullmq.push(await costed(about("BullMQ"), () => peer.run(deliveries)));
    }
  } finally {
    await peer.close();
  }
  const version = await redisVersion(redis);
  // The first round warms up.
  const warm = (rates: readonly number[]) => median(rates.slice(1));
  return { ours: warm(ours), bare: warm(bare), bullmq: warm(bullmq), version };
}

/** @returns connections opened by some requests to each of many receivers */
async function countConnections(playing: Receivers, transport: Transport): Promise<number> {
  const before = await playing.counts();
  // So few at once that no receiver has two of them.
  const inFlight = Math.min(IN_FLIGHT, receivers / 5);
  await runBare(playing, transport, receivers * ROUNDS_OVER_RECEIVERS, receivers, inFlight);
  const after = await playing.counts();
  return after.connections - before.connections;
}

const playing = await startReceivers(Math.max(ENDPOINTS, receivers));
const runtime = await openTestRuntime(benchSetup(playing), { LOG_LEVEL: "warn" });
const options = { allowed: runtime.config.webhookAllowedCidrs, ca: playing.ca };
const transport = createTransport(options);
const many = createTransport(options);
try {
  if (values.everysec) await runtime.redis.configSet("appendfsync", "everysec");
  const { ours, bare, bullmq, version } = await measure(runtime, playing, transport);
  const work = `webhooks, 2 KB, signed, ${ENDPOINTS} endpoints`;
  const figures: Figure[] = [
    {
      row: 7,
      work,
      ours,
      beside: "bare loop, same transport",
      peer: bare,
      unit: "1/s",
      goal: { least: GOAL },
      alarm: { least: ALARM },
    },
    {
      row: 8,
      work,
      ours,
      beside: "BullMQ + fetch",
      peer: bullmq,
      unit: "1/s",
      goal: { least: BULLMQ_GOAL },
      alarm: { least: BULLMQ_ALARM },
    },
    {
      row: 7,
      work: `connections opened by ${ROUNDS_OVER_RECEIVERS} requests to each of ${receivers} receivers`,
      ours: await countConnections(playing, many),
      beside: "receivers",
      peer: receivers,
      unit: "connections",
      goal: { most: 1.25 },
      alarm: { most: 2 },
    },
  ];
  const fsync = values.everysec ? "everysec" : "always";
  const about = `${machine(version)}, appendfsync ${fsync}, medians of ${rounds}`;
  print(figures, about, values.json);
} finally {
  transport.close();
  many.close();
  await runtime.end();
  await playing.stop();
}
