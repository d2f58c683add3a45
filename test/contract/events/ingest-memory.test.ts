/** What ingest remembers and for how long: eventIds over generations, parked events within bounds (document 2, Limits). */
import { beforeAll, describe, expect, test } from "bun:test";
import { advanceClock } from "#core/configuration/store/live.ts";
import { minimalEvent } from "#core/events/rules/fact.ts";
import {
  dropParked,
  expireParked,
  isInTime,
  PARKED_KEPT_MS,
  PARKED_MS,
  PARKED_PER_CALL,
  PARKED_PER_REFERENCE,
  type ParkedEvent,
  parkEvents,
  REFERENCES_PER_CALL,
  readParked,
} from "#core/events/store/parked.ts";
import { bucketKeys, GENERATION_DAYS, seenBucket, seenLayout } from "#core/events/store/seen.ts";
import {
  parkedCountsKey,
  parkedDueKey,
  type Reference,
  trackingReference,
} from "#core/platform/redis/keys.ts";
import { partitionCount } from "#core/platform/redis/partitions.ts";
import { startIngest } from "#ingest/main.ts";
import { event, push } from "#test/support/clients/courier.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { addShipment } from "#test/support/data/shipments.ts";
import { forAll } from "#test/support/for-all.ts";
import { openTestRuntime } from "#test/support/product/runtime.ts";
import { recordCalls } from "#test/support/scripts/script-calls.ts";

const DAY_SECONDS = 86_400;
const DAY_MS = DAY_SECONDS * 1000;

let url: string;

const runtime = forAll(() => openTestRuntime(testSetup(), { STORE_PARTITIONS: "16" }));
const ingest = forAll(() => startIngest(runtime));
beforeAll(async () => {
  url = ingest.url ?? "";
  await addShipment(runtime, "TN1");
});

describe("parked events", () => {
  let counter = 0;
  const T0 = Date.parse("2026-11-20T10:00:00Z");

  /** A reference of this partition. */
  function referenceOf(partition: number): Reference {
    for (;;) {
      counter += 1;
      const reference = trackingReference("GLS_ITA", `PARK-${counter}`);
      if (reference.partition === partition) return reference;
    }
  }

  function parked(receivedAtMs: number): ParkedEvent {
    const { eventId } = event();
    const { factKey } = seenBucket("GLS_ITA", eventId);
    const minimal = minimalEvent(event({ eventId }));
    return { factKey, event: minimal, receivedAtMs, sentAtMs: receivedAtMs, messageIndex: 0 };
  }

  const park = (reference: Reference, event: ParkedEvent, limit?: number) =>
    parkEvents(
      runtime.redis,
      [{ reference, fingerprint: "", parked: event }],
      event.receivedAtMs,
      limit,
    );

  /** Keys of what a reference holds. */
  async function heldUnder(reference: Reference, nowMs: number): Promise<string[]> {
    const parked = await readParked(runtime.redis, [reference]);
    const inTime = (parked.get(reference.key) ?? []).filter((one) => isInTime(one, nowMs));
    return inTime.map(({ factKey }) => factKey).sort();
  }

  test("of one reference: the limit is kept, and one more displaces the oldest", async () => {
    const reference = referenceOf(1);
    const events = Array.from({ length: PARKED_PER_REFERENCE }, (_, n) => parked(T0 + n));
    for (const one of events) expect(await park(reference, one)).toEqual(["parked"]);
    const keys = events.map(({ factKey }) => factKey);
    const now = T0 + PARKED_PER_REFERENCE;
    expect(await heldUnder(reference, now)).toEqual(keys.toSorted());
    const [oldest] = events;
    // Sent again it is the youngest, and the next one is the oldest.
    if (oldest) await park(reference, { ...oldest, receivedAtMs: now });
    const more = parked(now);
    expect(await park(reference, more)).toEqual(["displaced"]);
    const left = keys.filter((key) => key !== events[1]?.factKey);
    expect(await heldUnder(reference, now)).toEqual([...left, more.factKey].sort());
    const counts = await runtime.redis.hGetAll(parkedCountsKey(1));
    expect(Object.values(counts).map(Number)).toEqual([PARKED_PER_REFERENCE]);
  });

  test("of one reference in one message: the last of them are kept", async () => {
    const reference = referenceOf(7);
    const items = Array.from({ length: PARKED_PER_REFERENCE + 3 }, (_, messageIndex) => ({
      reference,
      fingerprint: "",
      parked: { ...parked(T0), messageIndex },
    }));
    await parkEvents(runtime.redis, items, T0);
    const keys = items.map((item) => item.parked.factKey);
    expect(await heldUnder(reference, T0)).toEqual(keys.slice(3).sort());
  });

  for (const [count, calls] of [
    [REFERENCES_PER_CALL, 1],
    [REFERENCES_PER_CALL + 1, 2],
  ] as const) {
    test(`of ${count} references at their limit: each displaces its oldest, in calls of ${REFERENCES_PER_CALL}`, async () => {
      const references = Array.from({ length: count }, () => referenceOf(12));
      const itemsOf = (reference: Reference, length: number, from: number) =>
        Array.from({ length }, (_, n) => ({
          reference,
          fingerprint: "",
          parked: { ...parked(T0), messageIndex: from + n },
        }));
      const first = references.flatMap((one) => itemsOf(one, PARKED_PER_REFERENCE, 0));
      await parkEvents(runtime.redis, first, T0);
      const recorded = recordCalls(runtime.redis);
      const others = Array.from({ length: PARKED_PER_CALL - 2 * count }, () => referenceOf(12));
      const more = [
        ...references.flatMap((one) => itemsOf(one, 2, PARKED_PER_REFERENCE)),
        ...others.flatMap((one) => itemsOf(one, 1, 0)),
      ];
      const outcomes = await parkEvents(recorded.redis, more, T0);
      const displaced = Array(2 * count).fill("displaced");
      expect(outcomes).toEqual([...displaced, ...Array(others.length).fill("parked")]);
      expect(recorded.calls).toHaveLength(calls);
      for (const reference of references) {
        const keys = [...first, ...more].filter((item) => item.reference === reference);
        const left = keys.slice(2).map((item) => item.parked.factKey);
        expect(await heldUnder(reference, T0)).toEqual(left.sort());
      }
    });
  }

  for (const count of [PARKED_PER_CALL, PARKED_PER_CALL + 1]) {
    test(`${count} of one message and partition are all parked, and all dropped`, async () => {
      const items = Array.from({ length: count }, () => ({
        reference: referenceOf(10),
        fingerprint: "",
        parked: parked(T0),
      }));
      const outcomes = await parkEvents(runtime.redis, items, T0);
      expect(outcomes).toEqual(Array(count).fill("parked"));
      const references = items.map(({ reference }) => reference);
      expect((await readParked(runtime.redis, references)).size).toBe(count);
      await dropParked(
        runtime.redis,
        items.map(({ reference, parked: { factKey } }) => ({ factKey, references: [reference] })),
      );
      expect((await readParked(runtime.redis, references)).size).toBe(0);
    });
  }

  test("of a partition: its share of the limit is kept, one more is answered and not kept", async () => {
    const limit = 5 * partitionCount("t");
    const outcomes = [];
    for (let sent = 0; sent < 6; sent += 1) {
      outcomes.push(...(await park(referenceOf(2), parked(T0), limit)));
    }
    expect(outcomes).toEqual([...Array(5).fill("parked"), "full"]);
    expect(await park(referenceOf(3), parked(T0), limit)).toEqual(["parked"]);
  });

  test("a resend takes no further place, an applied one gives its place back", async () => {
    const limit = 2 * partitionCount("t");
    const [reference, other] = [referenceOf(4), referenceOf(4)];
    const [first, second, third] = [parked(T0), parked(T0), parked(T0)];
    for (let sent = 0; sent < 3; sent += 1) await park(reference, first, limit);
    expect(await park(other, second, limit)).toEqual(["parked"]);
    expect(await park(other, third, limit)).toEqual(["full"]);
    const applied = [{ references: [reference, other], factKey: first.factKey }];
    await dropParked(runtime.redis, applied);
    await dropParked(runtime.redis, applied);
    expect(await park(other, third, limit)).toEqual(["parked"]);
    const counts = await runtime.redis.hGetAll(parkedCountsKey(4));
    expect(Object.values(counts).map(Number)).toEqual([2]);
  });

  test("for 7 days an event can be released, and after 30 it is gone without processors, also where its reference goes on receiving", async () => {
    const reference = referenceOf(5);
    const old = parked(T0);
    await park(reference, old);
    expect(await heldUnder(reference, T0 + PARKED_MS - 1)).toEqual([old.factKey]);
    expect(await heldUnder(reference, T0 + PARKED_MS)).toEqual([]);
    const held = () => runtime.redis.hKeys(reference.parkedKey);
    const [before, after] = [parked(T0 + PARKED_KEPT_MS - 1), parked(T0 + PARKED_KEPT_MS)];
    await park(reference, before);
    expect((await held()).toSorted()).toEqual([old.factKey, before.factKey].toSorted());
    await park(reference, after);
    expect((await held()).toSorted()).toEqual([before.factKey, after.factKey].toSorted());
  });

  test("a resend renews the 7 days of its event and of no other, and what is over is deleted", async () => {
    const reference = referenceOf(8);
    const [renewed, neighbour] = [parked(T0), parked(T0)];
    await park(reference, renewed);
    await park(reference, neighbour);
    await park(reference, { ...renewed, receivedAtMs: T0 + PARKED_MS - 1 });
    await expireParked(runtime.redis, T0 + PARKED_MS - 1);
    expect(await heldUnder(reference, T0 + PARKED_MS - 1)).toHaveLength(2);
    await expireParked(runtime.redis, T0 + PARKED_MS);
    expect(await runtime.redis.hKeys(reference.parkedKey)).toEqual([renewed.factKey]);
    const [left] = (await readParked(runtime.redis, [reference])).values();
    // What counts for the order of facts is when it was received first.
    expect(left).toMatchObject([{ receivedAtMs: T0, messageIndex: 0 }]);
    await expireParked(runtime.redis, T0 + 2 * PARKED_MS - 1);
    expect(await runtime.redis.exists(reference.parkedKey)).toBe(0);
    expect(await runtime.redis.exists([parkedCountsKey(8), parkedDueKey(8)])).toBe(0);
  });

  test("many references that are due at once are all looked through", async () => {
    const references = Array.from({ length: 50 }, () => referenceOf(9));
    for (const reference of references) await park(reference, parked(T0));
    expect(await expireParked(runtime.redis, T0 + PARKED_MS)).toBeGreaterThanOrEqual(50);
    const keys = references.map(({ parkedKey }) => parkedKey);
    expect(await runtime.redis.exists(keys)).toBe(0);
  });

  test("places of days that are over are free again", async () => {
    const limit = partitionCount("t");
    await park(referenceOf(6), parked(T0), limit);
    expect(await park(referenceOf(6), parked(T0 + PARKED_KEPT_MS), limit)).toEqual(["full"]);
    const later = T0 + PARKED_KEPT_MS + DAY_MS;
    expect(await park(referenceOf(6), parked(later), limit)).toEqual(["parked"]);
  });
});

/** Last, because it moves the clock by years. */
describe("eventIds over generations", () => {
  const sendAgain = async (sent: unknown) => (await push(url, [sent])).body.results[0].outcome;
  const advanceDays = (days: number) => advanceClock(runtime.redis, days * DAY_SECONDS);

  test("an id is known for 183 days, wherever in a generation it was taken", async () => {
    for (const offsetDays of [0, 31, 61]) {
      await advanceDays(offsetDays);
      const sent = event();
      expect(await sendAgain(sent)).toBe("ACCEPTED");
      await advanceDays(183);
      expect(await sendAgain(sent)).toBe("DUPLICATE");
      expect((await push(url, [sent], { path: "/v1/events/validate" })).body.duplicate).toBe(1);
    }
  });

  test("three generations later it is forgotten", async () => {
    const sent = event();
    expect(await sendAgain(sent)).toBe("ACCEPTED");
    await advanceDays(3 * GENERATION_DAYS);
    expect(await sendAgain(sent)).toBe("ACCEPTED");
  });

  test("each generation has buckets of its own, which expire by themselves", async () => {
    const sent = event();
    await sendAgain(sent);
    await runtime.live.refresh();
    const layout = await seenLayout(runtime.redis, runtime.live.now(), runtime.config.eventsPerDay);
    const keys = bucketKeys(layout, seenBucket("GLS_ITA", sent.eventId));
    expect(new Set(keys).size).toBe(layout.generations.length);
    const ttl = await runtime.redis.ttl(keys[0] ?? "");
    expect(ttl).toBeGreaterThan(3 * GENERATION_DAYS * DAY_SECONDS);
    expect(ttl).toBeLessThanOrEqual((3 * GENERATION_DAYS + 1) * DAY_SECONDS);
  });
});
