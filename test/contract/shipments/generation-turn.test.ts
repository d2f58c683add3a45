/** Processes whose clocks differ by up to a day know each other's eventIds while one generation of them follows the other. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type ClaimOutcome, claimEvents, rememberEvents } from "#core/events/store/event-log.ts";
import {
  CLOCK_SKEW_MS,
  GENERATION_DAYS,
  generationOf,
  seenBucket,
  seenLayout,
} from "#core/events/store/seen.ts";
import { connectRedis, type Redis } from "#core/platform/redis/client.ts";
import { SYSTEM_KEY } from "#core/platform/redis/keys.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { openTestRuntime, type TestRuntime } from "#test/support/product/runtime.ts";
import { startTestRedis } from "#test/support/servers/servers.ts";

const GENERATION_MS = GENERATION_DAYS * 86_400_000;
const HOUR_MS = 3_600_000;
const COURIER = "GLS_ITA";

let runtime: TestRuntime;
let behind: Redis;
let ahead: Redis;
/** Each test has a turn of its own. */
let turnMs = (generationOf(Date.now()) + 10) * GENERATION_MS;
let events = 0;

beforeAll(async () => {
  const server = await startTestRedis();
  runtime = await openTestRuntime(testSetup(), {}, server);
  behind = await connectRedis(server.address, runtime.log);
  ahead = await connectRedis(server.address, runtime.log);
});
afterAll(async () => {
  behind.destroy();
  ahead.destroy();
  await runtime.end();
});

function nextTurn(): number {
  turnMs += 10 * GENERATION_MS;
  return turnMs;
}

function layoutAt(redis: Redis, nowMs: number) {
  return seenLayout(redis, nowMs, runtime.config.eventsPerDay);
}

async function claim(redis: Redis, nowMs: number, eventId: string): Promise<ClaimOutcome> {
  const layout = await layoutAt(redis, nowMs);
  const terms = { layout, highWater: 1_000_000, courier: COURIER, nowMs };
  const [outcome] = await claimEvents(redis, terms, [
    { seen: seenBucket(COURIER, eventId), entry: "{}" },
  ]);
  return outcome as ClaimOutcome;
}

function newId(): string {
  events += 1;
  return `turn-${events}`;
}

describe("an eventId that was claimed in the next generation is known to a process that is behind", () => {
  for (const skewMs of [1, HOUR_MS, CLOCK_SKEW_MS]) {
    test(`by ${skewMs} ms`, async () => {
      const turn = nextTurn();
      const id = newId();
      expect(await claim(ahead, turn, id)).toBe("claimed");
      expect(await claim(behind, turn - skewMs, id)).toBe("known");
    });
  }

  test("also one that was parked and is only remembered", async () => {
    const turn = nextTurn();
    const id = newId();
    await rememberEvents(ahead, await layoutAt(ahead, turn), [seenBucket(COURIER, id)]);
    expect(await claim(behind, turn - HOUR_MS, id)).toBe("known");
  });
});

describe("an eventId that was claimed in the old generation is known to a process that is ahead", () => {
  test("also when nobody had begun the old one before", async () => {
    const turn = nextTurn();
    const [first, later] = [newId(), newId()];
    expect(await claim(ahead, turn + CLOCK_SKEW_MS - 1, first)).toBe("claimed");
    expect(await claim(behind, turn - 1, later)).toBe("claimed");
    expect(await claim(ahead, turn + CLOCK_SKEW_MS - 1, later)).toBe("known");
  });
});

test("of two processes on both sides of the turn that claim the same eventIds at once, one claims each", async () => {
  const turn = nextTurn();
  const ids = Array.from({ length: 200 }, newId);
  const outcomes = await Promise.all(
    ids.flatMap((id, at) => {
      const first = () => claim(behind, turn - HOUR_MS, id);
      const second = () => claim(ahead, turn + HOUR_MS, id);
      return at % 2 === 0 ? [first(), second()] : [second(), first()];
    }),
  );
  expect(outcomes.filter((outcome) => outcome === "claimed").length).toBe(ids.length);
});

test("the next generation is looked at a day before its turn, and no sooner", async () => {
  const turn = nextTurn();
  const next = generationOf(turn);
  const numbersAt = async (nowMs: number) =>
    (await layoutAt(behind, nowMs)).generations.map(({ number }) => number);
  expect(await numbersAt(turn - CLOCK_SKEW_MS - 1)).toEqual([next - 1]);
  expect(await numbersAt(turn - CLOCK_SKEW_MS)).toEqual([next - 1, next]);
  expect(await numbersAt(turn + CLOCK_SKEW_MS)).toEqual([next, next - 1]);
});

test("the old generation gets its buckets until a day after the turn, and not later", async () => {
  const begun = (number: number) => ahead.hExists(SYSTEM_KEY, `seen:${number}`);
  const [late, early] = [nextTurn(), nextTurn()];
  await layoutAt(ahead, late + CLOCK_SKEW_MS);
  expect(await begun(generationOf(late) - 1)).toBe(0);
  await layoutAt(ahead, early + CLOCK_SKEW_MS - 1);
  expect(await begun(generationOf(early) - 1)).toBe(1);
});

test("an eventId is known for 183 days, also to a process whose clock is a day ahead of the one that claimed it", async () => {
  const turn = nextTurn();
  const id = newId();
  const claimedMs = turn - 1;
  expect(await claim(behind, claimedMs, id)).toBe("claimed");
  expect(await claim(ahead, claimedMs + 183 * 86_400_000 + CLOCK_SKEW_MS, id)).toBe("known");
});
