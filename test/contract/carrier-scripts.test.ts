/** The scripts of labels and stock releases refuse wrong arguments before their first write, and build no key that they do not declare. */
import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { type Redis, run, script } from "#core/redis/client/client.ts";
import claimId from "#core/redis/merchant/claim-id.lua" with { type: "text" };
import claimLabel from "#core/redis/merchant/claim-label.lua" with { type: "text" };
import claimRelease from "#core/redis/merchant/claim-release.lua" with { type: "text" };
import confirmLabels from "#core/redis/merchant/confirm-labels.lua" with { type: "text" };
import settleLabel from "#core/redis/merchant/settle-label.lua" with { type: "text" };
import { openTestRuntime, type TestRuntime } from "#test/support/runtime.ts";

let runtime: TestRuntime;
let redis: Redis;

beforeAll(async () => {
  runtime = await openTestRuntime({});
  redis = runtime.redis;
});
afterAll(() => runtime.end());
beforeEach(() => redis.flushAll());

const [claim, label] = ["{k1}:lc:7:x", "{k1}:lb:17"];
const [slip, transmission] = ["{k1}:slip:x", "{k1}:tx:7:17"];
const LABEL = [claim, label];
const SLIP = ["{k1}:txc:7:x", slip, transmission, label];

test.each([
  ["claim-label: an id that is none", claimLabel, LABEL, ["x", "1", "me", "60000", "1000"]],
  ["claim-label: nobody", claimLabel, LABEL, ["17", "1", "", "60000", "1000"]],
  ["claim-label: no time", claimLabel, LABEL, ["17", "1", "me", "60000", ""]],
  ["settle-label: no record", settleLabel, LABEL, ["me", "made"]],
  ["settle-label: another outcome", settleLabel, LABEL, ["me", "lost"]],
  ["claim-id: no partition", claimId, LABEL, ["", "16", "1000"]],
  ["confirm-labels: no id", confirmLabels, SLIP, ["", "address", "1000", "{}", "17", "{}"]],
  ["confirm-labels: no address", confirmLabels, SLIP, ["17", "", "1000", "{}", "17", "{}"]],
  ["confirm-labels: no row of a label", confirmLabels, SLIP, ["17", "address", "1000", "{}", "17"]],
  ["claim-release: no JSON", claimRelease, LABEL, ["{", "1000", "50", "1", "16"]],
  ["claim-release: no digest", claimRelease, LABEL, ['{"askedAtMs":1}', "1000", "50", "1", "16"]],
  [
    "claim-release: no limit",
    claimRelease,
    LABEL,
    ['{"askedAtMs":1,"digest":"x"}', "1000", "", "1", "16"],
  ],
  [
    "claim-release: no partition",
    claimRelease,
    LABEL,
    ['{"askedAtMs":1,"digest":"x"}', "1000", "50", "", "16"],
  ],
  [
    "confirm-labels: no label",
    confirmLabels,
    [claim, slip, transmission],
    ["17", "address", "1000", "{}"],
  ],
])("%s", async (_, source, keys, args) => {
  await redis.hSet(label, { by: "me" });
  const refused = run(redis, script(source), [...keys], [...args]);
  await expect(refused).rejects.toThrow(/wrong arguments/);
  expect(await redis.keys("*")).toEqual([label]);
  expect(await redis.hGetAll(label)).toEqual({ by: "me" });
});

test("a claim that is not as the caller has read it does nothing", async () => {
  await redis.set(claim, "33");
  const args = ["17", "1", "me", "60000", "1000"];
  expect(await run<string>(redis, script(claimLabel), LABEL, args)).toBe("other");
  await redis.del(claim);
  expect(await run<string>(redis, script(claimLabel), LABEL, ["17", "0", ...args.slice(2)])).toBe(
    "other",
  );
  expect(await redis.keys("*")).toEqual([]);
});

test("an expired label cannot be confirmed, and is not created again", async () => {
  const args = ["17", "address", "1000", "{}", "17", "{}"];
  expect(await run<number[]>(redis, script(confirmLabels), SLIP, args)).toEqual([0]);
  expect(await redis.keys("*")).toEqual([]);
});

test("none of them builds a key", () => {
  for (const source of [claimLabel, claimId, confirmLabels, claimRelease, settleLabel]) {
    const named = [...source.matchAll(/redis\.call\('[A-Z]+', ([^,)]+)/g)].map(([, key]) => key);
    expect(named.every((key) => key === "key" || key?.startsWith("KEYS["))).toBe(true);
  }
});
