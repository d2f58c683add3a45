import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { ServerResponse } from "node:http";
import { companyPartition, webhookKeys } from "#core/platform/redis/keys.ts";
import { drainQueues, recordDecisions } from "#core/webhooks/store/deliveries/deliveries.ts";
import type { Leased } from "#core/webhooks/store/deliveries/leases.ts";
import { readBalance } from "#core/webhooks/store/deliveries/ledger.ts";
import { changeEndpoint, disableEndpoint, enableEndpoint } from "#core/webhooks/store/endpoints.ts";
import { startDeliverer } from "#processors/webhooks/deliver.ts";
import { eventually } from "#test/support/eventually.ts";
import type { TestRuntime } from "#test/support/product/runtime.ts";
import {
  applyEvents,
  deliveriesOf,
  endpointOf,
  leaseRound,
  newShipment,
  openWebhookRuntime,
  type Pipeline,
  passTime,
  type RoundTerms,
  recordResults,
  STATUS,
  sendDeps,
  setActive,
  startPipeline,
} from "#test/support/product/webhooks.ts";
import { type Receiver, startReceiver } from "#test/support/servers/receiver.ts";

let receivers: Receiver[];
let runtime: TestRuntime;
let stops: (() => Promise<void>)[];

beforeEach(async () => {
  receivers = [await startReceiver(), await startReceiver()];
  runtime = await openWebhookRuntime(receivers.map(({ url }) => ({ url, trigger: "every_event" })));
  stops = [];
});

afterEach(async () => {
  for (const receiver of receivers) receiver.behave(200);
  for (const stop of stops) await stop();
  await runtime.end();
  for (const receiver of receivers) await receiver.stop();
});

function start(limits: Parameters<typeof startPipeline>[2] = {}): Pipeline {
  const pipeline = startPipeline(runtime, sendDeps(runtime), limits);
  stops.push(pipeline.stop);
  return pipeline;
}

/** As many changes of one shipment, decided but not sent. */
async function queueChanges(count: number): Promise<void> {
  const id = await newShipment(runtime);
  const events = Array.from({ length: count }, (_, n) => ({
    status: STATUS.inTransit,
    occurredAt: new Date(Date.UTC(2026, 10, 10, 8, n)).toISOString(),
  }));
  await applyEvents(runtime, id, events);
  const before = (await deliveriesOf(runtime, endpointOf(runtime, "main"))).length;
  const { consumer, deliverer } = startPipeline(runtime, sendDeps(runtime), {
    inFlight: 0,
  });
  await eventually(
    async () =>
      (await deliveriesOf(runtime, endpointOf(runtime, "second"))).length >= before + count,
    "everything is queued",
  );
  await consumer.stop();
  await deliverer.stop();
}

/** The partition of company acme. */
function acme(): number {
  const { channels } = runtime.live.configuration();
  return companyPartition(channels.get(endpointOf(runtime, "main").channelId)?.companyId ?? 0);
}

function lease(wanted: number, terms: Partial<RoundTerms> = {}) {
  const share = { partition: acme(), wanted, wantedFailing: wanted };
  const limits = { leaseMs: 30_000, perEndpoint: 10, perFailingEndpoint: 10 };
  return leaseRound(runtime, [share], { ...limits, retries: "last", ...terms });
}

interface Ending {
  readonly state: "delivered" | "waiting" | "failed";
  readonly nextAttemptAtMs?: number;
  readonly reason?: string;
}

/** Records what came of a lease, as if nothing had been sent. */
function finish(of: Leased, ending: Ending): Promise<void> {
  const whole = { of, attempt: null, nextAttemptAtMs: null, reason: null, ...ending };
  return recordResults(runtime, [whole]);
}

/** Answers that are kept until the test lets them go. */
function hold(receiver: Receiver) {
  const held: ServerResponse[] = [];
  receiver.behave((_, response) => void held.push(response));
  return {
    held,
    release() {
      receiver.behave(200);
      for (const response of held.splice(0)) response.end();
    },
  };
}

const main = () => endpointOf(runtime, "main");

describe("crash safety", () => {
  test("what a dropped process had leased is sent by another once the lease has ended", async () => {
    await queueChanges(3);
    const dropped = await lease(100, { leaseMs: 300 });
    expect(dropped).toHaveLength(6);
    expect(await lease(100)).toEqual([]);
    start();
    for (const receiver of receivers) {
      await eventually(() => receiver.requests.length === 3, "the others' deliveries arrive");
      const attempts = receiver.requests.map((one) => one.headers["x-service-delivery-attempt"]);
      expect(attempts).toEqual(["1", "1", "1"]);
    }
    await eventually(
      async () => (await deliveriesOf(runtime, main())).every(({ state }) => state === "delivered"),
      "all are recorded",
    );
    const { leases, inFlight } = webhookKeys(acme());
    expect(await runtime.redis.exists([leases, inFlight])).toBe(0);
  });

  test("a result that comes after the end of its lease changes nothing", async () => {
    await queueChanges(1);
    const [late] = await lease(1, { leaseMs: 1 });
    const again = await eventually(async () => {
      const found = await lease(2);
      return found.find(({ deliveryId }) => deliveryId === late?.deliveryId);
    }, "the lease ends");
    if (!late) throw new Error("nothing leased");
    await finish(late, { state: "failed", reason: "late" });
    const state = () => runtime.redis.hGet(webhookKeys(acme()).delivery(late.deliveryId), "s");
    expect(await state()).toBe("queued");
    await finish(again, { state: "failed", reason: "late" });
    expect(await state()).toBe("failed");
  });

  test("a retry that was under way goes back among the retries", async () => {
    await queueChanges(1);
    receivers[0]?.behave(503);
    const first = start();
    await eventually(
      async () => (await deliveriesOf(runtime, main()))[0]?.state === "waiting",
      "a retry waits",
    );
    await first.stop();
    stops.pop();
    await passTime(runtime, 100);
    const [dropped] = await lease(10, { leaseMs: 50 });
    expect(dropped).toMatchObject({ attemptsMade: 1, endpointId: main().id });
    receivers[0]?.behave(200);
    start();
    await eventually(() => receivers[0]?.requests.length === 2, "the retry arrives");
    expect(receivers[0]?.requests[1]?.headers["x-service-delivery-attempt"]).toBe("2");
  });
});

describe("limits and fairness", () => {
  test("at most the limit per endpoint is under way, and a slow endpoint does not hold up the other", async () => {
    await queueChanges(30);
    const [slow, quick] = receivers;
    if (!slow || !quick) throw new Error("no receivers");
    const { held, release } = hold(slow);
    const limit = () => ({ maxConcurrency: 4 });
    for (const code of ["main", "second"]) {
      await changeEndpoint(runtime.redis, endpointOf(runtime, code).id, limit);
    }
    await runtime.live.refresh();
    start({ startConcurrency: 10, inFlight: 10 });
    await eventually(() => quick.requests.length === 30, "the quick endpoint has all its own");
    await eventually(() => held.length === 4, "the slow one has as many as it may");
    expect(slow.mostOpen()).toBe(4);
    release();
    await eventually(() => slow.requests.length === 30, "the slow one gets the rest");
    expect(slow.mostOpen()).toBe(4);
  });

  test("at most the limit in all is under way", async () => {
    await queueChanges(20);
    const holds = receivers.map(hold);
    start({ inFlight: 5, slowMs: 60_000 });
    const open = () => receivers.reduce((sum, receiver) => sum + receiver.open(), 0);
    await eventually(() => open() === 5, "five are under way");
    expect(receivers.map(({ requests }) => requests.length).reduce((a, b) => a + b)).toBe(5);
    for (const { release } of holds) release();
    await eventually(
      () => receivers.every(({ requests }) => requests.length === 20),
      "all arrive in the end",
    );
  });

  test("receivers that hang keep their slots for a while only: the others are served before they time out", async () => {
    await queueChanges(30);
    const [hanging, quick] = receivers;
    if (!hanging || !quick) throw new Error("no receivers");
    const { held, release } = hold(hanging);
    start({ inFlight: 10, startConcurrency: 10, slowMs: 300 });
    await eventually(() => held.length === 10, "every slot is taken by what hangs");
    // Those that hang time out after 10 s.
    await eventually(() => quick.requests.length === 30, "the others are served", 9_000);
    expect(hanging.mostOpen()).toBe(10);
    release();
  });

  test("endpoints are served in turn", async () => {
    await queueChanges(10);
    const leased = await lease(6);
    const owners = leased.map(({ endpointId }) => endpointId);
    const [one, other] = owners;
    expect(owners).toEqual([one, other, one, other, one, other] as string[]);
  });

  /** Of the first endpoint, due. */
  async function leaveTwoRetries(): Promise<void> {
    await queueChanges(2);
    receivers[0]?.behave(503);
    const first = start();
    await eventually(
      async () =>
        (await deliveriesOf(runtime, main())).every(({ state }) => state === "waiting") &&
        receivers[1]?.requests.length === 2,
      "two retries wait",
    );
    await first.stop();
    stops.pop();
    await passTime(runtime, 3_600);
  }

  test("first attempts of any endpoint come before retries", async () => {
    await leaveTwoRetries();
    await queueChanges(2);
    const leased = await lease(100);
    expect(leased.map(({ attemptsMade }) => attemptsMade)).toEqual([0, 0, 0, 0, 1, 1]);
    expect(await lease(100)).toEqual([]);
  });

  test("retries have their turn while first attempts keep waiting, of other endpoints and of their own", async () => {
    await leaveTwoRetries();
    await queueChanges(300);
    const before = receivers.map(({ requests }) => requests.length);
    const attemptsOf = (at: number) =>
      receivers[at]?.requests
        .slice(before[at])
        .map(({ headers }) => headers["x-service-delivery-attempt"]) ?? [];
    for (const receiver of receivers) {
      receiver.behave((_, response) => void setTimeout(() => response.end(), 20));
    }
    let firstsOfOther = 0;
    start({ inFlight: 5 });
    await eventually(() => {
      firstsOfOther = attemptsOf(1).length;
      return attemptsOf(0).filter((attempt) => attempt === "2").length === 2;
    }, "both retries arrive");
    expect(firstsOfOther).toBeLessThan(300);
    expect(attemptsOf(0).length).toBeLessThan(302);
  });

  test("a failing endpoint has a smaller part, until it succeeds", async () => {
    await queueChanges(20);
    const [failing] = receivers;
    if (!failing) throw new Error("no receiver");
    await runtime.redis.zAdd(webhookKeys(acme()).failing, [{ value: main().id, score: 1 }]);
    const { held, release } = hold(failing);
    start({ inFlightPerFailingEndpoint: 1 });
    await eventually(() => receivers[1]?.requests.length === 20, "the healthy one is served");
    expect(held).toHaveLength(1);
    release();
    await eventually(() => failing.requests.length === 20, "the failing one recovers");
    expect(await runtime.redis.zScore(webhookKeys(acme()).failing, main().id)).toBeNull();
  });
});

describe("document 3, Endpoint: switched off", () => {
  test("waiting deliveries fail, stay replayable, and nothing more is sent", async () => {
    receivers[0]?.behave(503);
    await queueChanges(2);
    start();
    await eventually(
      async () => (await deliveriesOf(runtime, main())).every(({ state }) => state === "waiting"),
      "two retries wait",
    );
    await disableEndpoint(
      runtime.redis,
      runtime.live.configuration(),
      main().id,
      runtime.live.now(),
    );
    expect(await deliveriesOf(runtime, main())).toMatchObject([
      { state: "failed", reason: "endpoint disabled", nextAttemptAtMs: null },
      { state: "failed", reason: "endpoint disabled", nextAttemptAtMs: null },
    ]);
    const sent = receivers[0]?.requests.length;
    await passTime(runtime, 86_400);
    await queueChanges(1);
    await eventually(() => receivers[1]?.requests.length === 3, "the other endpoint is served");
    expect(receivers[0]?.requests).toHaveLength(sent ?? -1);
    expect(await deliveriesOf(runtime, main())).toHaveLength(2);
  });

  test("a delivery that is leased after the switch fails and is not sent", async () => {
    await queueChanges(2);
    await setActive(runtime.redis, main().id, false);
    start();
    await eventually(
      async () => (await deliveriesOf(runtime, main())).every(({ state }) => state === "failed"),
      "both fail",
    );
    const [delivery] = await deliveriesOf(runtime, main());
    expect(delivery).toMatchObject({ reason: "endpoint disabled", attempts: [], attemptsMade: 0 });
    expect(receivers[0]?.requests).toEqual([]);
  });

  test("reactivation is clean: nothing old is sent", async () => {
    await queueChanges(2);
    const configuration = runtime.live.configuration();
    await disableEndpoint(runtime.redis, configuration, main().id, runtime.live.now());
    await enableEndpoint(runtime.redis, configuration, main().id);
    await runtime.live.refresh();
    start();
    await queueChanges(1);
    const states = async () => (await deliveriesOf(runtime, main())).map(({ state }) => state);
    await eventually(async () => !(await states()).includes("queued"), "the new one is recorded");
    expect((await states()).sort()).toEqual(["delivered", "failed", "failed"]);
    expect(receivers[0]?.requests).toHaveLength(1);
  });
});

test("invariant 10: a delivery whose 30 days end before it is delivered has failed, and the ledger balances", async () => {
  await queueChanges(4);
  const { redis, live } = runtime;
  const { delivery, queue } = webhookKeys(acme());
  const second = endpointOf(runtime, "second").id;
  const [answered, waiting] = await lease(2);
  const [dropped] = await lease(1, { leaseMs: 1 });
  const [queued, drained] = [
    await redis.lIndex(queue(main().id), -1),
    await redis.lIndex(queue(second), -1),
  ];
  if (!answered || !waiting || !dropped || !queued || !drained) throw new Error("too few");
  await finish(waiting, { state: "waiting", nextAttemptAtMs: live.now() });
  const gone = [answered, waiting, dropped].map(({ deliveryId }) => deliveryId);
  await redis.del([...gone, queued, drained].map(delivery));
  await finish(answered, { state: "delivered" });
  await drainQueues(redis, acme(), [second], "switched off");
  start();
  const balance = await eventually(async () => {
    const read = await readBalance(redis, live.configuration());
    return read.pending === 0 && read;
  }, "nothing waits");
  expect(balance.difference.webhooks).toBe(0);
  expect(balance.sent).toBe(8);
  expect(await redis.exists([...gone, queued, drained].map(delivery))).toBe(0);
});

test("a full queue makes further deliveries fail at once, replayable", async () => {
  await queueChanges(1);
  const { redis, live } = runtime;
  const { queue } = webhookKeys(acme());
  const before = await redis.lLen(queue(main().id));
  const shipmentId = await newShipment(runtime);
  const decisions = [1, 2, 3].map((n) => ({
    shipmentId,
    channelId: main().channelId,
    eventId: `evt_${n}`,
    entryId: `${n}-0`,
    fact: {
      key: `fact-${n}`,
      occurredAtMs: 0,
      receivedAtMs: 0,
      courierStatus: "In transito",
      place: null,
      status: "IN_TRANSIT" as const,
      detail: 0,
    },
    verdicts: [{ endpointId: main().id, trigger: "every_event", verdict: "send" }] as const,
  }));
  const made = await recordDecisions(redis, decisions, live.now(), before + 2);
  expect(made).toHaveLength(3);
  const found = await deliveriesOf(runtime, main());
  const reported = decisions.map(({ eventId }) => found.find((one) => one.eventId === eventId));
  expect(reported).toMatchObject([
    { state: "queued", reason: null },
    { state: "queued", reason: null },
    { state: "failed", reason: "lane full" },
  ]);
  expect((await readBalance(redis, live.configuration())).failed).toBe(1);
});

test("what is leased ahead of a slot waits until one is free", async () => {
  await queueChanges(4);
  const kept = receivers.map(hold);
  const begun = () => kept.reduce((sum, { held }) => sum + held.length, 0);
  const { leases } = webhookKeys(acme());
  start({ inFlight: 2, slowMs: 60_000 });
  await eventually(async () => (await runtime.redis.zCard(leases)) === 3, "one is leased ahead");
  await eventually(() => begun() === 2, "all slots are taken");
  const sent = () => receivers.reduce((sum, { requests }) => sum + requests.length, 0);
  expect(sent()).toBe(2);
  kept
    .find(({ held }) => held.length > 0)
    ?.held.shift()
    ?.end();
  await eventually(() => begun() === 2 && sent() === 3, "the one ahead has the free slot");
  await eventually(async () => (await runtime.redis.zCard(leases)) === 3, "the next one is leased");
  expect(sent()).toBe(3);
  for (const { release } of kept) release();
  await eventually(
    () => receivers.every(({ requests }) => requests.length === 4),
    "all are sent, each once",
  );
});

test("a stopped deliverer leaves nothing under way", async () => {
  await queueChanges(20);
  const [receiver] = receivers;
  if (!receiver) throw new Error("no receiver");
  const { held, release } = hold(receiver);
  const deps = sendDeps(runtime);
  const deliverer = startDeliverer({ redis: runtime.redis, log: runtime.log, ...deps });
  await eventually(() => held.length > 0, "some are under way");
  const stopped = deliverer.stop();
  release();
  await stopped;
  expect(await runtime.redis.exists(webhookKeys(acme()).leases)).toBe(0);
  deps.transport.close();
});

test("what is under way for longer than its lease is not sent twice", async () => {
  await queueChanges(1);
  const [slow] = receivers;
  if (!slow) throw new Error("no receiver");
  // Three renewals each: longer than a busy machine holds up this process.
  const leaseMs = 1_500;
  const { held, release } = hold(slow);
  start({ leaseMs });
  start({ leaseMs });
  await eventually(() => held.length === 1, "it is under way");
  const fromMs = performance.now();
  await eventually(() => performance.now() - fromMs > 4 * leaseMs, "four leases' time passes");
  expect(slow.requests).toHaveLength(1);
  release();
});

/** Another process: it is given what is queued and what has ended, and keeps that. It runs by itself, since this one stands still. */
const OTHER = `
  import { createLog } from "#core/platform/process/log.ts";
  import { connectRedis } from "#core/platform/redis/client.ts";
  import { takeLeases } from "#core/webhooks/store/deliveries/leases.ts";
  const [address, partition, endsAfterMs] = process.argv.slice(-3);
  const redis = await connectRedis(address, createLog("error"));
  await Bun.sleep(Number(endsAfterMs));
  const share = { partition: Number(partition), wanted: 100, wantedFailing: 100, wantedSilent: 0 };
  const perEndpoint = { startConcurrency: 100, perFailingEndpoint: 100, perSilentEndpoint: 0 };
  const terms = { leaseMs: 600_000, ...perEndpoint, silent: new Set(), retries: "last" };
  const endpoint = () => ({ companyId: 1, most: 100, mostInAll: null, maxPerSecond: null });
  const company = { endpoint, capacityOfCompany: () => 100 };
  const take = () => takeLeases(redis, [share], { ...terms, ...company }, Date.now());
  let taken = 0;
  for (let last = -1; taken > last; ) {
    last = taken;
    taken += (await take()).slots.length;
  }
  console.log(taken);
  await redis.close();`;

test("a process that stood still does not begin what another one has been given meanwhile", async () => {
  const leaseMs = 3_000;
  await queueChanges(3);
  const holding = receivers.map(hold);
  const begun = () => holding.flatMap(({ held }) => held).length;
  // Two begin, and a third one waits for a slot.
  start({ inFlight: 2, leaseMs, slowMs: 600_000, startConcurrency: 100 });
  const { leases } = webhookKeys(acme());
  await eventually(
    async () => begun() === 2 && (await runtime.redis.zCard(leases)) === 3,
    "three are leased",
  );
  const given = [runtime.config.redisUrl, acme(), leaseMs].map(String);
  const other = Bun.spawnSync([process.execPath, "-e", OTHER, ...given], { stderr: "inherit" });
  expect(other.stdout.toString().trim()).toBe("6");
  for (const { release } of holding) release();
  await queueChanges(1);
  await eventually(async () => {
    const all = await Promise.all([main(), endpointOf(runtime, "second")].map(deliveredTo));
    return all.flat().length === 2;
  }, "what was queued later is sent");
  expect(receivers.flatMap(({ requests }) => requests)).toHaveLength(2 + 2);
});

async function deliveredTo(endpoint: ReturnType<typeof main>) {
  return (await deliveriesOf(runtime, endpoint)).filter(({ state }) => state === "delivered");
}
