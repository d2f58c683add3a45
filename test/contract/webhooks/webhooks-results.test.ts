/**
 * What one call of many decisions or results leaves: of each endpoint its queues, its log and its health, of an hour its attempts.
 */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { companyPartition, FAILING_FROM, webhookKeys } from "#core/platform/redis/keys.ts";
import { hourOf } from "#core/platform/time/hour-of.ts";
import { type Decision, recordDecisions } from "#core/webhooks/store/deliveries/deliveries.ts";
import type { Finished } from "#core/webhooks/store/deliveries/finish-deliveries.ts";
import type { Leased } from "#core/webhooks/store/deliveries/leases.ts";
import type { TestRuntime } from "#test/support/product/runtime.ts";
import {
  beginHour,
  endpointOf,
  leaseRound,
  newShipment,
  openWebhookRuntime,
  recordResults,
} from "#test/support/product/webhooks.ts";

const LIMITS = {
  leaseMs: 60_000,
  perEndpoint: 10,
  perFailingEndpoint: 10,
  retries: "last",
} as const;

let runtime: TestRuntime;
let shipmentId: number;
let partition: number;
let keys: ReturnType<typeof webhookKeys>;

beforeEach(async () => {
  runtime = await openWebhookRuntime([{ url: "https://localhost:1/", trigger: "every_event" }]);
  await beginHour(runtime);
  shipmentId = await newShipment(runtime);
  const { channels } = runtime.live.configuration();
  partition = companyPartition(channels.get(endpointOf(runtime, "main").channelId)?.companyId ?? 0);
  keys = webhookKeys(partition);
});

afterEach(() => runtime.end());

let changes = 0;

/** One change, to be sent to each of these. */
function decisionFor(...endpointIds: readonly string[]): Decision {
  changes += 1;
  const text = { key: `fact-${changes}`, courierStatus: "In transito", place: null };
  const fact = { ...text, occurredAtMs: 0, receivedAtMs: 0, status: "IN_TRANSIT", detail: 0 };
  return {
    shipmentId,
    channelId: endpointOf(runtime, "main").channelId,
    eventId: `evt_${changes}`,
    entryId: `${changes}-0`,
    fact: fact as Decision["fact"],
    verdicts: endpointIds.map((endpointId) => ({
      endpointId,
      trigger: "every_event",
      verdict: "send",
    })),
  };
}

/** One delivery for each, in turn; leased. */
async function leased(...endpointIds: readonly string[]): Promise<readonly Leased[]> {
  const decisions = endpointIds.map((endpointId) => decisionFor(endpointId));
  await recordDecisions(runtime.redis, decisions, runtime.live.now());
  const share = { partition, wanted: endpointIds.length, wantedFailing: endpointIds.length };
  const found = await leaseRound(runtime, [share], LIMITS);
  return found.toSorted((one, other) => (one.deliveryId < other.deliveryId ? -1 : 1));
}

/** @param state what the attempt leads to; a failed one was answered 500 */
function result(of: Leased | undefined, state: "delivered" | "waiting" | "failed"): Finished {
  if (!of) throw new Error("nothing leased");
  const isRight = state === "delivered";
  return {
    of,
    state,
    reason: state === "failed" ? "attempts used up" : null,
    nextAttemptAtMs: state === "waiting" ? runtime.live.now() + 60_000 : null,
    attempt: {
      generation: of.generation,
      attempt: of.attemptsMade + 1,
      atMs: runtime.live.now(),
      httpStatus: isRight ? 200 : 500,
      durationMs: 7,
      error: isRight ? null : "status 500",
      responseSnippet: null,
      responseHeaders: null,
      request: null,
    },
  };
}

/** A result without an attempt: nothing was sent. */
function unsent(of: Leased | undefined): Finished {
  if (!of) throw new Error("nothing leased");
  return { of, attempt: null, state: "waiting", nextAttemptAtMs: 1, reason: null };
}

const hourKey = (id: string) => keys.attempts(id, hourOf(runtime.live.now()));
const hourOfEndpoint = (id: string) => runtime.redis.hGetAll(hourKey(id));
const failingSince = (id: string) => runtime.redis.zScore(keys.failing, id);

test("results of several endpoints are each recorded with their own, and what is left under way stays", async () => {
  const { redis } = runtime;
  const all = await leased("a", "a", "a", "b", "b", "c");
  const of = (id: string) => all.filter(({ endpointId }) => endpointId === id);
  const [a, b, c] = [of("a"), of("b"), of("c")];
  const good = (one: Leased | undefined) =>
    ({ ...result(one, "delivered"), sign: "good" }) as const;
  await recordResults(runtime, [
    ...[good(a[0]), good(a[1])],
    ...[result(b[0], "waiting"), result(b[1], "failed"), good(c[0])],
  ]);
  expect(await redis.hGetAll(keys.inFlight)).toEqual({ a: "1" });
  expect(await redis.zCard(keys.leases)).toBe(1);
  // Three were under way, half at least of what an endpoint begins with; one is less.
  expect(await redis.hGet(keys.concurrencies, "a")).toMatch(/^8\.000 /);
  expect(await redis.hGet(keys.concurrencies, "c")).toBeNull();
  const fields = await Promise.all(["c", "b"].map(hourOfEndpoint));
  const [bucket = "", failed = ""] = fields.flatMap((hour) =>
    Object.keys(hour).filter((name) => name.includes(" ")),
  );
  expect(await hourOfEndpoint("a")).toEqual({ success: "2", [bucket]: "2" });
  expect(await hourOfEndpoint("b")).toEqual({ failure: "2", [failed]: "2" });
  expect(await hourOfEndpoint("c")).toEqual({ success: "1", [bucket]: "1" });
  expect(await redis.zRange(keys.retries("b"), 0, -1)).toEqual([b[0]?.deliveryId ?? ""]);
  expect(await redis.zRange(keys.failed("b"), 0, -1)).toEqual([b[1]?.deliveryId ?? ""]);
  expect(await redis.hmGet(keys.ledger, ["webhook:delivered", "webhook:failed"])).toEqual([
    "3",
    "1",
  ]);
  const states = await Promise.all(
    all.map((one) => redis.hGet(keys.delivery(one.deliveryId), "s")),
  );
  expect(states.filter((state) => state === "delivered")).toHaveLength(3);
  await recordResults(runtime, [unsent(a[2])]);
  expect(await redis.exists([keys.inFlight, keys.leases])).toBe(0);
  // Its lease has ended by the first result.
  await recordResults(runtime, [result(a[2], "delivered")]);
  expect(await redis.hGet(keys.ledger, "webhook:delivered")).toBe("3");
  expect(await redis.zRange(keys.retries("a"), 0, -1)).toEqual([a[2]?.deliveryId ?? ""]);
});

test("an endpoint fails from its first failure until a success, in the order in which results come", async () => {
  const { redis, live } = runtime;
  const results = async (...states: ("delivered" | "failed" | "unsent")[]) => {
    const all = await leased(...states.map(() => "a"));
    const list = states.map((state, at) =>
      state === "unsent" ? unsent(all[at]) : result(all[at], state),
    );
    await recordResults(runtime, list);
  };
  await results("unsent");
  expect(await failingSince("a")).toBeNull();
  await results("delivered");
  expect(await failingSince("a")).toBeNull();
  await results("delivered", "failed");
  const since = live.now();
  expect(await failingSince("a")).toBeWithin(since - 5_000, since + 1);
  await redis.zAdd(keys.failing, { value: "a", score: 5 });
  await redis.sAdd(keys.warned, "a");
  await redis.hSet(keys.alerted, "a", "5");
  await results("failed", "unsent");
  expect(await failingSince("a")).toBe(5);
  expect(await redis.sIsMember(keys.warned, "a")).toBe(1);
  expect(await redis.hExists(keys.lastFailures, "a")).toBe(1);
  expect([await redis.hGet(keys.alerted, "a"), await redis.xLen(keys.alerts)]).toEqual(["5", 0]);
  await results("failed", "delivered");
  expect(await failingSince("a")).toBeNull();
  expect(await redis.exists([keys.warned, keys.lastFailures, keys.alerted])).toBe(0);
  expect(await redis.xLen(keys.alerts)).toBe(1);
  await redis.sAdd(keys.warned, "a");
  await redis.zAdd(keys.failing, { value: "a", score: 5 });
  // Cured, and failing again: warned of again, since the moment of this failure.
  await results("delivered", "failed", "failed");
  expect(await redis.exists(keys.warned)).toBe(0);
  expect(await failingSince("a")).toBeGreaterThan(5);
});

test("an hour's attempts have an end from the first of them on, which later ones do not put off", async () => {
  const { redis } = runtime;
  const [first, second] = await leased("a", "a");
  await recordResults(runtime, [result(first, "delivered")]);
  const hour = hourKey("a");
  expect(await redis.pTTL(hour)).toBeGreaterThan(0);
  await redis.pExpire(hour, 1_000_000);
  await recordResults(runtime, [result(second, "delivered")]);
  expect(await redis.pTTL(hour)).toBeLessThanOrEqual(1_000_000);
});

test("attempts wait for the analytics up to a limit, and what is past it is counted as dropped", async () => {
  const { redis } = runtime;
  const [one, two, three, four, five] = await leased("a", "a", "a", "a", "a");
  const counts = () => redis.hGetAll(keys.attemptCounts);
  if (!three) throw new Error("nothing leased");
  await recordResults(runtime, [unsent(three)], 2);
  expect([await counts(), await redis.xLen(keys.attemptLog)]).toEqual([{}, 0]);
  await recordResults(runtime, [result(one, "delivered"), result(two, "delivered")], 2);
  expect([await counts(), await redis.xLen(keys.attemptLog)]).toEqual([{ logged: "2" }, 1]);
  await recordResults(runtime, [unsent(five)], 1);
  expect(await counts()).toEqual({ logged: "2" });
  await recordResults(runtime, [result(four, "delivered")], 2);
  expect([await counts(), await redis.xLen(keys.attemptLog)]).toEqual([
    { logged: "2", dropped: "1" },
    1,
  ]);
  await redis.hSet(keys.attemptCounts, "taken", "1");
  const [six, seven] = await leased("a", "a");
  await recordResults(runtime, [unsent(seven)], 0);
  expect(await counts()).toEqual({ logged: "2", dropped: "1", taken: "1" });
  await recordResults(runtime, [result(six, "delivered")], 2);
  expect(await counts()).toEqual({ logged: "3", dropped: "1", taken: "1" });
});

test("an endpoint with deliveries left returns to the rings, a failing one behind the healthy ones, a paused one not", async () => {
  const { redis, live } = runtime;
  const [healthy] = await leased("h");
  const [failing] = await leased("f");
  const [paused] = await leased("p");
  const [held] = await leased("q");
  for (const id of ["h", "f", "p", "q"]) await redis.rPush(keys.queue(id), "left");
  await redis.zAdd(keys.pauses, { value: "p", score: live.now() + 60_000 });
  const pausing = { ...result(held, "delivered"), pausedUntilMs: live.now() + 60_000 } as Finished;
  await recordResults(runtime, [
    ...[result(healthy, "delivered"), result(failing, "failed")],
    ...[result(paused, "delivered"), pausing],
  ]);
  const ring = await redis.zRangeWithScores(keys.firstRing, 0, -1);
  expect(ring.map(({ value }) => value)).toEqual(["h", "f"]);
  expect(ring.map(({ score }) => score >= FAILING_FROM)).toEqual([false, true]);
  expect(await redis.zRange(keys.pauses, 0, -1)).toEqual(["p", "q"]);
});

test("an endpoint that returns stands behind one whose first delivery was queued before", async () => {
  const { redis } = runtime;
  const [held] = await leased("a");
  await recordDecisions(redis, [decisionFor("z")], runtime.live.now());
  await redis.rPush(keys.queue("a"), "left");
  await recordResults(runtime, [result(held, "delivered")]);
  expect(await redis.zRange(keys.firstRing, 0, -1)).toEqual(["z", "a"]);
});

const LIFE_MS = 30 * 86_400_000;

test("decisions of several endpoints queue each its own, in order, and live as long as their deliveries", async () => {
  const { redis, live } = runtime;
  await redis.zAdd(keys.failing, { value: "c", score: 1 });
  const nowMs = live.now();
  const old = { value: "old", score: nowMs - LIFE_MS };
  await redis.zAdd(keys.log("a"), [old, { value: "young", score: old.score + 1 }]);
  const decisions = [decisionFor("a", "b"), decisionFor("a", "c"), decisionFor("b")];
  const toNobody = decisionFor();
  expect(await recordDecisions(redis, [...decisions, toNobody], nowMs)).toHaveLength(4);
  expect(await recordDecisions(redis, decisions, nowMs)).toEqual([]);
  const lengths = await Promise.all(["a", "b", "c"].map((id) => redis.lLen(keys.queue(id))));
  expect(lengths).toEqual([2, 2, 1]);
  const logged = await Promise.all(["a", "b", "c"].map((id) => redis.zCard(keys.log(id))));
  expect(logged).toEqual([3, 2, 1]);
  expect(await redis.zScore(keys.log("a"), "old")).toBeNull();
  const ring = await redis.zRangeWithScores(keys.firstRing, 0, -1);
  expect(ring.map(({ value }) => value)).toEqual(["a", "b", "c"]);
  expect(ring.map(({ score }) => score >= FAILING_FROM)).toEqual([false, false, true]);
  expect(new Set(ring.map(({ score }) => score)).size).toBe(3);
  const queued = await redis.lRange(keys.queue("a"), 0, -1);
  const living = [keys.verdicts(shipmentId), keys.log("b"), keys.delivery(queued[0] ?? "")];
  for (const key of living) expect(await redis.pTTL(key)).toBeWithin(LIFE_MS - 60_000, LIFE_MS + 1);
  expect(await redis.hGet(keys.ledger, "webhook:send")).toBe("5");
  expect(await redis.exists(keys.failed("a"))).toBe(0);
});

test("a queue takes as many deliveries as it may, retries among them, and the next one fails at once", async () => {
  const { redis, live } = runtime;
  await redis.zAdd(keys.retries("a"), { value: "waits", score: 1 });
  const decisions = [decisionFor("a"), decisionFor("a"), decisionFor("a")];
  await recordDecisions(redis, decisions, live.now(), 3);
  expect(await redis.lLen(keys.queue("a"))).toBe(2);
  const [failed = ""] = await redis.zRange(keys.failed("a"), 0, -1);
  expect(await redis.hmGet(keys.delivery(failed), ["s", "r"])).toEqual(["failed", "lane full"]);
  expect(await redis.zCard(keys.failed("a"))).toBe(1);
  expect(await redis.hGet(keys.ledger, "webhook:failed")).toBe("1");
  await recordDecisions(redis, [decisionFor("a"), decisionFor("a")], live.now(), 4);
  expect(await redis.lLen(keys.queue("a"))).toBe(3);
  expect(await redis.zCard(keys.failed("a"))).toBe(2);
});
