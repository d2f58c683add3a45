/** How many requests an endpoint has under way, how many begin in a second, and that no company takes every slot. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { ServerResponse } from "node:http";
import { companyPartition } from "#core/platform/redis/keys.ts";
import { START_CONCURRENCY } from "#core/webhooks/rules/concurrency.ts";
import {
  type Decision,
  eventIdOf,
  recordDecisions,
} from "#core/webhooks/store/deliveries/deliveries.ts";
import { type EndpointLoad, readEndpointLoad } from "#core/webhooks/store/endpoint-load.ts";
import {
  changeEndpoint,
  disableEndpoint,
  type EndpointChange,
  enableEndpoint,
} from "#core/webhooks/store/endpoints.ts";
import { type Deliverer, startDeliverer } from "#processors/webhooks/deliver.ts";
import type { DeliverLimits } from "#processors/webhooks/deliver-limits.ts";
import { eventually } from "#test/support/eventually.ts";
import type { TestRuntime } from "#test/support/product/runtime.ts";
import {
  deliveriesOf,
  endpointOf,
  leaseRound,
  newShipment,
  openWebhookRuntime,
  passTime,
  recordResults,
  sendDeps,
} from "#test/support/product/webhooks.ts";
import { type Receiver, startReceiver } from "#test/support/servers/receiver.ts";

let receiver: Receiver;
let runtime: TestRuntime;
let shipmentId: number;
let deliverers: Deliverer[];
let held: ServerResponse[];

beforeEach(async () => {
  receiver = await startReceiver();
  runtime = await openWebhookRuntime([{ url: receiver.url }]);
  shipmentId = await newShipment(runtime);
  deliverers = [];
  held = [];
});

afterEach(async () => {
  receiver.behave(200);
  release();
  for (const deliverer of deliverers) await deliverer.stop();
  await runtime.end();
  await receiver.stop();
});

const main = () => endpointOf(runtime, "main");

function start(limits: Partial<DeliverLimits> = {}): void {
  const { redis, log } = runtime;
  deliverers.push(startDeliverer({ redis, log, ...sendDeps(runtime), limits }));
}

async function change(given: EndpointChange): Promise<void> {
  await changeEndpoint(runtime.redis, main().id, () => given);
  await runtime.live.refresh();
}

function hold(): void {
  receiver.behave((_, response) => void held.push(response));
}

function release(count = held.length): void {
  for (const response of held.splice(0, count)) response.end();
}

let changes = 0;

async function queue(count: number): Promise<void> {
  const { id, channelId } = main();
  const decisions = Array.from({ length: count }, (): Decision => {
    changes += 1;
    const ids = { eventId: eventIdOf("load", `${changes}-0`), entryId: `${changes}-0` };
    const text = { key: `fact-${changes}`, courierStatus: "In transito", place: null, detail: 0 };
    return {
      shipmentId,
      channelId,
      ...ids,
      fact: { ...text, occurredAtMs: 0, receivedAtMs: 0, status: "IN_TRANSIT" },
      verdicts: [{ endpointId: id, trigger: "every_event", verdict: "send" }],
    };
  });
  await recordDecisions(runtime.redis, decisions, runtime.live.now());
}

const owner = () => runtime.live.configuration().channels.get(main().channelId)?.companyId ?? 0;

function load(): Promise<EndpointLoad> {
  const { redis, live } = runtime;
  const { id, maxConcurrency } = main();
  return readEndpointLoad(redis, companyPartition(owner()), id, maxConcurrency, live.now());
}

const concurrency = async () => (await load()).concurrency;

/** Of a rate that is measured. */
const TRIES = 4;

/** What a failing endpoint has under way. */
const FAILING_CONCURRENCY = 2;

/**
 * Leases what an endpoint may have under way and answers all of it, as quickly as ever.
 * @returns how many that were
 */
async function record(sign: "good" | "overloaded", most: number): Promise<number> {
  const companyId = owner();
  const share = { partition: companyPartition(companyId), wanted: most, wantedFailing: most };
  const own = { companyId, most, mostInAll: null, maxPerSecond: null };
  const leased = await leaseRound(runtime, [share], {
    leaseMs: 30_000,
    perEndpoint: START_CONCURRENCY,
    perFailingEndpoint: FAILING_CONCURRENCY,
    endpoint: () => own,
    retries: "first",
  });
  const atMs = runtime.live.now();
  const httpStatus = sign === "good" ? 200 : 503;
  const answer = {
    httpStatus,
    durationMs: 7,
    error: null,
    responseSnippet: null,
    responseHeaders: null,
    request: null,
  };
  const result = sign === "good" ? "delivered" : "waiting";
  await recordResults(
    runtime,
    leased.map((of) => ({
      of,
      sign,
      state: result,
      nextAttemptAtMs: sign === "good" ? null : atMs,
      reason: null,
      attempt: { generation: of.generation, attempt: 1, atMs, ...answer },
    })),
  );
  return leased.length;
}

/** Lets answers go in rounds until the concurrency is as wanted. @returns it, once as many requests wait */
async function grow(wanted: number): Promise<number> {
  await eventually(async () => {
    release();
    return (await concurrency()) >= wanted;
  }, `the concurrency is ${wanted}`);
  await eventually(async () => held.length === (await concurrency()), "as many are under way");
  return concurrency();
}

describe("the concurrency", () => {
  test("an endpoint begins with four requests and not one more", async () => {
    hold();
    await queue(20);
    start();
    await eventually(() => held.length === START_CONCURRENCY, "four are under way");
    const fromMs = performance.now();
    await eventually(() => performance.now() > fromMs + 300, "more rounds have passed");
    expect(receiver.requests).toHaveLength(START_CONCURRENCY);
    expect(await concurrency()).toBe(START_CONCURRENCY);
  });

  test("it grows with successes up to maxConcurrency, which all processes have together, and no further", async () => {
    await change({ maxConcurrency: 12 });
    hold();
    await queue(300);
    start();
    start();
    await grow(12);
    await eventually(() => held.length === 12, "twelve are under way");
    release();
    await eventually(() => held.length === 12, "and twelve again");
    receiver.behave(200);
    release();
    await eventually(() => receiver.requests.length === 300, "all arrive");
    expect(receiver.mostOpen()).toBe(12);
  });

  test("maxConcurrency below the start holds as well", async () => {
    await change({ maxConcurrency: 1 });
    receiver.behave((_, response) => void setTimeout(() => response.end(), 5));
    await queue(20);
    start();
    await eventually(() => receiver.requests.length === 20, "all arrive");
    expect(receiver.mostOpen()).toBe(1);
  });

  test("a higher maxConcurrency counts from the next requests on", async () => {
    await queue(20);
    expect(await record("good", 1)).toBe(1);
    expect(await record("good", 64)).toBe(START_CONCURRENCY);
    expect(await record("good", 64)).toBe(START_CONCURRENCY + 2 * START_CONCURRENCY);
  });

  test.each([429, 503])(
    "%i halves it, once for all that was sent before it fell",
    async (status) => {
      hold();
      await queue(300);
      start();
      await grow(16);
      await eventually(() => held.length >= 16, "sixteen are under way");
      const before = await concurrency();
      for (const response of held.splice(0, 8)) response.writeHead(status).end();
      await eventually(async () => (await concurrency()) < before, "it has fallen");
      expect(await concurrency()).toBe(Math.floor(before / 2));
    },
  );

  test("other failures leave it alone", async () => {
    hold();
    await queue(300);
    start();
    const before = await grow(8);
    const [refused] = held.splice(0, 1);
    refused?.writeHead(404).end();
    await eventually(
      async () => (await deliveriesOf(runtime, main())).some(({ state }) => state === "failed"),
      "one has failed",
    );
    expect(await concurrency()).toBe(before);
  });

  test("after ten minutes of failures three answers bring it back: within 30 s where one takes up to ten", async () => {
    const MOST = 64;
    await queue(400);
    await record("good", MOST);
    for (let left = 10; (await concurrency()) < MOST; left -= 1) {
      expect(left).toBeGreaterThan(0);
      await record("good", MOST);
    }
    while ((await concurrency()) > START_CONCURRENCY) await record("overloaded", MOST);
    await passTime(runtime, 300);
    expect(await record("overloaded", MOST)).toBeLessThanOrEqual(FAILING_CONCURRENCY);
    await passTime(runtime, 300);
    expect(await record("good", MOST)).toBe(FAILING_CONCURRENCY);
    for (let answers = 0; answers < 3; answers += 1) await record("good", MOST);
    expect(await concurrency()).toBe(MOST);
  });

  test("ten minutes without use begin it again", async () => {
    hold();
    await queue(100);
    start();
    await grow(10);
    receiver.behave(200);
    release();
    await eventually(
      async () => (await deliveriesOf(runtime, main())).every(({ state }) => state === "delivered"),
      "all have been recorded",
    );
    await passTime(runtime, 601);
    expect(await concurrency()).toBe(START_CONCURRENCY);
  });
});

describe("pauses", () => {
  test("Retry-After of a 429 pauses the endpoint and not only the delivery", async () => {
    hold();
    await queue(5);
    start();
    await eventually(() => held.length === START_CONCURRENCY, "four are under way");
    held.shift()?.writeHead(429, { "retry-after": "300" }).end();
    await eventually(async () => (await load()).pausedUntilMs !== null, "it is paused");
    receiver.behave(200);
    release();
    await queue(5);
    const fromMs = performance.now();
    await eventually(() => performance.now() > fromMs + 500, "more rounds have passed");
    expect(receiver.requests).toHaveLength(START_CONCURRENCY);
    await passTime(runtime, 301);
    await eventually(
      async () => (await deliveriesOf(runtime, main())).every(({ state }) => state === "delivered"),
      "all arrive after it",
    );
  });

  test("an endpoint that an operator switches off and on again is not paused any more", async () => {
    hold();
    await queue(1);
    start();
    await eventually(() => held.length === 1, "one is under way");
    held.shift()?.writeHead(429, { "retry-after": "3600" }).end();
    await eventually(async () => (await load()).pausedUntilMs !== null, "it is paused");
    receiver.behave(200);
    const { redis, live } = runtime;
    await disableEndpoint(redis, live.configuration(), main().id, live.now());
    await enableEndpoint(redis, await live.refresh(), main().id);
    await live.refresh();
    await queue(3);
    await eventually(() => receiver.requests.length === 4, "what comes after it is sent");
  });

  test.each([5, 40])(
    "no second sees more than maxPerSecond = %i, and nothing is left behind",
    async (most) => {
      await change({ maxPerSecond: most });
      const atMs: number[] = [];
      receiver.behave((_, response) => {
        atMs.push(performance.now());
        response.end();
      });
      start();
      // Leases keep the rate; how long a request then takes to arrive differs by some milliseconds.
      const LATE_MS = 100;
      const mostOfASecond = async () => {
        atMs.length = 0;
        await queue(3 * most);
        await eventually(() => atMs.length === 3 * most, "all arrive");
        const within = (firstMs: number) => (ms: number) =>
          ms >= firstMs && ms < firstMs + 1_000 - LATE_MS;
        return Math.max(...atMs.map((firstMs) => atMs.filter(within(firstMs)).length));
      };
      // A machine that is busy for a moment delivers two seconds' requests at once; a rate that is not kept never is.
      let found = await mostOfASecond();
      for (let tries = 1; found > most && tries < TRIES; tries += 1) found = await mostOfASecond();
      expect(found).toBeLessThanOrEqual(most);
    },
  );
});
