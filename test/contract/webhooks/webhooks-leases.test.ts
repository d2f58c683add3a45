/** Leases where a great many endpoints wait, and where processes contend for the same ones. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { chunks } from "#core/platform/process/chunks.ts";
import { companyPartition, webhookKeys } from "#core/platform/redis/keys.ts";
import { type Decision, recordDecisions } from "#core/webhooks/store/deliveries/deliveries.ts";
import { followFreshDeliveries } from "#core/webhooks/store/deliveries/fresh-deliveries.ts";
import { type Leased, readLeased } from "#core/webhooks/store/deliveries/leases.ts";
import { clearFailing } from "#core/webhooks/store/endpoints.ts";
import type { TestRuntime } from "#test/support/product/runtime.ts";
import {
  endpointOf,
  leaseRound,
  newShipment,
  openWebhookRuntime,
  recordResults,
} from "#test/support/product/webhooks.ts";

const PER_CHANGE = 5;
const WANTED = 100;
const LIMITS = {
  leaseMs: 60_000,
  perEndpoint: 10,
  perFailingEndpoint: 2,
  retries: "last",
} as const;

let runtime: TestRuntime;
let shipmentId: number;

beforeEach(async () => {
  runtime = await openWebhookRuntime([{ url: "https://localhost:1/", trigger: "every_event" }]);
  shipmentId = await newShipment(runtime);
});

afterEach(() => runtime.end());

const main = () => endpointOf(runtime, "main");

function partition(): number {
  const { channels } = runtime.live.configuration();
  return companyPartition(channels.get(main().channelId)?.companyId ?? 0);
}

let changes = 0;

/** One delivery for each of these endpoints. */
async function queue(endpointIds: readonly string[]): Promise<void> {
  const decisions = chunks(endpointIds, PER_CHANGE).map((ids): Decision => {
    changes += 1;
    const text = { key: `fact-${changes}`, courierStatus: "In transito", place: null };
    const fact = { ...text, occurredAtMs: 0, receivedAtMs: 0, status: "IN_TRANSIT", detail: 0 };
    return {
      shipmentId,
      channelId: main().channelId,
      eventId: `evt_${changes}`,
      entryId: `${changes}-0`,
      fact: fact as Decision["fact"],
      verdicts: ids.map((endpointId) => ({ endpointId, trigger: "every_event", verdict: "send" })),
    };
  });
  await recordDecisions(runtime.redis, decisions, runtime.live.now());
}

function lease(wantedFailing: number): Promise<readonly Leased[]> {
  return leaseRound(runtime, [{ partition: partition(), wanted: WANTED, wantedFailing }], LIMITS);
}

/** Rounds until one hands something out. */
async function leaseWithin(rounds: number, wantedFailing: number): Promise<readonly Leased[]> {
  for (let round = 0; round < rounds; round += 1) {
    const leased = await lease(wantedFailing);
    if (leased.length > 0) return leased;
  }
  throw new Error(`nothing was handed out in ${rounds} rounds`);
}

async function setFailing(ids: readonly string[]): Promise<void> {
  const rows = ids.map((value) => ({ value, score: 1 }));
  for (const part of chunks(rows, 1_000)) {
    await runtime.redis.zAdd(webhookKeys(partition()).failing, part);
  }
}

test.each([4_001, 10_000])(
  "%i failing endpoints without a slot hold up no healthy one, and none of them is forgotten",
  async (count) => {
    const { redis, live } = runtime;
    const { firstRing } = webhookKeys(partition());
    const failing = Array.from({ length: count }, (_, n) => `ep-${n}`);
    await queue(failing);
    await queue([main().id]);
    // They began to fail when they stood in the ring already, all of them before the healthy one.
    await setFailing(failing);
    const [first] = await leaseWithin(Math.ceil(count / WANTED) + 1, 0);
    expect(first?.endpointId).toBe(main().id);
    expect(await redis.zCard(firstRing)).toBe(count);
    await queue([main().id]);
    expect((await lease(0)).map(({ endpointId }) => endpointId)).toEqual([main().id]);

    const all = new Map<string, Leased>();
    while (all.size < count) {
      const leased = await leaseWithin(1, WANTED);
      for (const one of leased) all.set(one.deliveryId, one);
    }
    expect(new Set([...all.values()].map(({ endpointId }) => endpointId))).toEqual(
      new Set(failing),
    );
    expect(await redis.zCard(firstRing)).toBe(0);

    const wait = {
      attempt: null,
      state: "waiting",
      nextAttemptAtMs: live.now(),
      reason: null,
    } as const;
    await recordResults(
      runtime,
      [...all.values()].map((of) => ({ of, ...wait })),
    );
    if (first) await recordResults(runtime, [{ of: first, ...wait, nextAttemptAtMs: live.now() }]);
    expect((await leaseWithin(1, 0)).map(({ deliveryId }) => deliveryId)).toEqual([
      first?.deliveryId ?? "",
    ]);
    expect((await leaseWithin(1, WANTED)).length).toBe(WANTED);
  },
  300_000,
);

test("one delivery is among the first two that are handed out, however many another endpoint has queued before it", async () => {
  await queue(Array.from({ length: 1_000 }, () => "ep-loud"));
  await queue([main().id]);
  const share = { partition: partition(), wanted: 4, wantedFailing: 4 };
  const owners = (await leaseRound(runtime, [share], LIMITS)).map(({ endpointId }) => endpointId);
  expect(owners).toHaveLength(4);
  expect(owners.indexOf(main().id)).toBeWithin(0, 2);
});

describe("deliveries that this process has just queued", () => {
  const share = () => ({ partition: partition(), wanted: WANTED, wantedFailing: 0 });

  test("are leased without a look, with their shipments, and what others have queued with the next one", async () => {
    await queue(["ep-of-another-process"]);
    let told = 0;
    const { take, close } = followFreshDeliveries(runtime.redis, () => {
      told += 1;
    });
    await queue([main().id]);
    await queue([main().id]);
    close();
    await queue([main().id]);
    expect(told).toBe(2);
    const fresh = take();
    const leased = await leaseRound(runtime, [share()], LIMITS, fresh);
    expect(leased.map(({ endpointId }) => endpointId)).toEqual([main().id, main().id, main().id]);
    expect(leased.map((one) => one.shipment()?.record.id)).toEqual([
      shipmentId,
      shipmentId,
      shipmentId,
    ]);
    expect([...fresh.shipments.values()]).toEqual([shipmentId, shipmentId]);
    expect(take().shipments.size).toBe(0);
    const others = await lease(0);
    expect(others.map(({ endpointId }) => endpointId)).toEqual(["ep-of-another-process"]);
  });

  test("a hint that is wrong changes nothing that is sent", async () => {
    await queue([main().id]);
    const endpoints = new Map([[partition(), new Set([main().id, "ep-unknown"])]]);
    const [first] = await lease(0);
    const shipments = new Map([[first?.deliveryId ?? "", shipmentId + 1_000_000]]);
    const { leased, gone } = await readLeased(runtime.redis, first ? [first] : [], shipments);
    expect(leased.map((one) => one.shipment()?.record.id)).toEqual([shipmentId]);
    expect(gone).toEqual([]);
    const none = { endpoints, shipments };
    expect(await leaseRound(runtime, [share()], LIMITS, none)).toEqual([]);
  });

  test("the send loop is told about 200 of them, and looks for the others", async () => {
    const { take, close } = followFreshDeliveries(runtime.redis, () => {});
    await queue(Array.from({ length: 201 }, (_, n) => `ep-${n}`));
    close();
    expect(take().shipments.size).toBe(200);
  });
});

test("an endpoint that has recovered is among the healthy ones immediately", async () => {
  const failing = Array.from({ length: 300 }, (_, n) => `ep-${n}`);
  await setFailing([...failing, main().id]);
  await queue([...failing, main().id]);
  expect(await lease(0)).toEqual([]);
  await clearFailing(runtime.redis, runtime.live.configuration(), main().id, null);
  expect((await lease(0)).map(({ endpointId }) => endpointId)).toEqual([main().id]);
});

test.each(["last", "first"] as const)(
  "a silent endpoint has so many under way and no more, whatever its slots, with retries %s",
  async (retries) => {
    const { id } = main();
    const { inFlight, leases } = webhookKeys(partition());
    const most = 5;
    await queue(Array.from({ length: 30 }, () => id));
    const terms = { ...LIMITS, perEndpoint: 3, perSilentEndpoint: most, retries };
    const silent = new Set([id]);
    const share = { partition: partition(), wanted: 2, wantedFailing: 2, wantedSilent: 4 };
    const placed = await leaseRound(runtime, [share], terms);
    expect(placed).toHaveLength(2);
    const rounds = [
      await leaseRound(runtime, [share], { ...terms, silent }),
      await leaseRound(runtime, [share], { ...terms, silent }),
      await leaseRound(runtime, [share], { ...terms, silent }),
    ];
    expect(rounds.map(({ length }) => length)).toEqual([4, 1, 0]);
    const under = rounds.flat();
    expect(under.every((one) => one.silent) && placed.every((one) => !one.silent)).toBe(true);
    expect(await runtime.redis.hGetAll(inFlight)).toEqual({ [id]: "2", [`w ${id}`]: "5" });
    const wait = { attempt: null, state: "waiting", nextAttemptAtMs: 1, reason: null } as const;
    const [one, ...others] = under;
    if (!one) throw new Error("nothing leased");
    await recordResults(runtime, [{ of: one, ...wait }]);
    expect(await runtime.redis.hGetAll(inFlight)).toEqual({ [id]: "2", [`w ${id}`]: "4" });
    const [again, ...more] = await leaseRound(runtime, [share], { ...terms, silent });
    expect(again?.attemptsMade).toBe(0);
    expect(again?.deliveryId === one.deliveryId).toBe(retries === "first");
    expect(more).toEqual([]);
    if (!again) throw new Error("nothing leased");
    const results = [...placed, ...others, again].map((of) => ({ of, ...wait }));
    await recordResults(runtime, results);
    expect(await runtime.redis.exists([inFlight, leases])).toBe(0);
  },
);

test("processes that look at the same time lease every delivery once, and no endpoint starves", async () => {
  const endpoints = Array.from({ length: 60 }, (_, n) => `ep-${n}`);
  for (let n = 0; n < 10; n += 1) await queue(endpoints);
  const given: string[][] = [[], [], []];
  const share = { partition: partition(), wanted: 20, wantedFailing: 20 };
  for (let round = 0; round < 100 && given.flat().length < 600; round += 1) {
    await Promise.all(
      given.map(async (own) => {
        for (const { deliveryId } of await leaseRound(runtime, [share], LIMITS))
          own.push(deliveryId);
      }),
    );
  }
  expect(new Set(given.flat()).size).toBe(600);
  expect(given.flat()).toHaveLength(600);
  for (const own of given) expect(own.length).toBeGreaterThan(100);
});
