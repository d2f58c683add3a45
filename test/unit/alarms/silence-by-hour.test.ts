/** How often the watch of alarms asks ClickHouse for silent couriers: each question keeps the embedded engine awake. */
import { expect, test } from "bun:test";
import { silenceByHour } from "#panel/server/operations/silent-couriers.ts";

const HOUR_MS = 3_600_000;
const row = (silent: boolean) => {
  return { courier: "GLS_ITA", seen: 0, weeks: 1, expected: 0, lastHourMs: 0, silent };
};

test("one question an hour while no courier is silent, and one each time while one is or the question fails", async () => {
  let [asked, silent, isAway] = [0, false, false];
  const silence = silenceByHour(async () => {
    asked += 1;
    if (isAway) throw new Error("away");
    return [row(silent)];
  });
  for (const atMs of [0, 1, HOUR_MS - 1]) expect(await silence(atMs)).toEqual([row(false)]);
  expect(asked).toBe(1);
  isAway = true;
  for (const atMs of [HOUR_MS, HOUR_MS + 1]) await expect(silence(atMs)).rejects.toThrow("away");
  expect(asked).toBe(3);
  [isAway, silent] = [false, true];
  for (const atMs of [HOUR_MS + 2, HOUR_MS + 3]) expect(await silence(atMs)).toEqual([row(true)]);
  expect(asked).toBe(5);
});
