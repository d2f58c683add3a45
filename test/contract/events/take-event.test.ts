/** take-event.lua: a message of one event in one step does what admission, lookup and claim do one after the other, or nothing. */
import { beforeEach, describe, expect, test } from "bun:test";
import { takeCourierRate } from "#core/events/store/courier-rate.ts";
import {
  claimEvents,
  decodeLoggedEvent,
  encodeLoggedEvent,
  lookUpEvents,
  splitEvents,
} from "#core/events/store/event-log.ts";
import { ownReferences, registerReferences } from "#core/events/store/references.ts";
import { seenBucket, seenLayout } from "#core/events/store/seen.ts";
import { soleReference, takeEvent } from "#core/events/store/take-event.ts";
import { eventKeys, eventLogs, SYSTEM_KEY, trackingReference } from "#core/platform/redis/keys.ts";
import { event } from "#test/support/clients/courier.ts";
import { forAll } from "#test/support/for-all.ts";
import { openTestRedis } from "#test/support/servers/servers.ts";

const COURIER = "GLS_ITA";
const NOW_MS = Date.UTC(2026, 10, 20);
const VERSION = 7;
const RATE = { subject: COURIER, limit: { perSecond: 1, burst: 3 } };
const HIGH_WATER = 1_600;

const store = forAll(openTestRedis);
beforeEach(async () => {
  await store.redis.flushAll();
  await store.redis.hSet(SYSTEM_KEY, "version", String(VERSION));
});

async function register(trackingNumber: string, shipmentId: number): Promise<void> {
  const owner = { companyId: 1, channelId: 1, isPlaceholder: false, orderReference: null };
  const reference = trackingReference(COURIER, trackingNumber);
  await registerReferences(store.redis, [{ ...owner, shipmentId, shipDay: 20_000, reference }]);
}

const one = event({ trackingNumber: "TN-1" });
const seen = seenBucket(COURIER, one.eventId);

async function take({ version = VERSION, highWater = HIGH_WATER, sent = one } = {}) {
  const layout = await seenLayout(store.redis, NOW_MS, 1_000);
  const reference = soleReference(sent, ownReferences(COURIER, sent));
  if (reference === null) throw new Error("its candidates have to be judged");
  const { factKey } = seen;
  const about = { courier: COURIER, factKey, receivedAtMs: NOW_MS, messageIndex: 0, event: sent };
  const terms = { version, rate: RATE, layout, nowMs: NOW_MS };
  return takeEvent(store.redis, terms, { ...about, messageId: "m-1", seen, reference }, highWater);
}

/** Lines of the event log. */
async function logged(): Promise<string[]> {
  const entries = await Promise.all(eventLogs().map((log) => store.redis.xRange(log, "-", "+")));
  return entries.flat().flatMap((entry) => {
    return entry ? splitEvents(entry.message).map(({ e = "" }) => e) : [];
  });
}

const ledger = () => store.redis.hGetAll(eventKeys(seen.partition).ledger);
const requestsLeft = async () =>
  (await takeCourierRate(store.redis, COURIER, RATE.limit, NOW_MS)).remaining + 1;

/** Nothing was done: the event may still be claimed, and no request was counted. */
async function expectNothingDone(): Promise<void> {
  expect(await logged()).toEqual([]);
  expect(await ledger()).toEqual({});
  const layout = await seenLayout(store.redis, NOW_MS, 1_000);
  expect(await lookUpEvents(store.redis, layout, [seen])).toEqual(["not_known"]);
  expect(await requestsLeft()).toBe(RATE.limit.burst);
}

test("an event of a single shipment is claimed, counted and logged as by claim.lua, and again it is a DUPLICATE", async () => {
  await register("TN-1", 17);
  const allowed = { allowed: true, limit: 3, retryAfterMs: 0 };
  expect(await take()).toEqual({ outcome: "claimed", rate: { ...allowed, remaining: 2 } });
  const [line = ""] = await logged();
  const about = { courier: COURIER, factKey: seen.factKey, receivedAtMs: NOW_MS, messageIndex: 0 };
  const whole = { ...about, event: one, messageId: "m-1", shipmentId: 17 };
  expect(line).toBe(encodeLoggedEvent(whole));
  expect(decodeLoggedEvent(line)).toEqual(whole);
  const ofTake = await ledger();
  expect(await take()).toEqual({ outcome: "known", rate: { ...allowed, remaining: 1 } });
  expect(await logged()).toHaveLength(1);

  await store.redis.del(eventKeys(seen.partition).ledger);
  const layout = await seenLayout(store.redis, NOW_MS, 1_000);
  const terms = { layout, highWater: HIGH_WATER, courier: COURIER, nowMs: NOW_MS };
  const other = { seen: { ...seen, member: "1" }, entry: line };
  expect(await claimEvents(store.redis, terms, [other])).toEqual(["claimed"]);
  expect(ofTake).toEqual(await ledger());
});

test("document 2, Limits: without a request left nothing is claimed, and the next one is promised", async () => {
  await register("TN-1", 17);
  await takeCourierRate(store.redis, COURIER, RATE.limit, NOW_MS);
  await takeCourierRate(store.redis, COURIER, RATE.limit, NOW_MS);
  await takeCourierRate(store.redis, COURIER, RATE.limit, NOW_MS);
  const rate = { allowed: false, limit: 3, remaining: 0, retryAfterMs: 1_000 };
  expect(await take()).toEqual({ outcome: null, rate });
  expect(await logged()).toEqual([]);
  const layout = await seenLayout(store.redis, NOW_MS, 1_000);
  expect(await lookUpEvents(store.redis, layout, [seen])).toEqual(["not_known"]);
});

test("a log at its mark takes nothing", async () => {
  await register("TN-1", 17);
  expect(await take({ highWater: 0 })).toMatchObject({ outcome: "log_full" });
  expect(await logged()).toEqual([]);
});

describe("nothing is done", () => {
  test("under another configuration", async () => {
    await register("TN-1", 17);
    expect(await take({ version: VERSION - 1 })).toBeNull();
    await expectNothingDone();
  });

  test("for a number that finds no shipment, or several", async () => {
    expect(await take()).toBeNull();
    await register("TN-1", 17);
    await register("TN-1", 33);
    expect(await take()).toBeNull();
    await expectNothingDone();
  });

  test("for a number that 0.1.0 registered as it was given", async () => {
    const sent = { ...one, trackingNumber: "tn-1" };
    await register("TN-1", 17);
    const { asGiven } = trackingReference(COURIER, "tn-1");
    await store.redis.set(asGiven?.key ?? "", "[33,1,0,null]");
    expect(await take({ sent })).toBeNull();
    await expectNothingDone();
    await store.redis.del(asGiven?.key ?? "");
    expect(await take({ sent })).toMatchObject({ outcome: "claimed" });
  });
});

test("an event that names more than its number, or announces another one, has to be judged", () => {
  const references = (sent: typeof one) => soleReference(sent, ownReferences(COURIER, sent));
  expect(references(one)?.key).toBe(trackingReference(COURIER, "TN-1").key);
  expect(references({ ...one, senderAccount: "A" })).not.toBeNull();
  expect(references({ ...one, externalId: "O-1" })).toBeNull();
  expect(references({ ...one, externalId: "O-1", senderAccount: "A" })).toBeNull();
  const change = { newTrackingNumber: "TN-2" };
  expect(references({ ...one, trackingNumberChange: change } as typeof one)).toBeNull();
});
