/** What one entry of a log holds at most, at N and N + 1, and how long the memory of an eventId lives. */
import { expect, test } from "bun:test";
import fc from "fast-check";
import {
  claimEvents,
  decodeLoggedEvent,
  encodeLoggedEvent,
  lookUpEvents,
  REMEMBERED_PER_CALL,
  rememberEvents,
  splitEvents,
} from "#core/events/store/event-log.ts";
import { bucketKeys, SEEN_TTL_SECONDS, seenBucket, seenLayout } from "#core/events/store/seen.ts";
import { changeLogs, eventKeys } from "#core/platform/redis/keys.ts";
import { decodeChangeEntry, splitChanges } from "#core/shipments/store/change-log.ts";
import { trackHandler } from "#processors/track/track.ts";
import { event } from "#test/support/clients/courier.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { addShipment } from "#test/support/data/shipments.ts";
import { forAll } from "#test/support/for-all.ts";
import { openTestRuntime } from "#test/support/product/runtime.ts";
import { recordCalls } from "#test/support/scripts/script-calls.ts";

const LIMIT = 100;
const COURIER = "GLS_ITA";

const runtime = forAll(() => openTestRuntime(testSetup()));

/** An event whose id falls into the first partition. */
function seenEvent() {
  for (;;) {
    const one = event();
    const seen = seenBucket(COURIER, one.eventId);
    if (seen.partition === 0) return { event: one, seen };
  }
}

async function claim(count: number): Promise<string[][]> {
  const { redis } = runtime;
  const { log } = eventKeys(0);
  await redis.xTrim(log, "MAXLEN", 0);
  const layout = await seenLayout(redis, Date.now(), runtime.config.eventsPerDay);
  const claims = Array.from({ length: count }, (_, messageIndex) => {
    const { event: one, seen } = seenEvent();
    const logged = { shipmentId: 1, courier: COURIER, receivedAtMs: 1, messageIndex, event: one };
    return { seen, entry: encodeLoggedEvent({ ...logged, factKey: seen.factKey }) };
  });
  const terms = { layout, highWater: 1_000_000, courier: COURIER, nowMs: Date.now() };
  expect(new Set(await claimEvents(redis, terms, claims))).toEqual(new Set(["claimed"]));
  const [bucket = ""] = bucketKeys(layout, claims[0]?.seen ?? seenBucket(COURIER, ""));
  expect(await redis.ttl(bucket)).toBeGreaterThan(SEEN_TTL_SECONDS - 60);
  const entries = (await redis.xRange(log, "-", "+")) ?? [];
  return entries.map(({ message }) => splitEvents(message).map(({ e = "" }) => e));
}

test("only what is claimed of a call stands in the log, byte for byte", async () => {
  const { redis } = runtime;
  const { log } = eventKeys(0);
  const layout = await seenLayout(redis, Date.now(), runtime.config.eventsPerDay);
  const terms = { layout, highWater: 1_000_000, courier: COURIER, nowMs: Date.now() };
  const kinds = fc.array(
    fc.tuple(fc.constantFrom("claim", "again", "look"), fc.string({ unit: "binary" })),
    { minLength: 1, maxLength: 12 },
  );
  await fc.assert(
    fc.asyncProperty(kinds, async (drawn) => {
      await redis.xTrim(log, "MAXLEN", 0);
      const claims = drawn.map(([kind, text]) => {
        const entry = kind === "look" ? null : JSON.stringify(`${text} perché 🚚`);
        return { kind, claim: { seen: seenEvent().seen, entry } };
      });
      const known = claims.filter(({ kind }) => kind === "again").map(({ claim }) => claim);
      await claimEvents(redis, terms, known);
      await redis.xTrim(log, "MAXLEN", 0);
      const outcomes = await claimEvents(
        redis,
        terms,
        claims.map(({ claim }) => claim),
      );
      const expected = { claim: "claimed", again: "known", look: "not_known" } as const;
      expect(outcomes).toEqual(drawn.map(([kind]) => expected[kind]));
      const entries = (await redis.xRange(log, "-", "+")) ?? [];
      const logged = entries.flatMap(({ message }) => splitEvents(message).map(({ e }) => e));
      const claimed = claims.filter(({ kind }) => kind === "claim").map(({ claim }) => claim.entry);
      expect(logged).toEqual(claimed as string[]);
    }),
    { numRuns: 60 },
  );
});

test("a bucket of eventIds lives from its first id on, whatever comes later", async () => {
  const { redis } = runtime;
  const layout = { generations: [{ number: 999, buckets: 1 }] };
  const terms = { layout, highWater: 1_000_000, courier: COURIER, nowMs: Date.now() };
  const { seen } = seenEvent();
  const [bucket = ""] = bucketKeys(layout, seen);
  await claimEvents(redis, terms, [{ seen, entry: "{}" }]);
  expect(await redis.ttl(bucket)).toBeGreaterThan(SEEN_TTL_SECONDS - 60);
  await redis.expire(bucket, 1_000);
  await claimEvents(redis, terms, [{ seen: seenEvent().seen, entry: "{}" }]);
  expect(await redis.sCard(bucket)).toBe(2);
  expect(await redis.ttl(bucket)).toBeLessThanOrEqual(1_000);
});

test(`an entry of the event log holds ${LIMIT} events, and one more stands in the next`, async () => {
  expect((await claim(LIMIT)).map(({ length }) => length)).toEqual([LIMIT]);
  const entries = await claim(LIMIT + 1);
  expect(entries.map(({ length }) => length)).toEqual([LIMIT, 1]);
  const indices = entries.flat().map((text) => decodeLoggedEvent(text).messageIndex);
  expect(indices).toEqual(Array.from({ length: LIMIT + 1 }, (_, index) => index));
});

/** @returns shipments of the changes, by entry, the largest first */
async function apply(ids: readonly number[]): Promise<number[][]> {
  const { redis } = runtime;
  for (const key of changeLogs()) await redis.xTrim(key, "MAXLEN", 0);
  const track = trackHandler({ ...runtime, eventsPerDay: runtime.config.eventsPerDay });
  const entries = ids.map((shipmentId, messageIndex) => {
    const { event: one, seen } = seenEvent();
    const logged = { shipmentId, courier: COURIER, receivedAtMs: 1, messageIndex, event: one };
    const e = encodeLoggedEvent({ ...logged, factKey: seen.factKey });
    return { key: eventKeys(0).log, id: `${messageIndex}-0`, fields: { e } };
  });
  expect(await track(entries)).toEqual([]);
  const logged = await Promise.all(changeLogs().map((key) => redis.xRange(key, "-", "+")));
  return logged
    .flatMap((own) => (own ?? []).map(({ message }) => splitChanges(message)))
    .map((changes) => changes.map((fields) => decodeChangeEntry(fields).shipmentId))
    .sort((one, other) => other.length - one.length);
}

const repeat = (id: number, times: number) => Array.from({ length: times }, () => id);

test(`an entry of the change log holds ${LIMIT} changes, and one more stands in the next`, async () => {
  const ids: number[] = [];
  for (let n = 0; n <= LIMIT; n += 1) ids.push(await addShipment(runtime, `LIMIT-${n}`));
  const byShipments = await apply(ids);
  expect(byShipments.map(({ length }) => length)).toEqual([LIMIT, 1]);
  expect(byShipments.flat().sort((one, other) => one - other)).toEqual(ids);
  const [first = 0, second = 0] = ids;
  const half = LIMIT / 2;
  expect(await apply([...repeat(first, half), ...repeat(second, half)])).toEqual([
    [...repeat(first, half), ...repeat(second, half)],
  ]);
  expect(await apply([...repeat(first, half), ...repeat(second, half + 1)])).toEqual([
    repeat(second, half + 1),
    repeat(first, half),
  ]);
  // Those of one shipment are written in one step and stay together.
  expect(await apply(repeat(first, LIMIT + 1))).toEqual([repeat(first, LIMIT + 1)]);
});

for (const [count, sizes] of [
  [REMEMBERED_PER_CALL, [REMEMBERED_PER_CALL]],
  [REMEMBERED_PER_CALL + 1, [REMEMBERED_PER_CALL, 1]],
] as const) {
  test(`${count} eventIds of one partition are remembered in calls of ${sizes.join(" and ")}`, async () => {
    const { redis, calls } = recordCalls(runtime.redis);
    const layout = await seenLayout(redis, Date.now(), runtime.config.eventsPerDay);
    const ids = Array.from({ length: count }, () => seenEvent().seen);
    await rememberEvents(redis, layout, ids);
    expect(calls.map(({ keys }) => keys.length)).toEqual([...sizes]);
    const outcomes = await lookUpEvents(runtime.redis, layout, ids);
    expect(new Set(outcomes)).toEqual(new Set(["known"]));
  });
}
