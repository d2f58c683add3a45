/** A process that stands still for longer than its leases last, as on an overloaded machine, sends nothing twice when it goes on. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { webhookKeys } from "#core/platform/redis/keys.ts";
import { partitionsOf } from "#core/platform/redis/partitions.ts";
import { push } from "#test/support/clients/courier.ts";
import { createShipments, numbered } from "#test/support/clients/event-stream.ts";
import { readPanel } from "#test/support/clients/operator.ts";
import { webhookSetup } from "#test/support/data/setup.ts";
import { eventually } from "#test/support/eventually.ts";
import { BARE, newProduct, type Product } from "#test/support/product/product.ts";
import { scriptNamed } from "#test/support/scripts/webhook-scripts.ts";
import {
  attemptsOf,
  DELIVERED_LIMIT_MS,
  type Receiver,
  startReceiver,
  WEBHOOK_ENV,
} from "#test/support/servers/receiver.ts";
import { type RedisProxy, startRedisProxy } from "#test/support/servers/redis-proxy.ts";
import { type RedisServer, startRedisServer } from "#test/support/servers/redis-server.ts";

const PREFIX = "STALL";
const EVENTS = 3;

let redis: RedisServer;
let proxy: RedisProxy;
let slow: Receiver;
let quick: Receiver;
let product: Product;

beforeAll(async () => {
  redis = await startRedisServer();
  proxy = await startRedisProxy({ port: redis.port });
  [slow, quick] = await Promise.all([startReceiver(), startReceiver()]);
  const webhooks = [slow, quick].map(({ url }) => ({ url, trigger: "every_event" as const }));
  const env = { ...WEBHOOK_ENV, REDIS_URL: proxy.url };
  product = await newProduct(BARE, webhookSetup(...webhooks), env);
  await product.start();
}, 300_000);
afterAll(async () => {
  await product.end();
  await Promise.all([slow.stop(), quick.stop(), proxy.stop()]);
  await redis.stop();
}, 300_000);

/** Leases by whether they have ended, by the clock of Redis. */
async function countLeases(): Promise<{ running: number; ended: number }> {
  const [seconds] = (await redis.send("TIME")) as string[];
  const nowMs = `${seconds}000`;
  const counts = { running: 0, ended: 0 };
  for (const partition of partitionsOf("k")) {
    const { leases } = webhookKeys(partition);
    counts.ended += Number(await redis.send("ZCOUNT", leases, "-inf", nowMs));
    counts.running += Number(await redis.send("ZCOUNT", leases, `(${nowMs}`, "+inf"));
  }
  return counts;
}

let sent = 0;

async function sendEvent(): Promise<void> {
  const answer = await push(product.ingest, [numbered(`${PREFIX}-${sent}`, sent)]);
  expect(answer.status).toBe(200);
  sent += 1;
}

test("no attempt is made twice whose lease has ended meanwhile, whether it was under way or only just being leased", async () => {
  const gate = Promise.withResolvers<void>();
  slow.behave((_, response) => void gate.promise.then(() => response.end()));
  await createShipments(product, PREFIX, EVENTS);
  await sendEvent();
  await eventually(() => slow.open() === 1 && quick.requests.length === 1, "the first is sent");
  await eventually(async () => (await countLeases()).running === 1, "the quick answer is recorded");

  const release = proxy.keepAnswerTo(scriptNamed("lease").sha);
  await sendEvent();
  await eventually(async () => (await countLeases()).running === 3, "two more are leased");
  process.kill(product.pid(), "SIGSTOP");
  await eventually(async () => (await countLeases()).ended === 3, "all leases have ended");
  release();
  process.kill(product.pid(), "SIGCONT");
  await sendEvent();
  // It was leased after the leases that had ended were looked for.
  await eventually(
    () => new Set(quick.requests.map(({ body }) => body.id)).size === EVENTS,
    "the last is sent",
  );

  gate.resolve();
  const ledger = async () => (await readPanel(product, "/overview")).ledger;
  await eventually(
    async () => (await ledger()).pending === 0,
    async () => JSON.stringify(await ledger()),
    DELIVERED_LIMIT_MS,
  );
  for (const { requests } of [slow, quick]) {
    expect(new Set(requests.map(({ body }) => body.id)).size).toBe(EVENTS);
    const attempts = attemptsOf(requests);
    expect(attempts).toHaveLength(new Set(attempts).size);
  }
}, 400_000);
