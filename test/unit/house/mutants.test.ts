/** The mutants of `npm run tool -- mutate`: each is one change, and the source is a program still. */
import { expect, test } from "bun:test";
import { luaMutantsOf } from "#test/mutation/lua-mutants.ts";
import { withReasons } from "#test/mutation/record.ts";
import { mutantsOf } from "#test/mutation/typescript-mutants.ts";

const RULE = `type Limit = 3 | 4;
export function isOver(count: number, limit = 3): boolean {
  if (!limit) return false;
  return count >= limit && Math.max(count, 1) > 0;
}`;

test("a rule is changed in its operators, values, conditions and calls, not in its types", () => {
  const mutants = mutantsOf("rule.ts", RULE);
  const changes = mutants.map(({ line, before, after }) => `${line} ${before}>${after}`);
  expect(changes.toSorted()).toEqual([
    "2 3>4",
    "3 !>",
    "3 !limit>false",
    "3 !limit>true",
    "3 false>true",
    "4 &&>||",
    "4 0>1",
    "4 1>2",
    "4 >=>>",
    "4 >>>=",
    "4 max>min",
  ]);
  for (const { source } of mutants) expect(() => mutantsOf("rule.ts", source)).not.toThrow();
});

const SCRIPT = `#!lua
-- if a < 1 then
local due = assert(ARGV[1] + 0, 'a time')
local share = ARGV[2] + 0
if due <= 10 and not gone then
  redis.call('DEL', KEYS[1])
end
return 1`;

test("a script is changed in its conditions, numbers and effects, not in comments and checks of arguments", () => {
  const changes = luaMutantsOf(SCRIPT).map(
    ({ line, before, after }) => `${line} ${before}>${after}`,
  );
  expect(changes.toSorted()).toEqual([
    "5 10>11",
    "5 <=><",
    "5 and>or",
    "5 not>",
    "6 redis.call('DEL', KEYS[1])>do end",
    "8 1>2",
  ]);
});

test("a survivor keeps its reason where it stands, and where it has moved to if no other has the same change", () => {
  const zero = { before: "0", after: "1" };
  const over = { before: ">", after: ">=" };
  const known = [
    { line: 4, ...zero, reason: "none is empty" },
    { line: 9, ...over, reason: "never equal" },
  ];
  expect(withReasons([{ line: 12, ...over }], known)).toEqual([
    { line: 12, ...over, reason: "never equal" },
  ]);
  const [kept, other] = withReasons(
    [4, 7].map((line) => ({ line, ...zero })),
    known,
  );
  expect([kept, other]).toEqual([
    { line: 4, ...zero, reason: "none is empty" },
    { line: 7, ...zero },
  ]);
  expect(
    withReasons(
      [5, 7].map((line) => ({ line, ...zero })),
      known,
    ),
  ).toEqual([5, 7].map((line) => ({ line, ...zero })));
});
