/**
 * docs/operations/redis.md, "Placement": `npx waybill slots` moves slots of a running cluster. Couriers send and a merchant receives while a master
 * is emptied, the command is killed and run again, and a new master takes its share.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { createClient } from "redis";
import { KEYS_PER_BATCH } from "#core/placement/store/move-slots.ts";
import { companyTag } from "#core/platform/redis/keys.ts";
import { parseNodes } from "#core/platform/redis/nodes/cluster-nodes.ts";
import { createShipments, startEventStream } from "#test/support/clients/event-stream.ts";
import { readPanel } from "#test/support/clients/operator.ts";
import { expectExactlyOnce } from "#test/support/data/oracle.ts";
import { webhookSetup } from "#test/support/data/setup.ts";
import { eventually } from "#test/support/eventually.ts";
import { outcomeOf, startCommand } from "#test/support/product/command.ts";
import { type Product, startProduct } from "#test/support/product/product.ts";
import {
  attemptsOf,
  type Receiver,
  startReceiver,
  WEBHOOK_ENV,
} from "#test/support/servers/receiver.ts";
import { startTestCluster, type TestCluster } from "#test/support/servers/redis-cluster.ts";

const SHIPMENTS = 60;
const SENDERS = 2;
const EVENTS_BETWEEN = 50;
const SETTLE_LIMIT_MS = 120_000;

let cluster: TestCluster;
let receiver: Receiver;
let product: Product;

beforeAll(async () => {
  cluster = await startTestCluster();
  await cluster.everywhere("CONFIG", "SET", "cluster-require-full-coverage", "no");
  receiver = await startReceiver();
  const setup = webhookSetup({ url: receiver.url, trigger: "every_event" });
  const env = WEBHOOK_ENV;
  product = await startProduct(setup, { ...env, ...clusterEnv() });
}, 300_000);

afterAll(async () => {
  await product.end();
  await cluster.stop();
  await receiver.stop();
}, 300_000);

const clusterEnv = () => ({ REDIS_CLUSTER_URLS: cluster.urls, REDIS_WAIT_REPLICAS: "1" });
const start = (...args: string[]) =>
  startCommand(["bun", "cli/main.ts", "slots", ...args], clusterEnv());
const slots = (...args: string[]) => outcomeOf(start(...args));

/** Those that have slots. */
async function masters() {
  const [url = ""] = cluster.urls.split(",");
  const client = createClient({ url });
  await client.connect();
  const text = String(await client.sendCommand(["CLUSTER", "NODES"]));
  client.destroy();
  return parseNodes(text, "127.0.0.1").filter(
    ({ isMaster, slots }) => isMaster && slots.length > 0,
  );
}

/** Masters by how many partitions the command says they have; the last figure of its line is a share. */
function countsOf(output: string): number[] {
  return [...output.matchAll(/^127\.0\.0\.1:\d+ +(\d+) +[\d.]+ % +(\d+)/gm)].map(([, , then]) =>
    Number(then),
  );
}

/** Kills the command after the first slot has moved, so that as a rule another one is open. */
async function killInTheMiddle(): Promise<void> {
  const child = start("--masters", "2", "--apply");
  let output = "";
  for await (const chunk of child.stdout) {
    output += new TextDecoder().decode(chunk);
    if (output.includes("moved slot")) break;
  }
  child.kill("SIGKILL");
  await child.exited;
  expect(output).toContain("moved slot");
}

/** More keys than go over at once. */
async function fill(tag: string): Promise<void> {
  const owner = await connectTo(tag);
  for (let at = 0; at < 3 * KEYS_PER_BATCH; at += 1) {
    await owner.sendCommand(["SET", `${tag}:filler:${at}`, "x".repeat(20_000)]);
  }
  owner.destroy();
}

async function connectTo(tag: string) {
  const [url = ""] = cluster.urls.split(",");
  const any = createClient({ url });
  await any.connect();
  const slot = Number(await any.sendCommand(["CLUSTER", "KEYSLOT", tag]));
  any.destroy();
  const owner = (await masters()).find((node) =>
    node.slots.some(([from, to]) => from <= slot && slot <= to),
  );
  const client = createClient({ url: `redis://${owner?.place}` });
  await client.connect();
  return client;
}

test("slots move under load, the command killed and run again, and no event and no webhook is lost or doubled", async () => {
  const ids = await createShipments(product, "SLOT", SHIPMENTS);
  const stream = startEventStream(product, "SLOT", SHIPMENTS, { senders: SENDERS });
  await stream.grows("events are accepted", EVENTS_BETWEEN);
  for (let n = 0; n < 16; n += 1) await fill(companyTag(n));

  const plan = await slots("--masters", "2");
  expect([plan.status, plan.errors]).toEqual([0, ""]);
  expect(plan.output).toContain("Nothing was moved: --apply does it.");
  expect(plan.output).toContain("is emptied");
  await killInTheMiddle();
  await stream.grows("events go on being accepted after the kill", EVENTS_BETWEEN);

  const again = await slots("--masters", "2", "--apply");
  expect([again.status, again.errors]).toEqual([0, ""]);
  // Redis makes the emptied one a replica of the master that took its last slot.
  const sizes = (await masters()).map((node) =>
    node.slots.reduce((sum, [from, to]) => sum + to - from + 1, 0),
  );
  expect(sizes).toHaveLength(2);
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(16_384);
  const done = await slots("--masters", "2");
  expect([done.status, done.errors]).toEqual([0, ""]);
  expect(done.output).toContain("Nothing to move.");
  expect(countsOf(done.output).filter((count) => count > 0)).toHaveLength(2);
  await stream.grows("events go on being accepted on two masters", EVENTS_BETWEEN);

  const added = await cluster.addShard();
  const three = await slots("--masters", "3", "--apply");
  expect([three.status, three.errors]).toEqual([0, ""]);
  expect(three.output).toContain(`-> ${added}`);
  expect(countsOf(three.output).filter((count) => count > 0)).toHaveLength(3);
  await stream.grows("events go on being accepted on three masters", EVENTS_BETWEEN);

  await stream.stop();
  await expectExactlyOnce(product, "SLOT", ids, stream.accepted);
  const reported = () => new Set(receiver.requests.map(({ body }) => body.id));
  await eventually(
    () => reported().size === stream.accepted.size,
    () => `${stream.accepted.size} webhooks arrive; ${reported().size} have`,
    SETTLE_LIMIT_MS,
  );
  const attempts = attemptsOf(receiver.requests);
  expect(new Set(attempts).size).toBe(attempts.length);
  const { ledger } = await eventually(
    async () => {
      const overview = await readPanel(product, "/overview");
      return overview.ledger.delivered === stream.accepted.size && overview;
    },
    "every delivery is recorded",
    SETTLE_LIMIT_MS,
  );
  expect(ledger.difference).toEqual({ received: 0, applied: 0, webhooks: 0 });
  expect(product.output()).not.toContain("dead letter");

  const { output } = await outcomeOf(
    startCommand(["bun", "cli/main.ts", "doctor", "store"], clusterEnv()),
  );
  const bad = output.split("\n").filter((line) => line.startsWith("BAD"));
  expect(bad).toEqual([]);
}, 400_000);

test("what cannot be planned or moved is refused with the reason, and nothing changes", async () => {
  const before = await masters();
  for (const [args, status, reason] of [
    [["--masters", "9"], 1, "masters: add others first"],
    [["--masters", "49"], 1, "48 partitions cannot be on more masters"],
    [["--masters", "0"], 2, "usage: waybill slots"],
    [["--masters", "1.5"], 2, "usage: waybill slots"],
    [["--apply"], 2, "usage: waybill slots"],
  ] as const) {
    const done = await slots(...args);
    expect([args, done.status, done.errors]).toEqual([
      ...[args, status, expect.stringContaining(reason)],
    ]);
  }
  expect((await masters()).map((node) => node.slots)).toEqual(before.map((node) => node.slots));
}, 60_000);
