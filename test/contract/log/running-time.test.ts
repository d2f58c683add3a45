/** Design, "Our own downtime is nobody's fault": when processors were running, as it is kept in the store. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import {
  createRunningTime,
  DOWNTIMES_KEPT,
  readDowntimes,
} from "#core/platform/log/running-time.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import { RUNNING_KEYS } from "#core/platform/redis/keys.ts";
import { runningMs } from "#core/platform/time/running-time.ts";
import { eventually } from "#test/support/eventually.ts";
import { openTestRedis } from "#test/support/servers/servers.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const T0 = Date.parse("2026-11-20T10:00:00Z");

describe("the time in which processors were running", () => {
  const down = [
    { fromMs: T0, toMs: T0 + 10 },
    { fromMs: T0 + 50, toMs: T0 + 60 },
  ];
  test.each([
    ["without the downtimes between", -5, 100, 85],
    ["without what lies in it of a downtime that has begun before", 5, 100, 80],
    ["without what lies in it of a downtime that goes on", 20, 55, 30],
    ["none within a downtime", 2, 8, 0],
    ["all where there was no downtime", 20, 40, 20],
    ["none backwards", 40, 20, 0],
  ])("%s", (_, from, to, expected) => {
    expect(runningMs(down, T0 + from, T0 + to)).toBe(expected);
  });
});

describe("a downtime", () => {
  let redis: Redis;
  let stop: () => Promise<void>;

  beforeAll(async () => {
    ({ redis, stop } = await openTestRedis());
  });
  beforeEach(() => redis.flushAll());
  afterAll(() => stop());

  const daysOf = async () =>
    (await readDowntimes(redis)).map(({ fromMs, toMs }) => [
      (fromMs - T0) / DAY_MS,
      (toMs - T0) / DAY_MS,
    ]);

  test("reaches from the last heartbeat to the next start, and is known to the one that starts", async () => {
    const before = createRunningTime(redis);
    await before.note(T0);
    await before.end(T0 + DAY_MS);
    const measure = await createRunningTime(redis).note(T0 + 5 * DAY_MS);
    expect(await daysOf()).toEqual([[1, 5]]);
    expect(measure(T0, T0 + 6 * DAY_MS)).toBe(2 * DAY_MS);
  });

  test("is none at the first start, while another process is running, or where one replaces another", async () => {
    const [first, second] = [createRunningTime(redis), createRunningTime(redis)];
    await first.note(T0);
    await second.note(T0);
    await first.end(T0 + 1);
    await second.note(T0 + 2 * DAY_MS);
    await createRunningTime(redis).note(T0 + 3 * DAY_MS);
    await second.end(T0 + 3 * DAY_MS);
    expect(await daysOf()).toEqual([]);
  });

  test("is none where the clock is moved while processors are running, forwards or back", async () => {
    const running = createRunningTime(redis);
    for (const days of [0, 4, 2, 9]) await running.note(T0 + days * DAY_MS);
    expect(await daysOf()).toEqual([]);
  });

  test("counts once where the clock was set back and the time came again", async () => {
    for (const [up, down] of [
      [0, 4],
      [6, 7],
      [1, 2],
      [5, 8],
    ] as const) {
      const running = createRunningTime(redis);
      await running.note(T0 + up * DAY_MS);
      await running.end(T0 + down * DAY_MS);
    }
    const measure = await createRunningTime(redis).note(T0 + 9 * DAY_MS);
    expect(await daysOf()).toEqual([
      [2, 5],
      [4, 6],
      [8, 9],
    ]);
    expect(measure(T0, T0 + 10 * DAY_MS)).toBe(5 * DAY_MS);
  });

  test("is noted after a process that was killed, once it has sent no heartbeat for long enough", async () => {
    const killed = createRunningTime(redis, 1);
    await killed.note(T0);
    const next = createRunningTime(redis, 1);
    let days = 3;
    await eventually(async () => {
      days += 1;
      await next.note(T0 + days * DAY_MS);
      return (await daysOf()).length > 0;
    }, "the killed process counts as gone");
    expect((await daysOf())[0]).toEqual([expect.any(Number), days]);
  });

  test("is learned of by those who knew of earlier ones", async () => {
    const steady = createRunningTime(redis);
    await steady.note(T0);
    await redis.del(RUNNING_KEYS.running);
    const measure = await steady.note(T0 + DAY_MS);
    expect(measure(T0, T0 + DAY_MS)).toBe(0);
    await redis.del(RUNNING_KEYS.running);
    const again = await steady.note(T0 + 2 * DAY_MS);
    expect(again(T0, T0 + 3 * DAY_MS)).toBe(DAY_MS);
  });

  test(`is remembered by itself up to ${DOWNTIMES_KEPT}; one more, and the two oldest become one with the time between`, async () => {
    for (let n = 0; n < DOWNTIMES_KEPT; n += 1) {
      const running = createRunningTime(redis);
      await running.note(T0 + 2 * n * HOUR_MS);
      await running.end(T0 + (2 * n + 1) * HOUR_MS);
    }
    await createRunningTime(redis).note(T0 + 2 * DOWNTIMES_KEPT * HOUR_MS);
    const all = await readDowntimes(redis);
    expect(all).toHaveLength(DOWNTIMES_KEPT);
    expect(all[0]).toEqual({ fromMs: T0 + HOUR_MS, toMs: T0 + 2 * HOUR_MS });
    await redis.del(RUNNING_KEYS.running);
    await createRunningTime(redis).note(T0 + (2 * DOWNTIMES_KEPT + 1) * HOUR_MS);
    const joined = await readDowntimes(redis);
    expect(joined).toHaveLength(DOWNTIMES_KEPT);
    expect(joined[0]).toEqual({ fromMs: T0 + HOUR_MS, toMs: T0 + 4 * HOUR_MS });
    expect(joined.slice(1, 3)).toEqual(all.slice(2, 4));
  });
});
