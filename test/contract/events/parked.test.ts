/**
 * Document 2, "Unknown-tracking set-aside"; design, "Release of set-aside events": an event that was parked belongs to a
 * shipment only by its own references, judged by the same rule as a fresh one.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { advanceClock } from "#core/configuration/store/live.ts";
import type { CourierEvent } from "#core/events/rules/event.ts";
import { splitEvents } from "#core/events/store/event-log.ts";
import {
  CONFLICTS_PER_CALL,
  listConflicts,
  noteConflicts,
} from "#core/events/store/number-conflicts.ts";
import { PARKED_PER_REFERENCE } from "#core/events/store/parked.ts";
import { candidateOf, registerReferences } from "#core/events/store/references.ts";
import { type Consumer, startConsumer } from "#core/platform/log/consumer.ts";
import { type GroupName, readLags } from "#core/platform/log/streams.ts";
import { chunks } from "#core/platform/process/chunks.ts";
import {
  companyKeys,
  eventLogs,
  externalReference,
  shipmentPartition,
  trackingReference,
} from "#core/platform/redis/keys.ts";
import { readHistory, readHotShipments, readShipments } from "#core/shipments/store/shipments.ts";
import { startParkedExpiry } from "#processors/track/parked-expiry.ts";
import { referencesHandler } from "#processors/track/references.ts";
import { CHAIN_LIMIT, RELEASED_AT_ONCE } from "#processors/track/release.ts";
import { releaseParked, trackHandler } from "#processors/track/track.ts";
import { event, push } from "#test/support/clients/courier.ts";
import { eventually } from "#test/support/eventually.ts";
import { openTestPanel, type TestPanel } from "#test/support/product/panel.ts";
import type { TestRuntime } from "#test/support/product/runtime.ts";
import { openTracking, type Tracking } from "#test/support/product/tracking.ts";
import { recordCalls } from "#test/support/scripts/script-calls.ts";

const AT_REST = { received: 0, applied: 0, webhooks: 0 };
const UNKNOWN = ["UNKNOWN_TRACKING"];

let tracking: Tracking;
let runtime: TestRuntime;
let panel: TestPanel;
let { add, newNumber, send, settled, eventsOf } = {} as Tracking;

beforeAll(async () => {
  tracking = await openTracking();
  ({ runtime, add, newNumber, send, settled, eventsOf } = tracking);
  panel = await openTestPanel(runtime);
});

afterAll(async () => {
  await panel.end();
  await tracking.end();
});

const numbered = (trackingNumber: string, members: Partial<CourierEvent> = {}) =>
  event({ trackingNumber, occurredAt: "2026-11-10T08:00:00Z", ...members });

function byOrder(externalId: string, senderAccount: string): CourierEvent {
  const { trackingNumber: _, ...rest } = event({ externalId, senderAccount });
  return rest;
}

/** The ids of a shipment's events, sorted. */
const held = async (id: number) => ((await eventsOf(id))[0] ?? []).toSorted();
const idsOf = (...events: readonly CourierEvent[]) => events.map((one) => one.eventId).sort();

/** Whether any reference holds the event. */
async function isParked({ eventId }: CourierEvent): Promise<boolean> {
  const keys = await runtime.redis.keys("{t*}:p:*");
  const hashes = await Promise.all(keys.map((key) => runtime.redis.hGetAll(key)));
  return JSON.stringify(hashes).includes(eventId);
}

describe("an event that was parked is released", () => {
  test("to every shipment that has its number, with the first event of each, also across companies", async () => {
    const number = newNumber();
    const parked = numbered(number);
    expect(await send(parked)).toEqual(UNKNOWN);
    const ids = [await add(number), await add(number, "beta-it")];
    const [first = 0, second = 0] = ids;
    const before = await settled();
    const own = event({ trackingNumber: number, senderAccount: "ACC-1" });
    await send(own);
    expect([await held(first), await held(second)]).toEqual([idsOf(parked, own), []]);
    const other = event({ trackingNumber: number, senderAccount: "ACC-B" });
    await send(other);
    expect([await held(first), await held(second)]).toEqual([
      idsOf(parked, own),
      idsOf(parked, other),
    ]);
    const balance = await settled();
    expect([balance.released - before.released, balance.difference]).toEqual([2, AT_REST]);
    expect(await send(parked)).toEqual(["DUPLICATE"]);
  });

  test("to the company alone whose sender account it names", async () => {
    const number = newNumber();
    const parked = numbered(number, { senderAccount: "ACC-B" });
    await send(parked);
    const [first, second] = [await add(number), await add(number, "beta-it")];
    const both = event({ trackingNumber: number });
    await send(both);
    expect([await held(first), await held(second)]).toEqual([idsOf(both), idsOf(parked, both)]);
    expect(await isParked(parked)).toBe(false);
  });

  test("to no shipment where its order reference has become that of two", async () => {
    const order = newNumber();
    const parked = byOrder(order, "ACC-1");
    expect(await send(parked)).toEqual(UNKNOWN);
    const numbers = [newNumber(), newNumber()];
    const ids = [];
    for (const number of numbers) ids.push(await add(number, "acme-it", { orderReference: order }));
    const fresh = numbers.map((number) => event({ trackingNumber: number }));
    await send(...fresh);
    expect(await eventsOf(...ids)).toEqual(fresh.map(({ eventId }) => [eventId]));
  });

  test("where it contradicted a shipment of its number, to one that agrees with it", async () => {
    const number = newNumber();
    const first = await add(number, "acme-it", { orderReference: "A" });
    const parked = numbered(number, { externalId: "B" });
    expect(await send(parked)).toEqual(UNKNOWN);
    const second = await add(number, "beta-it", { orderReference: "B" });
    const both = event({ trackingNumber: number });
    await send(both);
    expect([await held(first), await held(second)]).toEqual([idsOf(both), idsOf(parked, both)]);
  });

  test("once, where several of its references find the shipment", async () => {
    const [number, order] = [newNumber(), newNumber()];
    const parked = numbered(number, { externalId: order, senderAccount: "ACC-1" });
    await send(parked);
    const id = await add(number, "acme-it", { orderReference: order });
    const before = await settled();
    const own = event({ trackingNumber: number });
    await send(own);
    expect(await held(id)).toEqual(idsOf(parked, own));
    const balance = await settled();
    expect([balance.released - before.released, balance.difference]).toEqual([1, AT_REST]);
    expect(await isParked(parked)).toBe(false);
  });

  test("once, where the first event is delivered again after a crash at any point", async () => {
    const [own, shared] = [newNumber(), newNumber()];
    const parked = [numbered(own), numbered(shared)];
    await send(...parked);
    const ids = [await add(own), await add(shared), await add(shared, "beta-it")];
    const before = await settled();
    await tracking.stopTrack();
    const events = [own, shared].map((trackingNumber) => event({ trackingNumber }));
    await push(tracking.url, events);
    const { redis, live, config } = runtime;
    const handle = trackHandler({ redis, live, eventsPerDay: config.eventsPerDay });
    const entries = await Promise.all(eventLogs().map(waitingIn));
    for (let times = 0; times < 3; times += 1) expect(await handle(entries.flat())).toEqual([]);
    const expected = events.map((one, at) => idsOf(one, ...parked.slice(at, at + 1)));
    const found = await Promise.all(ids.map(held));
    expect(found).toEqual([0, 1, 1].map((at) => expected[at] ?? []));
    tracking.startTrack();
    const balance = await settled();
    expect([balance.released - before.released, balance.difference]).toEqual([3, AT_REST]);
  });

  /** What a log holds that track has not been given. */
  async function waitingIn(key: string) {
    const [group] = await runtime.redis.xInfoGroups(key);
    const all = await runtime.redis.xRange(key, `(${group?.["last-delivered-id"] ?? "0"}`, "+");
    return (all ?? []).flatMap(({ id, message }) =>
      splitEvents(message).map((fields) => ({ key, id: String(id), fields })),
    );
  }

  test("by the number of a parcel", async () => {
    const [number, parcel] = [newNumber(), newNumber()];
    const parked = numbered(parcel);
    await send(parked);
    const id = await add(number, "acme-it", { parcelNumbers: [parcel] });
    const own = event({ trackingNumber: number });
    await send(own);
    expect(await held(id)).toEqual(idsOf(parked, own));
  });

  test("to a placeholder shipment, by its order reference and by its number once that is known", async () => {
    const [number, order] = [newNumber(), newNumber()];
    const references = { externalId: order, senderAccount: "ACC-1" };
    const [full, bare] = [numbered(number, references), numbered(number)];
    expect(await send(full, bare)).toEqual([...UNKNOWN, ...UNKNOWN]);
    const id = await add(newNumber(), "acme-it", { orderReference: order, isPlaceholder: true });
    const first = byOrder(order, "ACC-1");
    expect(await send(first)).toEqual(["ACCEPTED"]);
    expect(await held(id)).toEqual(idsOf(full, bare, first));
    expect(await send(event({ trackingNumber: number }))).toEqual(["ACCEPTED"]);
  });

  test("together with what was parked under a number that it announces, however often it changed", async () => {
    const [first, second, third] = [newNumber(), newNumber(), newNumber()];
    const change = (from: string, to: string) =>
      numbered(from, { trackingNumberChange: { newTrackingNumber: to, reason: "relabelled" } });
    const parked = [change(first, second), change(second, third), numbered(third)];
    expect(await send(...parked)).toEqual([...UNKNOWN, ...UNKNOWN, ...UNKNOWN]);
    const id = await add(first);
    const own = event({ trackingNumber: first });
    await send(own);
    expect(await held(id)).toEqual(idsOf(own, ...parked));
    const [shipment] = await readShipments(runtime.redis, [id]);
    expect(shipment?.state.aliases).toEqual([second, third].sort());
    const history = JSON.stringify(await readHistory(runtime.redis, id));
    expect(history).not.toContain("relabelled");
    expect(await send(event({ trackingNumber: third }))).toEqual(["ACCEPTED"]);
  });

  test("to a shipment whose first event came before the reference was registered", async () => {
    const [number, order] = [newNumber(), newNumber()];
    const { redis, live } = runtime;
    const id = await add(number, "acme-it", { orderReference: order, isRegistered: false });
    // As a registration leaves it that is cut short between two partitions.
    const meta = (await readHotShipments(redis, [id])).get(id)?.meta;
    if (!meta) throw new Error("not created");
    const reference = trackingReference("GLS_ITA", number);
    await registerReferences(redis, [{ ...candidateOf(id, meta), reference }]);
    const own = event({ trackingNumber: number });
    expect(await send(own)).toEqual(["ACCEPTED"]);
    const parked = byOrder(order, "ACC-1");
    expect(await send(parked)).toEqual(UNKNOWN);
    expect(await held(id)).toEqual(idsOf(own));
    const { changes } = companyKeys(shipmentPartition(id));
    const created = { key: changes, id: "1-1", fields: { s: String(id), created: "{}" } };
    const handle = referencesHandler({ redis, live, eventsPerDay: 1_000 });
    for (let twice = 0; twice < 2; twice += 1) expect(await handle([created])).toEqual([]);
    expect(await held(id)).toEqual(idsOf(own, parked));
    expect((await settled()).difference).toEqual(AT_REST);
  });

  test("whatever comes together: events that arrive while their shipment is registered are all applied once", async () => {
    for (let round = 0; round < 10; round += 1) {
      const [number, order] = [newNumber(), newNumber()];
      const references = { externalId: order, senderAccount: "ACC-1" };
      const events = Array.from({ length: 20 }, (_, n) =>
        n % 2 === 0 ? numbered(number, references) : byOrder(order, "ACC-1"),
      );
      const sending = events.map((one) => push(tracking.url, [one]));
      const id = await add(number, "acme-it", { orderReference: order });
      await Promise.all(sending);
      const last = event({ trackingNumber: number });
      await send(last);
      expect(await held(id)).toEqual(idsOf(last, ...events));
    }
    expect((await settled()).difference).toEqual(AT_REST);
  });
});

describe("many parked events", () => {
  for (const length of [CHAIN_LIMIT, CHAIN_LIMIT + 1]) {
    test(`of ${length} numbers, each announced by the one before, the first ${CHAIN_LIMIT} are released`, async () => {
      const numbers = Array.from({ length }, newNumber);
      const events = numbers.map((number, at) => {
        const next = numbers[at + 1];
        return next === undefined
          ? numbered(number)
          : numbered(number, { trackingNumberChange: { newTrackingNumber: next } });
      });
      await push(tracking.url, events);
      const id = await add(numbers[0] ?? "");
      const own = event({ trackingNumber: numbers[0] ?? "" });
      await send(own);
      expect(await held(id)).toEqual(idsOf(own, ...events.slice(0, CHAIN_LIMIT)));
    }, 300_000);
  }

  for (const count of [RELEASED_AT_ONCE, RELEASED_AT_ONCE + 1]) {
    test(`${count} of them are all released with the first event of their shipment`, async () => {
      const parcels = Array.from({ length: 11 }, newNumber);
      const events = Array.from({ length: count }, (_, n) =>
        numbered(parcels[Math.floor(n / PARKED_PER_REFERENCE)] ?? ""),
      );
      for (const part of chunks(events, 500)) await push(tracking.url, part);
      const before = await settled();
      const number = newNumber();
      const id = await add(number, "acme-it", { parcelNumbers: parcels });
      await send(event({ trackingNumber: number }));
      const balance = await settled();
      expect([balance.released - before.released, balance.difference]).toEqual([count, AT_REST]);
      const [shipment] = await readShipments(runtime.redis, [id]);
      const { keys = [], dropped = 0 } = shipment?.state ?? {};
      expect(keys.length + dropped).toBe(count + 1);
      for (const one of events.slice(0, 3)) expect(await isParked(one)).toBe(false);
      const [last] = events.slice(-1);
      if (last) expect(await isParked(last)).toBe(false);
    }, 300_000);
  }
});

/** All tests of this process count in the same metric. */
async function conflictCount(): Promise<number> {
  const metrics = await (await fetch(`${tracking.url}/metrics`)).text();
  return Number(
    /waybill_number_conflicts_total\{courier="GLS_ITA"\} (\d+)/.exec(metrics)?.[1] ?? 0,
  );
}

describe("a number that another live shipment has", () => {
  test("is taken over by the change; the conflict is reported once, counted and listed", async () => {
    const [number, taken] = [newNumber(), newNumber()];
    const [id, other] = [await add(number), await add(taken, "beta-it")];
    const before = await conflictCount();
    const change = numbered(number, { trackingNumberChange: { newTrackingNumber: taken } });
    const next = event({ trackingNumber: taken });
    expect(await send(change)).toEqual(["ACCEPTED"]);
    expect(await send(next)).toEqual(["ACCEPTED"]);
    expect([await held(id), await held(other)]).toEqual([idsOf(change, next), idsOf(next)]);
    // The same change once more, of another event.
    await send(numbered(number, { trackingNumberChange: { newTrackingNumber: taken } }));
    const conflict = {
      courier: "GLS_ITA",
      eventId: change.eventId,
      shipmentId: id,
      newTrackingNumber: taken,
      otherShipmentIds: [other],
    };
    const reported = tracking.conflicts.filter(({ shipmentId }) => shipmentId === id);
    expect(reported).toEqual([{ ...conflict, atMs: expect.any(Number) }]);
    const { body } = await panel.call("GET", "/panel/api/number-conflicts?limit=1");
    expect(body.items).toEqual([{ ...conflict, at: expect.any(String) }]);
    const overview = await panel.call("GET", "/panel/api/overview");
    expect([overview.body.numberConflicts, body.total]).toEqual([1, 1]);
    await eventually(async () => (await conflictCount()) === before + 1, "one more is counted");
  });

  test("is no conflict where that shipment has ended, or has the same parcel", async () => {
    const [number, over, shared, announced] = [newNumber(), newNumber(), newNumber(), newNumber()];
    await add(number);
    await add(over, "beta-it");
    await send(numbered(over, { status: { code: "DLV", description: "Consegnata" } }));
    await send(numbered(number, { trackingNumberChange: { newTrackingNumber: over } }));
    await add(shared);
    await add(shared, "beta-it");
    await send(numbered(shared, { trackingNumberChange: { newTrackingNumber: announced } }));
    const numbers = tracking.conflicts.map(({ newTrackingNumber }) => newTrackingNumber);
    expect(numbers.filter((one) => [over, announced].includes(one))).toEqual([]);
  });

  const conflict = (n: number) => ({
    courier: "GLS_ITA",
    eventId: `e${n}`,
    shipmentId: n,
    newTrackingNumber: "X",
    otherShipmentIds: [1],
    atMs: 10 ** 13 + n,
  });

  for (const [count, calls] of [
    [CONFLICTS_PER_CALL, 1],
    [CONFLICTS_PER_CALL + 1, 2],
  ] as const) {
    test(`${count} conflicts at once are noted in calls of ${CONFLICTS_PER_CALL}, each once`, async () => {
      const recorded = recordCalls(runtime.redis);
      const all = Array.from({ length: count }, (_, n) => ({
        ...conflict(1_000 * count + n),
        atMs: n,
      }));
      expect(await noteConflicts(recorded.redis, all)).toEqual(all);
      expect(recorded.calls).toHaveLength(calls);
      expect(await noteConflicts(runtime.redis, all)).toEqual([]);
    });
  }

  test("as many conflicts as the limit are listed, and one more displaces the oldest", async () => {
    const { redis } = runtime;
    const limit = 5;
    const all = Array.from({ length: limit }, (_, n) => conflict(n));
    expect(await noteConflicts(redis, all, limit)).toEqual(all);
    expect((await listConflicts(redis, 0, 10)).conflicts).toEqual(all.toReversed());
    await noteConflicts(redis, [conflict(limit)], limit);
    const { conflicts, total } = await listConflicts(redis, 0, 10);
    expect([conflicts.map(({ shipmentId }) => shipmentId), total]).toEqual([[5, 4, 3, 2, 1], 5]);
  });
});

function startReferences(): Consumer {
  const { redis, live, log, config } = runtime;
  const handler = referencesHandler({ redis, live, eventsPerDay: config.eventsPerDay });
  return startConsumer({
    redis,
    log,
    handler,
    source: "change",
    group: "references",
    batch: 100,
  });
}

async function isCaughtUp(group: GroupName): Promise<boolean> {
  const lags = await readLags(runtime.redis);
  return lags.every((one) => one.group !== group || one.entries === 0);
}

/** Accepts events without waiting for track, which does not run. */
const accept = async (...events: readonly CourierEvent[]) => {
  const { body } = await push(tracking.url, events);
  return body.results.map(({ outcome }: { outcome: string }) => outcome);
};

/** Last, because it moves the clock. */
describe("design, Our own downtime is nobody's fault: the 7 days of a set-aside event are judged by when its shipment's first event was received", () => {
  const DAY_S = 86_400;

  test("one that was accepted in time and processed late releases it, one that came late does not", async () => {
    const [inTime, late] = [newNumber(), newNumber()];
    const [kept, over] = [numbered(inTime), numbered(late)];
    await send(kept, over);
    const ids = [await add(inTime), await add(late)];
    const { redis, live, log } = runtime;
    await advanceClock(redis, 6 * DAY_S);
    await tracking.stopTrack();
    const [first, second] = [numbered(inTime), numbered(late)];
    expect(await accept(first)).toEqual(["ACCEPTED"]);
    await advanceClock(redis, 2 * DAY_S);
    expect(await accept(second)).toEqual(["ACCEPTED"]);
    const references = startReferences();
    await eventually(() => isCaughtUp("references"), "what was created can be found");
    const expiry = startParkedExpiry({ redis, live, log });
    await expiry.stop();
    expect([await isParked(kept), await isParked(over)]).toEqual([true, true]);
    await advanceClock(redis, 30 * DAY_S);
    tracking.startTrack();
    await settled();
    const [early = 0, other = 0] = ids;
    expect(await held(early)).toEqual(idsOf(kept, first));
    expect(await held(other)).toEqual([second.eventId]);
    await references.stop();
  });

  test("a number counts from the event that announced it, and those that were parked under it with it", async () => {
    const [number, next] = [newNumber(), newNumber()];
    const parked = numbered(next);
    await send(parked);
    const id = await add(number);
    await tracking.stopTrack();
    const announces = (newTrackingNumber: string) =>
      numbered(number, { trackingNumberChange: { newTrackingNumber } });
    const first = numbered(number);
    await accept(first);
    await advanceClock(runtime.redis, 8 * DAY_S);
    const change = announces(next);
    expect(await accept(change)).toEqual(["ACCEPTED"]);
    tracking.startTrack();
    await settled();
    // In one batch with an event that was in time, which has nothing to do with that number.
    expect(await held(id)).toEqual(idsOf(first, change));
  });

  test("where an event finds a shipment before all its references are registered, its own time counts, not that of the repetition", async () => {
    const order = newNumber();
    const number = newNumber();
    const parked = byOrder(order, "ACC-1");
    await send(parked);
    const id = await add(number, "acme-it", { orderReference: order });
    const { redis } = runtime;
    const byItsOrder = externalReference("GLS_ITA", "ACC-1", order);
    const registered = await redis.get(byItsOrder.key);
    await redis.del(byItsOrder.parkedKey);
    const own = numbered(number);
    await send(own);
    expect(await held(id)).toEqual([own.eventId]);
    await redis.del(byItsOrder.key);
    await send(parked);
    if (registered) await redis.set(byItsOrder.key, registered);
    await advanceClock(redis, 20 * DAY_S);
    const { live, config } = runtime;
    await releaseParked({ redis, live, eventsPerDay: config.eventsPerDay }, [id]);
    expect(await held(id)).toEqual(idsOf(parked, own));
  });
});

describe("after 7 days", () => {
  test("without a resend an event is deleted from the store, and one that was sent again is not", async () => {
    const number = newNumber();
    const [left, renewed] = [numbered(number), numbered(number)];
    await send(left, renewed);
    const { redis, live, log } = runtime;
    await advanceClock(redis, 6 * 86_400);
    expect(await send(renewed)).toEqual(UNKNOWN);
    await advanceClock(redis, 86_400 + 120);
    const references = startReferences();
    await eventually(() => isCaughtUp("references"), "what was created can be found");
    const expiry = startParkedExpiry({ redis, live, log });
    await eventually(async () => !(await isParked(left)), "the event is deleted");
    await Promise.all([expiry.stop(), references.stop()]);
    expect(await isParked(renewed)).toBe(true);
    const id = await add(number);
    const own = event({ trackingNumber: number });
    await send(own);
    expect(await held(id)).toEqual(idsOf(renewed, own));
  });
});
