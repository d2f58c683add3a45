import { expect, test } from "bun:test";
import { forCompanies } from "#analytics/archive/companies-in-turn.ts";

test("companies that a round had no time for come first in the next one, and none is left out", async () => {
  const rounds: number[][] = [];
  let last = 0;
  for (let round = 0; round < 4; round += 1) {
    const done: number[] = [];
    const terms = { isStopping: () => false, isTimeUp: () => done.length === 2 };
    last = await forCompanies(terms, [3, 1, 2], last, async (id) => done.push(id));
    rounds.push(done);
  }
  expect(rounds).toEqual([
    [1, 2],
    [3, 1],
    [2, 3],
    [1, 2],
  ]);
});

test("a round that has time for all begins with the first company again", async () => {
  const done: number[] = [];
  const terms = { isStopping: () => false, isTimeUp: () => false };
  expect(await forCompanies(terms, [1, 2, 3], 2, async (id) => done.push(id))).toBe(0);
  expect(done).toEqual([3, 1, 2]);
});
