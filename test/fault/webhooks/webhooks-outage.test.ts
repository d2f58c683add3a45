/**
 * Deliverers through an outage of the store that is longer than a lease: what receivers have taken is not sent again, by
 * whichever process leases first when the store is back.
 */

import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "bun:test";
import { connectRedis, type Redis } from "#core/platform/redis/client.ts";
import { companyPartition, webhookKeys } from "#core/platform/redis/keys.ts";
import { claimAlert, readAlerts, removeAlert } from "#core/webhooks/store/alerts.ts";
import { readEndpointLoad } from "#core/webhooks/store/endpoint-load.ts";
import type { DeliverLimits } from "#processors/webhooks/deliver-limits.ts";
import { eventually } from "#test/support/eventually.ts";
import type { TestRuntime } from "#test/support/product/runtime.ts";
import {
  applyEvents,
  deliveriesOf,
  endpointOf,
  newShipment,
  openWebhookRuntime,
  type Pipeline,
  STATUS,
  sendDeps,
  setActive,
  startPipeline,
} from "#test/support/product/webhooks.ts";
import { type Receiver, startReceiver } from "#test/support/servers/receiver.ts";
import { type RedisServer, startRedisServer } from "#test/support/servers/redis-server.ts";

/** Shorter than in production, in the same proportions. */
const LIMITS = { leaseMs: 1_500, recoveryMs: 3_000, stopWaitMs: 3_000 };
const OUTAGE_MS = 2 * LIMITS.leaseMs;
const DELIVERIES = 20;
/** Of a receiver: longer than the outages. */
const ANSWER_LIMIT_MS = 60_000;
/** The receiver keeps its answers until the store is gone. */
const OUTAGES: ReadonlyArray<readonly [string, string[], string[]]> = [
  ["a read-only store", ["REPLICAOF", "127.0.0.1", "1"], ["REPLICAOF", "NO", "ONE"]],
  ["a full memory", ["CONFIG", "SET", "maxmemory", "1mb"], ["CONFIG", "SET", "maxmemory", "0"]],
  [
    "a store without its replicas",
    ["CONFIG", "SET", "min-replicas-to-write", "1"],
    ["CONFIG", "SET", "min-replicas-to-write", "0"],
  ],
];

let receiver: Receiver;
let server: RedisServer;
let runtime: TestRuntime;
let other: Redis;
let pipelines: Pipeline[] = [];

beforeAll(async () => {
  receiver = await startReceiver();
  server = await startRedisServer();
  const given = { address: server.url, stop: server.stop };
  runtime = await openWebhookRuntime([{ url: receiver.url, maxConcurrency: 10 }], {}, given);
});

afterAll(async () => {
  await runtime.end();
  await receiver.stop();
});

beforeEach(async () => {
  receiver.requests.length = 0;
  other = await connectRedis(server.url, runtime.log);
  startTwo(LIMITS);
});

afterEach(async () => {
  await stopBoth();
  await other.close();
});

/** Two processes: the second one has a connection of its own. */
function startTwo(limits: Partial<DeliverLimits>): void {
  const deps = () => sendDeps(runtime, { limitMs: ANSWER_LIMIT_MS });
  pipelines = [
    startPipeline(runtime, deps(), limits),
    startPipeline({ ...runtime, redis: other }, deps(), limits),
  ];
}

async function stopBoth(): Promise<void> {
  await Promise.all(pipelines.splice(0).map((pipeline) => pipeline.stop()));
}

/** Sends a delivery that its receiver answers when the gate opens. */
async function sendOne(gate: Promise<void>): Promise<void> {
  receiver.behave((_request, response) => void gate.then(() => response.end()));
  await applyEvents(runtime, await newShipment(runtime), [{ status: STATUS.inTransit }]);
  await eventually(() => receiver.open() === 1, "it is under way");
}

/** The last delivery. */
async function stateOfLast(): Promise<string | undefined> {
  const [last] = await deliveriesOf(runtime, endpointOf(runtime, "main"));
  return last?.state;
}

/** What the endpoint may have under way. */
async function concurrency(): Promise<number> {
  const { redis, live } = runtime;
  const { id, channelId, maxConcurrency } = endpointOf(runtime, "main");
  const companyId = live.configuration().channels.get(channelId)?.companyId ?? 0;
  const partition = companyPartition(companyId);
  const load = await readEndpointLoad(redis, partition, id, maxConcurrency, live.now());
  return load.concurrency;
}

test.each(OUTAGES)(
  "%s longer than a lease: each delivery reaches its receiver once",
  async (_, begin, end) => {
    const gate = Promise.withResolvers<void>();
    receiver.behave((_request, response) => void gate.promise.then(() => response.end()));
    for (let n = 0; n < DELIVERIES; n += 1) {
      await applyEvents(runtime, await newShipment(runtime), [{ status: STATUS.inTransit }]);
    }
    const most = await concurrency();
    expect(most).toBeLessThan(DELIVERIES);
    await eventually(() => receiver.open() === most, "the endpoint has all it may have under way");
    const underWay = receiver.open();
    await server.send(...begin);
    gate.resolve();
    await eventually(() => receiver.open() === 0, "all are answered");
    expect(receiver.requests.length).toBe(underWay);
    const overAtMs = performance.now() + OUTAGE_MS;
    await eventually(() => performance.now() > overAtMs, "the leases have ended");
    // What was not begun before is not begun now.
    expect(receiver.requests.length).toBe(underWay);
    await server.send(...end);
    await eventually(async () => {
      const all = await deliveriesOf(runtime, endpointOf(runtime, "main"));
      return all.every(({ state }) => state === "delivered");
    }, "all are delivered");
    const reported = receiver.requests.map(({ body }) => body.id);
    expect([reported.length, new Set(reported).size]).toEqual([DELIVERIES, DELIVERIES]);
  },
  300_000,
);

test("a store that hangs for longer than a lease and comes back at once: a delivery under way is not sent again", async () => {
  await stopBoth();
  const limits = { leaseMs: 4_000, recoveryMs: 1_500 };
  startTwo(limits);
  const gate = Promise.withResolvers<void>();
  await sendOne(gate.promise);
  server.freeze();
  const overAtMs = performance.now() + 1.5 * limits.leaseMs;
  await eventually(() => performance.now() > overAtMs, "the lease has ended");
  await server.kill();
  await server.start();
  const restsUntilMs = performance.now() + 2 * limits.recoveryMs;
  await eventually(() => performance.now() > restsUntilMs, "leases are handed out again");
  expect(receiver.requests.length).toBe(1);
  gate.resolve();
  await eventually(async () => (await stateOfLast()) === "delivered", "it is delivered");
  expect(receiver.requests.length).toBe(1);
}, 300_000);

test("who stops during an outage, also one longer than the pause after it, records what receivers have answered", async () => {
  await stopBoth();
  const limits = { leaseMs: 10_000, recoveryMs: 100 };
  startTwo(limits);
  const gate = Promise.withResolvers<void>();
  await sendOne(gate.promise);
  await server.send("REPLICAOF", "127.0.0.1", "1");
  gate.resolve();
  await eventually(() => receiver.open() === 0, "it is answered");
  const stopping = stopBoth();
  const overAtMs = performance.now() + 10 * limits.recoveryMs;
  await eventually(() => performance.now() > overAtMs, "the outage has lasted for a while");
  await server.send("REPLICAOF", "NO", "ONE");
  await stopping;
  expect(await stateOfLast()).toBe("delivered");
}, 300_000);

test("who stops during a long outage does not wait for its end", async () => {
  const gate = Promise.withResolvers<void>();
  await sendOne(gate.promise);
  await server.send("REPLICAOF", "127.0.0.1", "1");
  gate.resolve();
  await eventually(() => receiver.open() === 0, "it is answered");
  await stopBoth();
  expect(await stateOfLast()).toBe("queued");
  await server.send("REPLICAOF", "NO", "ONE");
}, 300_000);

test("a claim of an alert that cannot be looked at is free again at once", async () => {
  const { redis } = runtime;
  const about = { endpointId: "gone", kind: "warning", sinceMs: "1", atMs: "1" };
  await redis.xAdd(webhookKeys(0).alerts, "*", about);
  const alert = (await readAlerts(redis, 1)).find(({ partition }) => partition === 0);
  if (!alert) throw new Error("no alert");
  await server.send("ACL", "SETUSER", "default", "-xrange");
  await expect(claimAlert(redis, alert)).rejects.toThrow("NOPERM");
  await server.send("ACL", "SETUSER", "default", "+xrange");
  const claim = await claimAlert(redis, alert);
  expect(claim).not.toBeNull();
  await removeAlert(redis, alert);
  await claim?.release();
});

test("a change of the configuration whose announcement was lost is announced when it is repeated", async () => {
  const { redis, live } = runtime;
  const { id } = endpointOf(runtime, "main");
  const isActive = async () => (await live.refresh()).endpoints.get(id)?.active;
  await server.send("ACL", "SETUSER", "default", "-hincrby");
  await expect(setActive(redis, id, false)).rejects.toThrow();
  await server.send("ACL", "SETUSER", "default", "+hincrby");
  expect(await isActive()).toBe(true);
  await setActive(redis, id, false);
  expect(await isActive()).toBe(false);
  await setActive(redis, id, true);
  expect(await isActive()).toBe(true);
});
