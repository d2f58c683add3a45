/**
 * Webhook deliveries a second over HTTPS with keep-alive, 2 KB, signed, 100 endpoints, beside a bare loop of signed requests
 * with the same transport: `bun bench/webhooks.ts [--deliveries 20000] [--rounds 5] [--receivers 1000] [--json]`. Receivers
 * are a process of their own, Redis is as shipped; decisions are made before the clock starts, so that sending is measured.
 * The last row tells how far connections are kept when there are many receivers.
 */
import { spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";
import { type Figure, machine, median, print } from "#bench/table.ts";
import type { SetupFile } from "#core/domain/setup.ts";
import { sign } from "#core/domain/signature.ts";
import { type Decision, eventIdOf, recordDecisions } from "#core/redis/deliveries.ts";
import { companyKeys, PARTITIONS } from "#core/redis/keys.ts";
import { startDeliverer } from "#processors/webhooks/deliver.ts";
import { createTransport, type Transport } from "#processors/webhooks/transport.ts";
import { eventually } from "#test/support/eventually.ts";
import { createAuthority } from "#test/support/receiver.ts";
import { openTestRuntime, type TestRuntime } from "#test/support/runtime.ts";
import { testSetup, WEBHOOK_SECRET } from "#test/support/setup.ts";
import { addShipment } from "#test/support/shipments.ts";

const ENDPOINTS_PER_CHANNEL = 5;
const ENDPOINTS = 100;
const IN_FLIGHT = 200;
const SHIPMENTS_PER_CHANNEL = 50;
const BODY_BYTES = 2_048;
const GOAL = 0.6;
const RUN_LIMIT_MS = 300_000;
const ROUNDS_OVER_RECEIVERS = 4;

const { values } = parseArgs({
  options: {
    deliveries: { type: "string", default: "20000" },
    rounds: { type: "string", default: "5" },
    receivers: { type: "string", default: "1000" },
    json: { type: "boolean", default: false },
  },
});
const deliveries = Number(values.deliveries);
const receivers = Number(values.receivers);

const nameOf = (n: number) => `r${n}.localhost`;

interface Counts {
  readonly connections: number;
  readonly requests: number;
}

async function startReceivers() {
  const folder = await mkdtemp(join(tmpdir(), "waybill-bench-"));
  const authority = await createAuthority();
  const names = Array.from({ length: Math.max(ENDPOINTS, receivers) }, (_, n) => nameOf(n));
  const keys = await authority.issue(names);
  const files = [join(folder, "key.pem"), join(folder, "cert.pem")] as const;
  await writeFile(files[0], keys.private);
  await writeFile(files[1], keys.cert);
  const program = join(import.meta.dir, "webhook-receivers.ts");
  const child = spawn("bun", [program, ...files], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const read = async () => JSON.parse((await lines.next()).value ?? "{}");
  const { port }: { port: number } = await read();
  return {
    urlOf: (n: number) => `https://${nameOf(n)}:${port}/hook`,
    ca: authority.pem,
    async counts(): Promise<Counts> {
      child.stdin.write("?\n");
      return read();
    },
    async stop() {
      child.stdin.end();
      await authority.end();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
type Receivers = Awaited<ReturnType<typeof startReceivers>>;

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
        ...{ key: `fact-${changes}`, occurredAtMs: 0, receivedAtMs: 0, status: "IN_TRANSIT" },
        // Fills the body up to its size.
        ...{ courierStatus: "x".repeat(BODY_BYTES - 1_000), place: "Milano", detail: 0 },
      },
      verdicts: (channel?.endpoints ?? []).map(({ id, trigger }) => ({
        ...{ endpointId: id, trigger, verdict: "send" as const },
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
  const startMs = performance.now();
  const deliverer = startDeliverer({
    ...{ redis, log, live, transport, vault: secrets.vault, random: Math.random },
    limits: { inFlight: IN_FLIGHT },
  });
  const isDone = async () => (await delivered(runtime)) - before >= deliveries;
  await eventually(isDone, "everything is delivered", RUN_LIMIT_MS);
  const seconds = (performance.now() - startMs) / 1000;
  await deliverer.stop();
  return deliveries / seconds;
}

/** @returns requests a second of a loop that only signs and posts */
async function runBare(
  { urlOf }: Receivers,
  transport: Transport,
  count: number,
  names: number,
): Promise<number> {
  const body = JSON.stringify({ id: "evt_bench", text: "x".repeat(BODY_BYTES - 32) });
  let next = 0;
  const startMs = performance.now();
  await Promise.all(
    Array.from({ length: IN_FLIGHT }, async () => {
      while (next < count) {
        next += 1;
        const headers = {
          "Content-Type": "application/json",
          "X-Service-Signature": sign([WEBHOOK_SECRET], body, Date.now()),
        };
        const sent = await transport.post(urlOf(next % names), headers, body);
        if (sent.kind !== "answered") throw new Error(sent.error);
      }
    }),
  );
  return count / ((performance.now() - startMs) / 1000);
}

const playing = await startReceivers();
const runtime = await openTestRuntime(benchSetup(playing), { LOG_LEVEL: "warn" });
const options = { allowed: runtime.config.webhookAllowedCidrs, ca: playing.ca };
const transport = createTransport(options);
try {
  const shipments = await addShipments(runtime);
  const ours: number[] = [];
  const bare: number[] = [];
  for (let round = 0; round < Number(values.rounds); round += 1) {
    await queue(runtime, shipments);
    bare.push(await runBare(playing, transport, deliveries, ENDPOINTS));
    ours.push(await runOurs(runtime, transport));
  }
  const before = await playing.counts();
  const many = createTransport(options);
  await runBare(playing, many, receivers * ROUNDS_OVER_RECEIVERS, receivers);
  const after = await playing.counts();
  many.close();
  const figures: Figure[] = [
    {
      ...{ work: `webhooks, 2 KB, signed, ${ENDPOINTS} endpoints`, ours: median(ours) },
      ...{ beside: "bare loop, same transport", peer: median(bare), unit: "1/s" },
      goal: { least: GOAL },
    },
    {
      work: `connections opened by ${ROUNDS_OVER_RECEIVERS} requests to each of ${receivers} receivers`,
      ...{ ours: after.connections - before.connections, beside: "receivers", peer: receivers },
      ...{ unit: "connections", goal: { most: 1.25 } },
    },
  ];
  const version = /redis_version:(\S+)/.exec(await runtime.redis.info("server"))?.[1] ?? "?";
  print(figures, machine(version), values.json);
} finally {
  transport.close();
  await runtime.end();
  await playing.stop();
}
