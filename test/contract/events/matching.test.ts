/** Document 2, "Data rules" and "States and transitions"; design, "Reference matching": which shipments an event reaches. */
import { beforeAll, describe, expect, test } from "bun:test";
import { type CourierEvent, EVENTS_PER_MESSAGE } from "#core/events/rules/event.ts";
import { claimEvents, splitEvents } from "#core/events/store/event-log.ts";
import {
  registerReferences,
  resolveReferences,
  SHIPMENTS_PER_COMPANY,
  SHIPMENTS_PER_REFERENCE,
} from "#core/events/store/references.ts";
import { seenBucket, seenLayout } from "#core/events/store/seen.ts";
import { eventLogs, trackingReference } from "#core/platform/redis/keys.ts";
import { readHistory, readShipments } from "#core/shipments/store/shipments.ts";
import { readBalance } from "#core/webhooks/store/deliveries/ledger.ts";
import { classify, PASSES } from "#ingest/messages/classify.ts";
import { type Intake, openIntake } from "#ingest/messages/intake.ts";
import { prepare } from "#ingest/messages/prepare.ts";
import { trackHandler } from "#processors/track/track.ts";
import { event, push } from "#test/support/clients/courier.ts";
import { eventually } from "#test/support/eventually.ts";
import { forAll } from "#test/support/for-all.ts";
import type { TestRuntime } from "#test/support/product/runtime.ts";
import { openTracking, type Tracking } from "#test/support/product/tracking.ts";
import { passTime } from "#test/support/product/webhooks.ts";

const DAY_MS = 86_400_000;
const YEAR_SECONDS = (365 * DAY_MS) / 1_000;
const AT_REST = { received: 0, applied: 0, webhooks: 0 };

let runtime: TestRuntime;
let url: string;
let { add, newNumber, send, settled, eventsOf } = {} as Tracking;

const tracking = forAll(openTracking);
beforeAll(async () => {
  ({ runtime, url, add, newNumber, send, settled, eventsOf } = tracking);
});

describe("an event with a tracking number", () => {
  test("goes to every shipment that has it, whatever channel or company created it, and is counted as routed", async () => {
    const number = newNumber();
    const ids = [await add(number), await add(number, "acme-outlet"), await add(number, "beta-it")];
    const before = await settled();
    const one = event({ trackingNumber: number });
    expect(await send(one, one)).toEqual(["ACCEPTED", "DUPLICATE"]);
    expect(await eventsOf(...ids)).toEqual(Array(3).fill([one.eventId]));
    const balance = await settled();
    expect([balance.accepted - before.accepted, balance.routed - before.routed]).toEqual([1, 3]);
    expect(balance.applied - before.applied).toBe(3);
    expect([balance.received - before.received, balance.difference]).toEqual([2, AT_REST]);
  });

  test("goes to channels that have its sender account, and to all where none has it", async () => {
    const number = newNumber();
    const ids = [await add(number), await add(number, "beta-it")];
    const own = event({ trackingNumber: number, senderAccount: "ACC-B" });
    const nobodys = event({ trackingNumber: number, senderAccount: "ACC-0" });
    expect(await send(own, nobodys)).toEqual(["ACCEPTED", "ACCEPTED"]);
    expect(await eventsOf(...ids)).toEqual([[nobodys.eventId], [own.eventId, nobodys.eventId]]);
  });

  test("goes to shipments whose order reference its externalId does not contradict", async () => {
    const number = newNumber();
    const ids = [
      await add(number, "acme-it", { orderReference: "A" }),
      await add(number, "acme-outlet", { orderReference: "B" }),
      await add(number, "beta-it"),
    ];
    const one = event({ trackingNumber: number, externalId: "B" });
    expect(await send(one)).toEqual(["ACCEPTED"]);
    expect(await eventsOf(...ids)).toEqual([[], [one.eventId], [one.eventId]]);
  });

  test("finds a shipment by the number of a parcel, and by one that was announced", async () => {
    const [main, parcel, announced] = [newNumber(), newNumber(), newNumber()];
    const id = await add(main, "acme-it", { parcelNumbers: [parcel] });
    const other = await add(parcel, "beta-it");
    const change = event({
      trackingNumber: main,
      trackingNumberChange: { newTrackingNumber: announced },
    });
    const [ofParcel, ofNew] = [parcel, announced].map((trackingNumber) =>
      event({ trackingNumber }),
    );
    expect(await send(change, ofParcel, ofNew)).toEqual(Array(3).fill("ACCEPTED"));
    const [own, others] = await eventsOf(id, other);
    expect(own?.toSorted()).toEqual(
      [change.eventId, ofParcel?.eventId ?? "", ofNew?.eventId ?? ""].sort(),
    );
    expect(others).toEqual([ofParcel?.eventId ?? ""]);
  });

  test("reaches a placeholder shipment that its externalId names, whoever has the number", async () => {
    const number = newNumber();
    const other = await add(number, "acme-outlet");
    const id = await add(newNumber(), "beta-it", { orderReference: number, isPlaceholder: true });
    const one = event({ trackingNumber: number, externalId: number, senderAccount: "ACC-B" });
    expect(await send(one)).toEqual(["ACCEPTED"]);
    expect(await eventsOf(other, id)).toEqual([[], [one.eventId]]);
  });

  test("carries personal data to several shipments of one company, and to none of several companies", async () => {
    const personal = {
      delivery: {
        estimatedDeliveryDate: "2026-11-12",
        deliveredTo: "NEIGHBOUR" as const,
        signedBy: "Mario Rossi",
        podUrl: "https://courier.example/pod",
      },
      pickupPoint: { address: "Via Roma 1" },
      recipientActionUrl: "https://courier.example/act",
    };
    const [own, shared] = [newNumber(), newNumber()];
    const ids = [await add(own), await add(own, "acme-outlet")];
    const others = [await add(shared), await add(shared, "beta-it")];
    await send(
      event({ trackingNumber: own, ...personal }),
      event({ trackingNumber: shared, ...personal }),
    );
    const texts = async (id: number) => JSON.stringify(await readHistory(runtime.redis, id));
    for (const id of ids) {
      const [shipment] = await readShipments(runtime.redis, [id]);
      expect(shipment?.state.proof?.value.signedBy).toBe("Mario Rossi");
      expect(await texts(id)).toContain("Via Roma 1");
    }
    for (const id of others) {
      const [shipment] = await readShipments(runtime.redis, [id]);
      expect(shipment?.state.estimate?.value.date).toBe("2026-11-12");
      expect([shipment?.state.proof, shipment?.state.pickupPoint]).toEqual([null, null]);
      expect(shipment?.state.actionUrl).toBeNull();
      expect(await texts(id)).not.toMatch(/Mario Rossi|NEIGHBOUR|courier\.example|Via Roma/);
    }
  });
});

describe("a tracking number that the courier uses again", () => {
  const ENDED = "2026-03-01T10:00:00Z";
  const daysLater = (days: number, ms = 0) =>
    new Date(Date.parse(ENDED) + days * DAY_MS + ms).toISOString();
  const delivered = { code: "DLV", description: "Consegnata" };

  /** A shipment that was delivered, and another that has the number now. */
  async function usedAgain(second: "ended" | "under way") {
    const number = newNumber();
    const shipDate = "2026-02-25";
    const old = await add(number, "acme-it", { shipDate });
    await send(event({ trackingNumber: number, occurredAt: ENDED, status: delivered }));
    const young = await add(number, "beta-it", { shipDate });
    if (second === "ended") {
      const { senderAccount, ...last } = event({ senderAccount: "ACC-B" });
      await send({
        ...last,
        trackingNumber: number,
        senderAccount,
        occurredAt: ENDED,
        status: delivered,
      });
    }
    return { number, old, young };
  }

  test("90 days after the end of its first shipment still reaches both, and then the other one alone", async () => {
    const { number, old, young } = await usedAgain("under way");
    const [before] = await eventsOf(old);
    const last = event({ trackingNumber: number, occurredAt: daysLater(90) });
    const next = event({ trackingNumber: number, occurredAt: daysLater(90, 1) });
    expect(await send(last, next)).toEqual(["ACCEPTED", "ACCEPTED"]);
    expect(await eventsOf(old, young)).toEqual([
      [...(before ?? []), last.eventId],
      [last.eventId, next.eventId],
    ]);
  });

  test("reaches a shipment that ended long before where there is no other", async () => {
    const number = newNumber();
    const id = await add(number, "acme-it", { shipDate: "2026-02-25" });
    const late = event({ trackingNumber: number, occurredAt: daysLater(200) });
    await send(event({ trackingNumber: number, occurredAt: ENDED, status: delivered }));
    expect(await send(late)).toEqual(["ACCEPTED"]);
    expect((await eventsOf(id)).flat()).toContain(late.eventId);
  });

  test("reaches both where both ended long before", async () => {
    const { number, old, young } = await usedAgain("ended");
    const late = event({ trackingNumber: number, occurredAt: daysLater(200) });
    expect(await send(late)).toEqual(["ACCEPTED"]);
    for (const own of await eventsOf(old, young)) expect(own).toContain(late.eventId);
  });

  test("reaches an old shipment that has not ended", async () => {
    const number = newNumber();
    const ids = [
      await add(number, "acme-it", { shipDate: "2026-02-25" }),
      await add(number, "beta-it"),
    ];
    const one = event({ trackingNumber: number });
    expect(await send(one)).toEqual(["ACCEPTED"]);
    expect(await eventsOf(...ids)).toEqual([[one.eventId], [one.eventId]]);
  });

  test("carries personal data to the one company whose shipment it means now", async () => {
    const { number, young } = await usedAgain("under way");
    const signed = { delivery: { signedBy: "Mario Rossi" }, occurredAt: daysLater(100) };
    await send(event({ trackingNumber: number, ...signed }));
    const [shipment] = await readShipments(runtime.redis, [young]);
    expect(shipment?.state.proof?.value.signedBy).toBe("Mario Rossi");
  });
});

describe("an externalId without a tracking number", () => {
  function byOrder(externalId: string, members: Partial<CourierEvent> = {}): CourierEvent {
    const { trackingNumber: _, ...rest } = event({
      externalId,
      senderAccount: "ACC-1",
      ...members,
    });
    return rest;
  }

  test("of two shipments is UNKNOWN_TRACKING and is not parked", async () => {
    const order = newNumber();
    const early = byOrder(order);
    const ids = [
      await add(newNumber(), "acme-it", { orderReference: order }),
      await add(newNumber(), "acme-it", { orderReference: order }),
    ];
    expect(await send(early)).toEqual(["UNKNOWN_TRACKING"]);
    const keys = await runtime.redis.keys("{t*}:p:*");
    const held = await Promise.all(keys.map((key) => runtime.redis.hGetAll(key)));
    expect(JSON.stringify(held)).not.toContain(early.eventId);
    expect(await eventsOf(...ids)).toEqual([[], []]);
  });
});

describe("limits", () => {
  const shipDay = 20_000;
  const candidate = (shipmentId: number, companyId: number) => ({
    shipmentId,
    companyId,
    channelId: companyId,
    isPlaceholder: false,
    orderReference: null,
    shipDay,
  });

  async function found(number: string): Promise<number[]> {
    const reference = trackingReference("GLS_ITA", number);
    const candidates = await resolveReferences(runtime.redis, [reference]);
    return [...candidates.values()].flat().map(({ shipmentId }) => shipmentId);
  }

  async function register(number: string, all: ReturnType<typeof candidate>[]): Promise<void> {
    const reference = trackingReference("GLS_ITA", number);
    for (const one of all) await registerReferences(runtime.redis, [{ ...one, reference }]);
  }

  const ids = (count: number, from = 1) => Array.from({ length: count }, (_, n) => from + n);

  test("a number finds the latest shipments of a company, and one more takes the place of its oldest alone", async () => {
    const number = newNumber();
    const own = ids(SHIPMENTS_PER_COMPANY, 1_000).map((id) => candidate(id, 1));
    await register(number, [candidate(7, 2), ...own]);
    expect((await found(number)).sort()).toEqual([7, ...own.map((one) => one.shipmentId)].sort());
    await register(number, [candidate(5_000, 1)]);
    const left = [7, ...own.slice(1).map((one) => one.shipmentId), 5_000];
    expect((await found(number)).sort()).toEqual(left.toSorted());
    // Repeated from the change log, in whatever order.
    await register(number, [...own.toReversed(), candidate(7, 2)]);
    expect((await found(number)).sort()).toEqual(left.toSorted());
  });

  test("a number finds the latest shipment of as many companies as the limit, whoever registers more", async () => {
    const number = newNumber();
    const companies = ids(SHIPMENTS_PER_REFERENCE).map((n) => candidate(n, n));
    await register(number, companies);
    expect(await found(number)).toHaveLength(SHIPMENTS_PER_REFERENCE);
    const greedy = ids(SHIPMENTS_PER_COMPANY - 1, 2_000).map((id) => candidate(id, 1));
    await register(number, greedy);
    const left = await found(number);
    expect(left).toHaveLength(SHIPMENTS_PER_REFERENCE);
    // The latest of every company is found still; of the greedy one it is a later shipment now.
    for (const { shipmentId, companyId } of companies)
      if (companyId !== 1) expect(left).toContain(shipmentId);
    expect(left).toContain(2_000 + SHIPMENTS_PER_COMPANY - 2);
    await register(number, [candidate(9_000, SHIPMENTS_PER_REFERENCE + 1)]);
    const after = await found(number);
    expect([after.length, after.includes(9_000), after.includes(2)]).toEqual([
      SHIPMENTS_PER_REFERENCE,
      true,
      false,
    ]);
  });

  test("an event goes to as many shipments as a number finds, each once", async () => {
    const number = newNumber();
    const own: number[] = [];
    for (let n = 0; n < SHIPMENTS_PER_COMPANY + 1; n += 1) {
      own.push(await add(newNumber(), "acme-it", { parcelNumbers: [number] }));
    }
    const events = Array.from({ length: 30 }, () => event({ trackingNumber: number }));
    const before = await settled();
    expect(new Set(await send(...events))).toEqual(new Set(["ACCEPTED"]));
    const [oldest, ...others] = await eventsOf(...own);
    expect(oldest).toEqual([]);
    for (const one of others) expect(one.toSorted()).toEqual(events.map((e) => e.eventId).sort());
    const balance = await settled();
    expect(balance.routed - before.routed).toBe(30 * SHIPMENTS_PER_COMPANY);
    expect(balance.difference).toEqual(AT_REST);
  });
});

describe("crashes and races", () => {
  test("an entry for several shipments that is delivered again after one of them was committed reaches each once", async () => {
    const number = newNumber();
    const ids = [await add(number), await add(number, "acme-outlet"), await add(number, "beta-it")];
    await tracking.stopTrack();
    const one = event({ trackingNumber: number });
    await push(url, [one]);
    const { redis, live, config } = runtime;
    const waiting = await readBalance(redis, live.configuration());
    expect([waiting.waiting, waiting.difference.applied]).toEqual([3, 0]);
    const [log = ""] = eventLogs().slice(seenBucket("GLS_ITA", one.eventId).partition);
    const [entry] = (await redis.xRevRange(log, "+", "-", { COUNT: 1 })) ?? [];
    const parts = splitEvents(entry?.message ?? {});
    expect(parts).toHaveLength(3);
    // As a process leaves it that dies behind its first commit.
    const handle = trackHandler({ redis, live, eventsPerDay: config.eventsPerDay });
    const id = String(entry?.id);
    await handle(parts.slice(0, 1).map((fields) => ({ key: log, id, fields })));
    expect((await eventsOf(...ids)).map(({ length }) => length)).toEqual([1, 0, 0]);
    tracking.startTrack();
    const balance = await settled();
    expect(await eventsOf(...ids)).toEqual(Array(3).fill([one.eventId]));
    expect([balance.waiting, balance.difference]).toEqual([0, AT_REST]);
  });

  test("a shipment that is created while events of its number are accepted gets all that are sent after its creation", async () => {
    const number = newNumber();
    const first = await add(number);
    const sent: string[] = [];
    let isCreated = false;
    const after: string[] = [];
    const streams = Array.from({ length: 4 }, async () => {
      while (after.length < 100) {
        const one = event({ trackingNumber: number });
        const isAfter = isCreated;
        const { body } = await push(url, [one]);
        expect(body.accepted).toBe(1);
        sent.push(one.eventId);
        if (isAfter) after.push(one.eventId);
      }
    });
    await eventually(() => sent.length > 20, "events are accepted");
    const second = await add(number, "beta-it");
    isCreated = true;
    await Promise.all(streams);
    const { difference } = await settled();
    const [all = [], some = []] = await eventsOf(first, second);
    expect(all.toSorted()).toEqual(sent.toSorted());
    expect(after.filter((id) => !some.includes(id))).toEqual([]);
    expect([new Set(some).size, difference]).toEqual([some.length, AT_REST]);
  });

  test("many shipments of one number that are created with its events under way lose none, parked or accepted", async () => {
    for (let round = 0; round < 10; round += 1) {
      const number = newNumber();
      const events = Array.from({ length: 20 }, () => event({ trackingNumber: number }));
      const sending = events.map((one) => push(url, [one]));
      const ids = await Promise.all(
        ["acme-it", "acme-outlet", "beta-it"].map((channel) => add(number, channel)),
      );
      await Promise.all(sending);
      const last = event({ trackingNumber: number });
      await send(last);
      // Whoever has been created gets what no shipment had taken until then; nothing is lost for all of them.
      const all = new Set((await eventsOf(...ids)).flat());
      expect(all.size).toBe(21);
    }
    expect((await settled()).difference).toEqual(AT_REST);
  });
});

describe("round trips", () => {
  /** Calls of scripts and reads that a message costs. */
  async function callsOf(events: readonly unknown[]): Promise<number> {
    await runtime.redis.configResetStat();
    expect((await push(url, events)).body.accepted).toBe(events.length);
    const stats = String(await runtime.redis.info("commandstats"));
    const calls = [...stats.matchAll(/cmdstat_(?:evalsha|mget):calls=(\d+)/g)];
    return calls.reduce((sum, [, count]) => sum + Number(count), 0);
  }

  /** Of a message whose numbers two companies have, and of one that uses them again: how many more than of an ordinary one. */
  async function furtherCalls() {
    const own: string[] = [];
    const shared: string[] = [];
    for (let n = 0; n < 50; n += 1) {
      own.push(newNumber());
      shared.push(newNumber());
      await add(own[n] ?? "");
      await add(shared[n] ?? "");
      await add(shared[n] ?? "", "beta-it");
    }
    const message = (all: readonly string[]) => {
      const occurredAt = new Date(runtime.live.now()).toISOString();
      return all.map((trackingNumber) => event({ trackingNumber, occurredAt }));
    };
    await callsOf(message(own));
    const ordinary = await callsOf(message(own));
    const first = await callsOf(message(shared));
    await passTime(runtime, YEAR_SECONDS);
    const again = await callsOf(message(shared));
    return { first: first - ordinary, again: again - ordinary };
  }

  test("a message whose numbers two companies have costs as many as another, and one more read where they are used again", async () => {
    // The two companies share the only partition. A script that is not loaded yet is an `evalsha` too, and then an `eval`.
    const expected = { first: 0, again: 1 };
    await tracking.stopTrack();
    try {
      // What runs beside it by its own clock may fall into one of the messages, but not into one of each round.
      let found = await furtherCalls();
      for (let round = 1; round < 4 && !Bun.deepEquals(found, expected); round += 1) {
        found = await furtherCalls();
      }
      expect(found).toEqual(expected);
    } finally {
      tracking.startTrack();
    }
    expect((await settled()).difference).toEqual(AT_REST);
  });
});

describe("references that go on changing while an event is parked", () => {
  /** Classifies a mismatched event; after each of the first `changes` looks at its reference another shipment is registered. */
  async function classifyWhileChanging(changes: number) {
    const number = newNumber();
    const reference = trackingReference("GLS_ITA", number);
    const { redis, live, config } = runtime;
    let registered = 0;
    const register = () => {
      registered += 1;
      const candidate = {
        shipmentId: 900_000 + registered,
        companyId: registered,
        channelId: registered,
        isPlaceholder: false,
        orderReference: "ANOTHER",
        shipDay: 20_000,
      };
      return registerReferences(redis, [{ ...candidate, reference }]);
    };
    const intake = openIntake(redis, live, config.logHighWater);
    const changing: Intake = {
      ...intake,
      async resolve(references) {
        const candidates = await intake.resolve(references);
        if (registered < changes) await register();
        return candidates;
      },
    };
    const courier = live.configuration().couriers.get("GLS_ITA");
    if (!courier) throw new Error("no courier");
    const one = event({ trackingNumber: number, externalId: "R" });
    const nowMs = live.now();
    const deps = {
      redis,
      intake: changing,
      configuration: live.configuration(),
      layout: await seenLayout(redis, nowMs, config.eventsPerDay),
      messageId: "m",
      onUnmatched: () => {},
      onAmbiguous: () => {},
      onNotParked: () => {},
    };
    const prepared = await prepare(deps, courier, { events: [one], check: () => [] });
    const outcome = classify(deps, courier, prepared, nowMs).then(
      ([result]) => result?.outcome,
      ({ status, code }) => `${status} ${code}`,
    );
    return { outcome: await outcome, parked: await redis.hLen(reference.parkedKey) };
  }

  test(`${PASSES - 1} changes are followed, and one more is 503 and not lost silently`, async () => {
    const followed = await classifyWhileChanging(PASSES - 1);
    expect(followed).toEqual({ outcome: "UNKNOWN_TRACKING", parked: 1 });
    const refused = await classifyWhileChanging(PASSES);
    expect(refused).toEqual({ outcome: "503 REFERENCES_BUSY", parked: 0 });
  });
});

describe("a tracking number change", () => {
  const changing = (from: string, to: string, members: Partial<CourierEvent> = {}) =>
    event({ trackingNumber: from, trackingNumberChange: { newTrackingNumber: to }, ...members });

  test("of a DUPLICATE has no effect, in its message or after it", async () => {
    const [number, announced] = [newNumber(), newNumber()];
    const id = await add(number);
    const one = event({ trackingNumber: number });
    await send(one);
    const again = changing(number, announced, { eventId: one.eventId });
    const dependent = event({ trackingNumber: announced });
    expect(await send(again, dependent)).toEqual(["DUPLICATE", "UNKNOWN_TRACKING"]);
    expect(await send(event({ trackingNumber: announced }))).toEqual(["UNKNOWN_TRACKING"]);
    expect(await eventsOf(id)).toEqual([[one.eventId]]);
  });

  test("of an event that comes twice in a message counts where the first of them has it", async () => {
    const [number, announced, other] = [newNumber(), newNumber(), newNumber()];
    await add(number);
    const one = changing(number, announced);
    const twin = changing(number, other, { eventId: one.eventId });
    const dependent = [announced, other].map((trackingNumber) => event({ trackingNumber }));
    expect(await send(one, twin, ...dependent)).toEqual([
      ...["ACCEPTED", "DUPLICATE"],
      ...["ACCEPTED", "UNKNOWN_TRACKING"],
    ]);
  });

  test("counts for every shipment that the event goes to", async () => {
    const [number, announced] = [newNumber(), newNumber()];
    const ids = [await add(number), await add(number, "beta-it")];
    const change = changing(number, announced);
    const next = event({ trackingNumber: announced });
    expect(await send(change, next)).toEqual(["ACCEPTED", "ACCEPTED"]);
    const both = [change.eventId, next.eventId];
    expect((await eventsOf(...ids)).map((own) => own.toSorted())).toEqual([
      both.toSorted(),
      both.toSorted(),
    ]);
  });

  test("finds as many shipments within its message as after it: the first of a company that announce it", async () => {
    const announced = newNumber();
    const ids: number[] = [];
    const changes: CourierEvent[] = [];
    for (let n = 0; n < SHIPMENTS_PER_COMPANY + 1; n += 1) {
      const number = newNumber();
      ids.push(await add(number));
      changes.push(changing(number, announced));
    }
    const one = event({ trackingNumber: announced });
    expect(new Set(await send(...changes, one))).toEqual(new Set(["ACCEPTED"]));
    const histories = await eventsOf(...ids);
    expect(histories.map((own) => own.includes(one.eventId))).toEqual([
      ...Array(SHIPMENTS_PER_COMPANY).fill(true),
      false,
    ]);
    const number = trackingReference("GLS_ITA", announced);
    const found = (await resolveReferences(runtime.redis, [number])).get(number.key) ?? [];
    expect(found).toHaveLength(SHIPMENTS_PER_COMPANY);
  });

  test(`${EVENTS_PER_MESSAGE} numbers that announce each other in a ring multiply no event beyond that`, async () => {
    await tracking.stopTrack();
    try {
      const numbers = Array.from({ length: EVENTS_PER_MESSAGE }, newNumber);
      for (const number of numbers) await add(number);
      const before = await readBalance(runtime.redis, runtime.live.configuration());
      const ring = numbers.map((number, at) =>
        changing(number, numbers[(at + 1) % numbers.length] ?? ""),
      );
      const { status, body } = await push(url, ring);
      expect([status, body.accepted]).toEqual([200, ring.length]);
      const { routed } = await readBalance(runtime.redis, runtime.live.configuration());
      expect(routed - before.routed).toBe(ring.length * SHIPMENTS_PER_COMPANY);
    } finally {
      tracking.startTrack();
      await settled();
    }
  });

  test("that was claimed and, because of a crash, not registered is registered from the log, with what was parked under it", async () => {
    const [number, announced] = [newNumber(), newNumber()];
    const id = await add(number);
    await send(event({ trackingNumber: number }));
    const { redis, live, config } = runtime;
    const change = changing(number, announced);
    const seen = seenBucket("GLS_ITA", change.eventId);
    const nowMs = live.now();
    const layout = await seenLayout(redis, nowMs, config.eventsPerDay);
    await tracking.stopTrack();
    const entry = JSON.stringify([id, "GLS_ITA", seen.factKey, nowMs, 0, change]);
    const terms = { layout, highWater: 1_000_000, courier: "GLS_ITA", nowMs };
    expect(await claimEvents(redis, terms, [{ seen, entry }])).toEqual(["claimed"]);
    const early = event({ trackingNumber: announced });
    expect((await push(url, [early])).body.unknownTracking).toBe(1);
    tracking.startTrack();
    await settled();
    expect((await eventsOf(id)).flat()).toEqual(expect.arrayContaining([early.eventId]));
    expect(await send(event({ trackingNumber: announced }))).toEqual(["ACCEPTED"]);
  });
});
