/**
 * A store that is there and cannot be written to, while couriers send and merchants receive: its memory is full, it has become
 * a replica, it takes no orders from us, its disk is full. Nothing is lost, nothing is sent twice, nothing becomes a dead letter.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { PushResult } from "#test/support/clients/courier.ts";
import { createShipments, startEventStream } from "#test/support/clients/event-stream.ts";
import { type Merchant, request, signIn } from "#test/support/clients/merchant.ts";
import { readPanel } from "#test/support/clients/operator.ts";
import { expectExactlyOnce } from "#test/support/data/oracle.ts";
import { webhookSetup } from "#test/support/data/setup.ts";
import { eventually } from "#test/support/eventually.ts";
import { startMeasuring } from "#test/support/measured.ts";
import { type Product, startProduct } from "#test/support/product/product.ts";
import { type Receiver, startReceiver, WEBHOOK_ENV } from "#test/support/servers/receiver.ts";
import { startTestCluster } from "#test/support/servers/redis-cluster.ts";
import { startRedisServer } from "#test/support/servers/redis-server.ts";

const SHIPMENTS = 40;
/** Between messages of a sender: the receivers keep up. */
const PACE_MS = 300;
/** So long that deliveries are under way whenever the store goes, and so short that none is over its 10 s. */
const ANSWER_MS = 250;
const EVENTS_BETWEEN = 40;
/** Longer than a lease of a delivery (6 s). */
const LONG_MS = 8_000;
const SHORT_MS = 1_500;
/** Of the files the server may write: less than its first write takes. */
const FILE_LIMIT_KIB = 1;

/** A store of which an outage begins and ends. */
interface FaultyStore {
  readonly env: Readonly<Record<string, string>>;
  readonly outages: readonly Outage[];
  readonly stop: () => Promise<void>;
}

interface Outage {
  readonly name: string;
  readonly lastsMs: number;
  readonly begin: () => Promise<unknown>;
  readonly end: () => Promise<unknown>;
  /** What `/readyz` tells; absent where the connection is gone. */
  readonly reason?: string;
}

async function oneServer(): Promise<FaultyStore> {
  const server = await startRedisServer({ options: { "busy-reply-threshold": "50" } });
  const { send } = server;
  const set = (name: string, value: string) => () => send("CONFIG", "SET", name, value);
  return {
    env: { REDIS_URL: server.url },
    outages: [
      {
        name: "memory full",
        lastsMs: LONG_MS,
        reason: "its memory is full (maxmemory)",
        begin: set("maxmemory", "1mb"),
        end: set("maxmemory", "0"),
      },
      {
        name: "read-only replica",
        lastsMs: LONG_MS,
        reason: "it is a read-only replica",
        begin: () => send("REPLICAOF", "127.0.0.1", "1"),
        end: () => send("REPLICAOF", "NO", "ONE"),
      },
      {
        name: "no permission",
        lastsMs: SHORT_MS,
        reason: "our user lacks a permission",
        begin: () => send("ACL", "SETUSER", "default", "-evalsha", "-eval"),
        end: () => send("ACL", "SETUSER", "default", "+@all"),
      },
      {
        name: "password asked for",
        lastsMs: SHORT_MS,
        async begin() {
          await send("CONFIG", "SET", "requirepass", "secret");
          await send("CLIENT", "KILL", "USER", "default");
        },
        end: set("requirepass", ""),
      },
      {
        name: "busy with a script",
        lastsMs: SHORT_MS,
        begin: () => Promise.resolve(server.keepBusy()),
        end: () => send("SCRIPT", "KILL"),
      },
      {
        name: "disk full",
        lastsMs: SHORT_MS,
        async begin() {
          await server.kill();
          await server.start(FILE_LIMIT_KIB);
          await eventually(() => server.status() === 1, "the first write ends the server");
        },
        end: () => server.start(),
      },
    ],
    stop: server.stop,
  };
}

async function sixNodes(): Promise<FaultyStore> {
  const cluster = await startTestCluster();
  const set = (name: string, value: string) => () =>
    cluster.everywhere("CONFIG", "SET", name, value);
  return {
    env: { REDIS_CLUSTER_URLS: cluster.urls, REDIS_WAIT_REPLICAS: "1" },
    outages: [
      {
        name: "memory full",
        lastsMs: LONG_MS,
        reason: "its memory is full (maxmemory)",
        begin: set("maxmemory", "1mb"),
        end: set("maxmemory", "0"),
      },
    ],
    stop: cluster.stop,
  };
}

describe.each([
  ["one Redis server", oneServer],
  ["a six-node Redis Cluster", sixNodes],
] as const)("on %s", (kind, openFaultyStore) => {
  let receiver: Receiver;
  let store: FaultyStore;
  let product: Product;
  let merchant: Merchant;
  const answers: PushResult[] = [];

  beforeAll(async () => {
    receiver = await startReceiver();
    receiver.behave((_request, response) => void setTimeout(() => response.end(), ANSWER_MS));
    const setup = webhookSetup(
      { code: "one", url: receiver.url, trigger: "every_event", statuses: ["IN_TRANSIT"] },
      { code: "two", url: `${receiver.url}/2`, trigger: "every_event", statuses: ["DEPARTED"] },
    );
    store = await openFaultyStore();
    const env = WEBHOOK_ENV;
    product = await startProduct(setup, { ...env, ...store.env });
  }, 300_000);

  afterAll(async () => {
    await product.end();
    await store.stop();
    await receiver.stop();
  }, 300_000);

  /** Of one outage, as couriers, merchants and operators meet it. */
  async function expectRefusals({ name, reason }: Outage): Promise<void> {
    const since = answers.length;
    const refusal = await eventually(
      () => answers.slice(since).find(({ status }) => status !== 200),
      `${name}: ingest refuses`,
    );
    expect([name, refusal.status, refusal.body.code]).toEqual([name, 503, "STORE_UNAVAILABLE"]);
    const asked = await merchant.call("GET", "/v2/shipments?limit=1");
    expect([name, asked.status, asked.headers.get("retry-after")]).toEqual([name, 503, "1"]);
    const ready = await request("GET", `${product.ingest}/readyz`);
    expect([name, ready.status]).toEqual([name, 503]);
    if (reason !== undefined) expect(ready.body.reason).toContain(reason);
  }

  test("nothing is lost, doubled or given up, and couriers are answered 200 or 503 with Retry-After", async () => {
    const ids = await createShipments(product, "OUT", SHIPMENTS);
    merchant = await signIn(product.api, "key_acme_main");
    const stream = startEventStream(product, "OUT", SHIPMENTS, {
      paceMs: PACE_MS,
      onAnswer: (answer) => void answers.push(answer),
    });
    const names = store.outages.map(({ name }) => name).join(", ");
    const measuring = startMeasuring("Hurt everything", `${names}, on ${kind}`);
    for (const outage of store.outages) {
      await stream.grows(`events are accepted before ${outage.name}`, EVENTS_BETWEEN);
      await eventually(
        () => receiver.open() > 2,
        `deliveries are under way before ${outage.name}`,
        60_000,
      );
      await outage.begin();
      const overAtMs = performance.now() + outage.lastsMs;
      await expectRefusals(outage);
      await eventually(() => performance.now() > overAtMs, "the outage has lasted", 60_000);
      await outage.end();
      const endedAtMs = performance.now();
      await stream.grows(`one is accepted after ${outage.name}`);
      measuring.recovered(endedAtMs);
    }
    await stream.grows("events are accepted after all", EVENTS_BETWEEN);
    await stream.stop();
    const counted = await expectExactlyOnce(product, "OUT", ids, stream.accepted);

    const odd = answers.filter(({ status }) => status !== 200 && status !== 503);
    expect(odd.map(({ status, body }) => [status, body])).toEqual([]);
    const refused = answers.filter(({ status }) => status === 503);
    expect(refused.filter(({ headers }) => !Number(headers.get("retry-after")))).toEqual([]);
    await expectEachOnce([...stream.accepted.values()].map(({ status }) => status.code));
    expect(product.output()).not.toContain("dead letter");
    const further = {
      "answers of 503": refused.length,
      "webhooks received": receiver.requests.length,
    };
    await measuring.done({ faults: store.outages.length, ...counted, further });
  }, 300_000);

  /** @param codes of the accepted events: each is reported to the endpoint that listens to its status */
  async function expectEachOnce(codes: readonly string[]): Promise<void> {
    const due = codes.filter((code) => code === "TRN" || code === "DEP").length;
    const ledger = await eventually(
      async () => {
        const { ledger: books } = await readPanel(product, "/overview");
        return books.sent === due && books.pending === 0 ? books : null;
      },
      "every delivery is over",
      60_000,
    );
    const { sent, delivered, failed, difference } = ledger;
    expect({ sent, delivered, failed }).toEqual({ sent: due, delivered: due, failed: 0 });
    expect(Object.values(difference)).toEqual([0, 0, 0]);
    const reported = receiver.requests.map(({ body }) => body.id);
    expect([new Set(reported).size, reported.length]).toEqual([due, due]);
  }
});
