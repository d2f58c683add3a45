/**
 * What a receiver that never answers does to the schedule, to other endpoints and to the process (document 3, "Limits"): `bun
 * bench/silent-receiver.ts [--deliveries 20000] [--attempts 3]`. Processors, receivers and an embedded Redis as shipped are
 * processes of their own, one for each receiver. First the times of another endpoint of the same channel, which has 50 deliveries a second, alone and
 * beside the silent one in turn; then all deliveries at once. Time is real, except that the service clock skips spans in which
 * nothing is under way and no retry is due.
 */
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { parseArgs } from "node:util";
import { type Role, startRole, tell } from "#bench/product-roles.ts";
import { type Receivers, startReceivers } from "#bench/start-receivers.ts";
import { percentile } from "#bench/table.ts";
import { SILENT_PATH } from "#bench/webhook-receivers.ts";
import { advanceClock } from "#core/configuration/store/live.ts";
import { readConfig } from "#core/platform/environment/config.ts";
import { chunks } from "#core/platform/process/chunks.ts";
import { createLog } from "#core/platform/process/log.ts";
import { companyPartition, webhookKeys } from "#core/platform/redis/keys.ts";
import { hourOf } from "#core/platform/time/hour-of.ts";
import { applySetupFile, openRuntime, type Runtime } from "#core/runtime/runtime.ts";
import { retryWaitMs } from "#core/webhooks/rules/retry-schedule.ts";
import { readAttemptStats, readLaneDepths } from "#core/webhooks/store/attempt-stats.ts";
import {
  type Decision,
  type Delivery,
  eventIdOf,
  readDeliveries,
  recordDecisions,
} from "#core/webhooks/store/deliveries/deliveries.ts";
import { disableEndpoint, enableEndpoint } from "#core/webhooks/store/endpoints.ts";
import { eventually } from "#test/support/eventually.ts";
import { createAuthority } from "#test/support/receiver.ts";
import { testSetup } from "#test/support/setup.ts";
import { addShipment } from "#test/support/shipments.ts";

const GAP_MS = 20;
const WARM_UP_MS = 5_000;
/** Alone and beside in turn: a machine that grows busier counts for both. */
const ROUNDS = 3;
const ROUND_MS = 20_000;
const ROUND_DELIVERIES = 6_000;
/** By then the endpoint is known to be silent. */
const MANY_UNDER_WAY = 900;
const LOOK_MS = 1_000;
/** A span with nothing to do is skipped up to so much before the next retry. */
const LEAD_MS = 5_000;
const LATEST_RANDOM = 1 - Number.EPSILON;

const { values } = parseArgs({
  options: {
    deliveries: { type: "string", default: "20000" },
    attempts: { type: "string", default: "3" },
  },
});
const [DELIVERIES, ATTEMPTS] = [Number(values.deliveries), Number(values.attempts)];

async function open(
  hanging: Receivers,
  answering: Receivers,
): Promise<[Runtime, env: Record<string, string>]> {
  const env = {
    DATA_DIR: await mkdtemp(join(tmpdir(), "waybill-bench-")),
    LOG_LEVEL: "error",
    TEST_CLOCK: "1",
    PANEL_TOKEN: "panel-token-of-the-measurements",
    WEBHOOK_ALLOWED_CIDRS: "127.0.0.0/8,::1/128",
    WEBHOOK_CA_FILE: answering.caFile,
    PATH: dirname(Bun.which("redis-server") ?? ""),
  };
  const runtime = await openRuntime(readConfig(env), createLog("error"));
  const setup = testSetup();
  const channel = setup.companies?.[0]?.channels?.[0];
  const common = { trigger: "every_event", alertEmail: "ops@bench.test" } as const;
  if (channel) {
    channel.webhooks = [
      { code: "silent", url: new URL(SILENT_PATH, hanging.urlOf(0)).href, ...common },
      { code: "other", url: answering.urlOf(0), ...common },
    ];
  }
  await applySetupFile(runtime, setup);
  return [runtime, env];
}

/** Numbers are the text of the fact, by which the receiver tells them apart. */
function decisionsFor(runtime: Runtime, code: string, shipmentId: number) {
  const found = [...runtime.live.configuration().endpoints.values()];
  const endpoint = found.find((one) => one.code === code);
  if (!endpoint) throw new Error(`no endpoint ${code}`);
  const { id, channelId, trigger } = endpoint;
  const decision = (n: number): Decision => ({
    shipmentId,
    channelId,
    eventId: eventIdOf(code, `${n}-0`),
    entryId: `${n}-0`,
    fact: {
      key: `${code}-${n}`,
      occurredAtMs: 0,
      receivedAtMs: 0,
      courierStatus: String(n),
      place: null,
      status: "IN_TRANSIT" as const,
      detail: 0,
    },
    verdicts: [{ endpointId: id, trigger, verdict: "send" }],
  });
  const partition = companyPartition(
    runtime.live.configuration().channels.get(channelId)?.companyId ?? 0,
  );
  return { endpointId: id, partition, decision };
}

type Silent = ReturnType<typeof silentEndpoint>;

function silentEndpoint(runtime: Runtime, shipmentId: number) {
  const { endpointId, partition, decision } = decisionsFor(runtime, "silent", shipmentId);
  const { redis, live } = runtime;
  let made = 0;
  return {
    endpointId,
    partition,
    async queue(count: number): Promise<void> {
      const all = Array.from({ length: count }, (_, n) => decision(made + n));
      made += count;
      for (const part of chunks(all, 100)) await recordDecisions(redis, part, live.now());
    },
    underWay: async () => (await readLaneDepths(redis, partition, endpointId)).inFlight,
    /** What waits fails, and the endpoint counts as new. */
    async clear(): Promise<void> {
      await disableEndpoint(redis, await live.refresh(), endpointId, live.now());
      await eventually(async () => (await this.underWay()) === 0, "all have ended", 30_000);
      await enableEndpoint(redis, await live.refresh(), endpointId);
    },
  };
}

/** Sends to the other endpoint at its pace; `take` tells the milliseconds to arrival since it was asked last. */
function startOther(runtime: Runtime, receivers: Receivers, shipmentId: number) {
  const { decision } = decisionsFor(runtime, "other", shipmentId);
  const madeMs: number[] = [];
  const timer = setInterval(() => {
    madeMs.push(Date.now());
    void recordDecisions(runtime.redis, [decision(madeMs.length - 1)], runtime.live.now());
  }, GAP_MS);
  return {
    async take(): Promise<number[]> {
      const arrivals = await receivers.arrivals();
      return chunks(arrivals, 2).map(([n = 0, atMs = 0]) => atMs - (madeMs[n] ?? 0));
    },
    stop: () => clearInterval(timer),
  };
}

interface Usage {
  readonly files: number;
  readonly residentMb: number;
  readonly cpuSeconds: number;
}

async function usageOf({ pid }: Role): Promise<Usage> {
  const [files, status, stat] = await Promise.all([
    readdir(`/proc/${pid}/fd`),
    readFile(`/proc/${pid}/status`, "utf8"),
    readFile(`/proc/${pid}/stat`, "utf8"),
  ]);
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return {
    files: files.length,
    residentMb: Math.round(Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024),
    cpuSeconds: (Number(fields[11]) + Number(fields[12])) / 100,
  };
}

/** Waits until every delivery has had its attempts, and skips spans in which nothing can happen. */
async function runAttempts(runtime: Runtime, role: Role, silent: Silent): Promise<void> {
  const { redis, live } = runtime;
  const { partition, endpointId } = silent;
  const attemptsMade = async () => {
    const hour = hourOf(live.now());
    return (await readAttemptStats(redis, partition, endpointId, hour - 23, hour)).total.attempts;
  };
  const before = await attemptsMade();
  await silent.queue(DELIVERIES);
  const startMs = performance.now();
  const peak = { files: 0, residentMb: 0, inFlight: 0 };
  let skippedMs = 0;
  for (;;) {
    await Bun.sleep(LOOK_MS);
    await live.refresh();
    const depths = await readLaneDepths(redis, partition, endpointId);
    const usage = await usageOf(role);
    peak.files = Math.max(peak.files, usage.files);
    peak.residentMb = Math.max(peak.residentMb, usage.residentMb);
    peak.inFlight = Math.max(peak.inFlight, depths.inFlight);
    const isWorthLooking = (await attemptsMade()) - before >= DELIVERIES * ATTEMPTS;
    if (isWorthLooking && (await isDone(runtime, silent))) break;
    if (depths.queued + depths.inFlight > 0) continue;
    const [next] = await redis.zRangeWithScores(webhookKeys(partition).retries(endpointId), 0, 0);
    const idleMs = (next?.score ?? 0) - live.now() - LEAD_MS;
    if (idleMs < LEAD_MS) continue;
    await advanceClock(redis, Math.floor(idleMs / 1_000));
    skippedMs += idleMs;
  }
  const tookS = Math.round((performance.now() - startMs) / 1_000);
  tell(
    `${tookS} s of real time, ${Math.round(skippedMs / 1_000)} s skipped; at most ${peak.inFlight} under way,`,
  );
  tell(`${peak.files} open files, ${peak.residentMb} MB resident`);
}

/** Retries count among the attempts before the last first attempt is made. */
async function isDone(runtime: Runtime, silent: Silent): Promise<boolean> {
  const all = await allDeliveries(runtime, silent);
  return all.every(({ attempts }) => attempts.length >= ATTEMPTS);
}

/** The latest ones, made by `runAttempts`. */
async function allDeliveries(runtime: Runtime, silent: Silent): Promise<Delivery[]> {
  const { log } = webhookKeys(silent.partition);
  const ids = await runtime.redis.zRange(log(silent.endpointId), -DELIVERIES, -1);
  const found: Delivery[] = [];
  for (const part of chunks(ids, 500)) {
    found.push(...(await readDeliveries(runtime.redis, part, runtime.live.now())));
  }
  return found;
}

/** Seconds past the latest moment that the jitter allows: of each attempt alone, and of the schedule from the creation on. */
function tellLateness(deliveries: readonly Delivery[]): void {
  for (let attempt = 1; attempt <= ATTEMPTS; attempt += 1) {
    const [alone, inAll]: [number[], number[]] = [[], []];
    let early = 0;
    for (const { createdAtMs, attempts } of deliveries) {
      const [own, before] = [attempts[attempt - 1], attempts[attempt - 2]];
      if (!own) continue;
      const endedMs = before ? before.atMs + before.durationMs : createdAtMs;
      const waits = attempts.slice(0, attempt - 1).map((one) => one.attempt);
      const latest = waits.map((one) => retryWaitMs(one, LATEST_RANDOM, null) ?? 0);
      const earliestMs = before ? (retryWaitMs(before.attempt, 0, null) ?? 0) : 0;
      if (own.atMs < endedMs + earliestMs - LOOK_MS) early += 1;
      alone.push((own.atMs - endedMs - (latest.at(-1) ?? 0)) / 1_000);
      inAll.push((own.atMs - createdAtMs - latest.reduce((sum, one) => sum + one, 0)) / 1_000);
    }
    const text = (all: number[]) =>
      [0.5, 0.99, 1].map((share) => percentile(all, share).toFixed(0)).join(" / ");
    tell(
      `attempt ${attempt}: ${alone.length}, ${early} early; s past its jitter p50/p99/max ${text(alone)}; of the schedule ${text(inAll)}`,
    );
  }
}

/** The other endpoint's times to arrival, alone and beside the silent one. */
async function measureOther(
  other: ReturnType<typeof startOther>,
  silent: Silent,
  processors: Role,
): Promise<void> {
  const tookMs = { alone: [] as number[], beside: [] as number[] };
  const cpuSeconds = { alone: 0, beside: 0 };
  const measure = async (how: keyof typeof tookMs) => {
    await other.take();
    const before = (await usageOf(processors)).cpuSeconds;
    await Bun.sleep(ROUND_MS);
    tookMs[how].push(...(await other.take()));
    cpuSeconds[how] += (await usageOf(processors)).cpuSeconds - before;
  };
  for (let round = 0; round < ROUNDS; round += 1) {
    await measure("alone");
    await silent.queue(ROUND_DELIVERIES);
    await eventually(
      async () => (await silent.underWay()) >= MANY_UNDER_WAY,
      "many are under way",
      60_000,
    );
    await measure("beside");
    await silent.clear();
  }
  for (const how of ["alone", "beside"] as const) {
    const [p50, p99] = [0.5, 0.99].map((share) => percentile(tookMs[how], share));
    const cores = (cpuSeconds[how] * 1_000) / (ROUNDS * ROUND_MS);
    tell(`other endpoint ${how}: p50 ${p50} ms, p99 ${p99} ms; ${cores.toFixed(2)} cores`);
  }
}

const authority = await createAuthority();
const [hanging, answering] = await Promise.all([
  startReceivers(1, authority),
  startReceivers(1, authority),
]);
const [runtime, env] = await open(hanging, answering);
const processors = startRole("processors", "processors/main.ts", env);
try {
  const shipmentId = await addShipment(runtime, "BENCH-1");
  const other = startOther(runtime, answering, shipmentId);
  await eventually(async () => (await other.take()).length > 0, "the processors send", 30_000);
  await Bun.sleep(WARM_UP_MS);
  const silent = silentEndpoint(runtime, shipmentId);
  await measureOther(other, silent, processors);
  await runAttempts(runtime, processors, silent);
  other.stop();
  tellLateness(await allDeliveries(runtime, silent));
} finally {
  await processors.stop();
  await runtime.close();
  await Promise.all([hanging.stop(), answering.stop()]);
  await authority.end();
  await rm(env["DATA_DIR"] ?? "", { recursive: true, force: true });
}
