/**
 * What one call of a script of the labels and stock releases answers and leaves. They refuse wrong arguments before their first
 * write, and build no key that they do not declare.
 */
import { beforeEach, describe, expect, test } from "bun:test";
import claimId from "#core/merchants/store/claim-id.lua" with { type: "text" };
import claimLabel from "#core/merchants/store/claim-label.lua" with { type: "text" };
import claimRelease from "#core/merchants/store/claim-release.lua" with { type: "text" };
import confirmLabels from "#core/merchants/store/confirm-labels.lua" with { type: "text" };
import settleLabel from "#core/merchants/store/settle-label.lua" with { type: "text" };
import voidLabel from "#core/merchants/store/void-label.lua" with { type: "text" };
import { run, script } from "#core/platform/redis/client.ts";
import { expectExpiry } from "#test/support/data/expect-expiry.ts";
import { forAll } from "#test/support/for-all.ts";
import { openTestRedis } from "#test/support/servers/servers.ts";

const KEPT_MS = 86_400_000;

const store = forAll(openTestRedis);
beforeEach(() => store.redis.flushAll());

const [claim, label] = ["{k1}:lc:7:x", "{k1}:lb:17"];
const [slip, transmission] = ["{k1}:slip:x", "{k1}:tx:7:17"];
const LABEL = [claim, label];
const MADE = [...LABEL, "{k1}:lbx:7"];
const VOIDED = [label, claim];
const SLIP = ["{k1}:txc:7:x", slip, transmission, label];
const ASKED = '{"askedAtMs":1,"digest":"x"}';

test.each([
  ["claim-label: an id that is none", claimLabel, LABEL, ["x", "1", "me", "60000", "1000"]],
  ["claim-label: nobody", claimLabel, LABEL, ["17", "1", "", "60000", "1000"]],
  ["claim-label: no time", claimLabel, LABEL, ["17", "1", "me", "60000", ""]],
  ["claim-label: no patience", claimLabel, LABEL, ["17", "1", "me", "", "1000"]],
  ["settle-label: no record", settleLabel, MADE, ["me", "made"]],
  ["settle-label: no id", settleLabel, MADE, ["me", "made", "{}", "[]"]],
  ["settle-label: no moment", settleLabel, MADE, ["me", "made", "{}", "[]", "17", "", "1000"]],
  ["settle-label: no time", settleLabel, MADE, ["me", "made", "{}", "[]", "17", "5", ""]],
  ["void-label: no id", voidLabel, VOIDED, ["", "5"]],
  ["void-label: no moment", voidLabel, VOIDED, ["17", ""]],
  ["void-label: no claim", voidLabel, [label], ["17", "5"]],
  ["settle-label: no labels", settleLabel, LABEL, ["me", "made", "{}"]],
  ["settle-label: another outcome", settleLabel, LABEL, ["me", "lost"]],
  ["claim-id: no partition", claimId, LABEL, ["", "16", "1000"]],
  ["claim-id: no number of partitions", claimId, LABEL, ["1", "", "1000"]],
  ["claim-id: no time", claimId, LABEL, ["1", "16", ""]],
  ["confirm-labels: no id", confirmLabels, SLIP, ["", "address", "1000", "{}", "17", "{}"]],
  ["confirm-labels: no address", confirmLabels, SLIP, ["17", "", "1000", "{}", "17", "{}"]],
  ["confirm-labels: no time", confirmLabels, SLIP, ["17", "address", "", "{}", "17", "{}"]],
  ["confirm-labels: no row of a label", confirmLabels, SLIP, ["17", "address", "1000", "{}", "17"]],
  ["claim-release: no JSON", claimRelease, LABEL, ["{", "1000", "50", "1", "16"]],
  ["claim-release: no digest", claimRelease, LABEL, ['{"askedAtMs":1}', "1000", "50", "1", "16"]],
  ["claim-release: no moment", claimRelease, LABEL, ['{"digest":"x"}', "1000", "50", "1", "16"]],
  ["claim-release: no patience", claimRelease, LABEL, [ASKED, "", "50", "1", "16"]],
  ["claim-release: no limit", claimRelease, LABEL, [ASKED, "1000", "", "1", "16"]],
  ["claim-release: no partition", claimRelease, LABEL, [ASKED, "1000", "50", "", "16"]],
  ["claim-release: no number of partitions", claimRelease, LABEL, [ASKED, "1000", "50", "1", ""]],
  [
    "confirm-labels: no label",
    confirmLabels,
    [claim, slip, transmission],
    ["17", "address", "1000", "{}"],
  ],
])("%s", async (_, source, keys, args) => {
  await store.redis.hSet(label, { by: "me" });
  const refused = run(store.redis, script(source), [...keys], [...args]);
  await expect(refused).rejects.toThrow(/wrong arguments/);
  expect(await store.redis.keys("*")).toEqual([label]);
  expect(await store.redis.hGetAll(label)).toEqual({ by: "me" });
});

test("none of them builds a key", () => {
  for (const source of [claimLabel, claimId, confirmLabels, claimRelease, settleLabel, voidLabel]) {
    const named = [...source.matchAll(/redis\.call\('[A-Z]+', ([^,)]+)/g)].map(([, key]) => key);
    expect(named.every((key) => key === "key" || key?.startsWith("KEYS["))).toBe(true);
  }
});

describe("claim-label.lua", () => {
  const GONE_MS = 600_000;

  const claimIt = (who: string, isNew: boolean, id = "17") => {
    const args = [id, isNew ? "1" : "0", who, String(GONE_MS), String(KEPT_MS)];
    return run<string>(store.redis, script(claimLabel), LABEL, args);
  };

  async function expectClaimant(who: string, fromMs: number): Promise<void> {
    const { by, since } = await store.redis.hGetAll(label);
    expect(by).toBe(who);
    expect(Number(since)).toBeWithin(fromMs, Date.now() + 1);
  }

  test("tells the first process to call the carrier, and the next that it is busy", async () => {
    const fromMs = Date.now();
    const first = expectExpiry(store.redis, [claim, label], KEPT_MS, () => claimIt("me", true));
    expect(await first).toBe("new");
    expect(await store.redis.get(claim)).toBe("17");
    await expectClaimant("me", fromMs);
    expect(await claimIt("you", false)).toBe("busy");
    await expectClaimant("me", fromMs);
  });

  test("lets the next process take over an expired claim as unsure", async () => {
    await store.redis.set(claim, "17");
    await store.redis.hSet(label, { by: "me", since: Date.now() - GONE_MS });
    const fromMs = Date.now();
    expect(await claimIt("you", false)).toBe("unsure");
    await expectClaimant("you", fromMs);
  });

  test("lets the next process take over an unsure claim at once", async () => {
    await store.redis.set(claim, "17");
    await store.redis.hSet(label, { tx: "1" });
    const fromMs = Date.now();
    expect(await claimIt("you", false)).toBe("unsure");
    await expectClaimant("you", fromMs);
  });

  test("does not claim a label that was made", async () => {
    await store.redis.set(claim, "17");
    await store.redis.hSet(label, { d: "{}" });
    expect(await claimIt("you", false)).toBe("made");
    expect(await store.redis.hGetAll(label)).toEqual({ d: "{}" });
  });

  test("does nothing if the claim has changed since it was read", async () => {
    await store.redis.set(claim, "33");
    for (const isNew of [true, false]) expect(await claimIt("me", isNew)).toBe("other");
    await store.redis.del(claim);
    expect(await claimIt("me", false)).toBe("other");
    expect(await store.redis.keys("*")).toEqual([]);
  });
});

describe("settle-label.lua", () => {
  const settle = (who: string, ...outcome: string[]) =>
    run<number>(store.redis, script(settleLabel), MADE, [who, ...outcome]);

  beforeEach(async () => {
    await store.redis.set(claim, "17");
    await store.redis.hSet(label, { by: "me", since: "1" });
  });

  test("keeps a label that was made, and ends its claim", async () => {
    await store.redis.zAdd("{k1}:lbx:7", { score: 1, value: "1" });
    const madeAtMs = KEPT_MS + 1;
    const made = ["made", "{}", "[]", "17", String(madeAtMs), String(KEPT_MS)];
    const settled = expectExpiry(store.redis, ["{k1}:lbx:7"], KEPT_MS, () => settle("me", ...made));
    expect(await settled).toBe(1);
    const listed = [{ value: "17", score: madeAtMs }];
    expect(await store.redis.zRangeWithScores("{k1}:lbx:7", 0, -1)).toEqual(listed);
    expect(await store.redis.hGetAll(label)).toEqual({ d: "{}", l: "[]" });
    expect(await store.redis.get(claim)).toBe("17");
  });

  test("leaves nothing if the carrier was not called", async () => {
    expect(await settle("me", "free")).toBe(1);
    expect(await store.redis.keys("*")).toEqual([]);
  });

  test("keeps the label's id if the carrier may have been called", async () => {
    await store.redis.hSet(label, { tx: "1" });
    expect(await settle("me", "unsure")).toBe(1);
    expect(await store.redis.hGetAll(label)).toEqual({ tx: "1" });
    expect(await store.redis.get(claim)).toBe("17");
  });

  test("changes nothing for a process that has lost the claim", async () => {
    for (const outcome of [["made", "{}", "[]", "17", "5", "1000"], ["free"], ["unsure"]]) {
      expect(await settle("you", ...outcome)).toBe(0);
      expect(await store.redis.hGetAll(label)).toEqual({ by: "me", since: "1" });
      expect(await store.redis.get(claim)).toBe("17");
    }
  });
});

describe("void-label.lua", () => {
  const voidIt = () => run<string>(store.redis, script(voidLabel), VOIDED, ["17", "5"]);

  test("voids a label once, without its sheets, and frees its reference", async () => {
    await store.redis.set(claim, "17");
    await store.redis.hSet(label, { d: "{}", l: "[]" });
    expect([await voidIt(), await store.redis.exists(claim)]).toEqual(["voided", 0]);
    await store.redis.hSet(label, { vd: "4" });
    await store.redis.set(claim, "33");
    expect([await voidIt(), await store.redis.get(claim)]).toEqual(["voided", "33"]);
    expect(await store.redis.hGetAll(label)).toEqual({ d: "{}", vd: "4" });
  });

  test("leaves a label that a transmission holds, or that has expired, as it is", async () => {
    expect(await voidIt()).toBe("missing");
    await store.redis.hSet(label, { d: "{}", tx: "1" });
    expect(await voidIt()).toBe("confirmed");
    expect(await store.redis.hGetAll(label)).toEqual({ d: "{}", tx: "1" });
  });
});

describe("claim-id.lua", () => {
  const claimIt = (key: string) =>
    run<number>(store.redis, script(claimId), [key, "ids"], ["3", "16", String(KEPT_MS)]);

  test("gives each request its own id, the same until its outcome is known", async () => {
    expect(await expectExpiry(store.redis, "a", KEPT_MS, () => claimIt("a"))).toBe(19);
    expect([await claimIt("b"), await claimIt("a")]).toEqual([35, 19]);
    expect(await store.redis.get("a")).toBe("19");
    await store.redis.del("a");
    expect(await claimIt("a")).toBe(51);
  });
});

describe("confirm-labels.lua", () => {
  /** @returns for each label 1 = it is in the transmission */
  function confirm(...ids: readonly number[]): Promise<number[]> {
    const keys = [...SLIP.slice(0, 3), ...ids.map((id) => `{k1}:lb:${id}`)];
    const rows = ids.flatMap((id) => [String(id), `{"n":${id}}`]);
    const args = ["65", "address", String(KEPT_MS), '{"head":1}', ...rows];
    return run<number[]>(store.redis, script(confirmLabels), keys, args);
  }

  const labelOf = (id: number) => store.redis.hGetAll(`{k1}:lb:${id}`);

  beforeEach(async () => {
    for (const id of [17, 33, 49]) await store.redis.hSet(`{k1}:lb:${id}`, { d: "{}" });
    await store.redis.set("{k1}:txc:7:x", "65");
  });

  test("opens a transmission for its labels, with the rows of its slip", async () => {
    const confirmed = expectExpiry(store.redis, [slip, transmission], KEPT_MS, () =>
      confirm(17, 33),
    );
    expect(await confirmed).toEqual([1, 1]);
    for (const id of [17, 33]) {
      expect(await labelOf(id)).toEqual({ d: "{}", tx: "65", slip: "address" });
    }
    const rows = '[{"n":17},{"n":33}]';
    expect(await store.redis.hGetAll(slip)).toEqual({ head: '{"head":1}', rows });
    const opened = { head: '{"head":1}', slip: "address", labels: "[17,33]" };
    expect(await store.redis.hGetAll(transmission)).toEqual(opened);
    expect(await store.redis.exists("{k1}:txc:7:x")).toBe(0);
  });

  test("leaves out labels that are in another transmission, are void or have expired", async () => {
    await store.redis.hSet("{k1}:lb:17", { tx: "1", slip: "other" });
    await store.redis.hSet("{k1}:lb:97", { d: "{}", vd: "5" });
    expect(await confirm(17, 33, 81, 49, 97)).toEqual([0, 1, 0, 1, 0]);
    expect(await labelOf(17)).toEqual({ d: "{}", tx: "1", slip: "other" });
    expect(await labelOf(81)).toEqual({});
    expect(await store.redis.hGet(slip, "rows")).toBe('[{"n":33},{"n":49}]');
    expect(await store.redis.hGet(transmission, "labels")).toBe("[33,49]");
  });

  test("opens no transmission without a free label, and releases the claim", async () => {
    await store.redis.hSet("{k1}:lb:17", { tx: "1" });
    for (const id of [17, 81]) expect(await confirm(id)).toEqual([0]);
    expect(await confirm(17, 81)).toEqual([0, 0]);
    expect(await store.redis.exists([slip, transmission, "{k1}:lb:81", "{k1}:txc:7:x"])).toBe(0);
  });
});

describe("claim-release.lua", () => {
  const PATIENCE_MS = 60_000;
  const NOW_MS = 1_800_000_000_000;

  function release(digest: string, outcome?: string, askedAtMs = NOW_MS): string {
    return JSON.stringify({ digest, askedAtMs, outcome });
  }

  const claimIt = (digest: string, { atMs = 0, keep = 50 } = {}) => {
    const terms = [PATIENCE_MS, keep, 3, 16].map(String);
    const args = [release(digest, undefined, NOW_MS + atMs), ...terms];
    return run<unknown[]>(store.redis, script(claimRelease), ["releases", "ids"], args);
  };

  const releases = () => store.redis.hGetAll("releases");

  test("sends a new release under a new id", async () => {
    expect(await claimIt("x")).toEqual(["send", 19]);
    expect(await claimIt("y")).toEqual(["send", 35]);
    expect(await releases()).toEqual({ 19: release("x"), 35: release("y") });
  });

  test("is busy for an equal release while the carrier is called, and sends it again after the timeout", async () => {
    await claimIt("x");
    expect(await claimIt("x", { atMs: PATIENCE_MS - 1 })).toEqual(["busy", 19]);
    expect(await releases()).toEqual({ 19: release("x") });
    expect(await claimIt("x", { atMs: PATIENCE_MS })).toEqual(["send", 19]);
    expect(await releases()).toEqual({ 19: release("x", undefined, NOW_MS + PATIENCE_MS) });
  });

  test.each([["ok"], ["pending"]])(
    "answers with what the carrier has accepted: %s",
    async (how) => {
      await store.redis.hSet("releases", { 3: release("y"), 19: release("x", how) });
      expect(await claimIt("x")).toEqual(["answered", 19, release("x", how)]);
      expect(await releases()).toEqual({ 3: release("y"), 19: release("x", how) });
    },
  );

  test.each([["unreachable"], ["unreadable"]])(
    "sends what it may have received again under the same id: %s",
    async (how) => {
      await store.redis.hSet("releases", { 3: release("x", how) });
      expect(await claimIt("x")).toEqual(["send", 3]);
      expect(await releases()).toEqual({ 3: release("x") });
    },
  );

  test.each([["error"], ["refused"]])(
    "sends what it has not accepted under a new id: %s",
    async (how) => {
      await store.redis.hSet("releases", { 3: release("x", how) });
      expect(await claimIt("x")).toEqual(["send", 19]);
      expect(await releases()).toEqual({ 3: release("x", how), 19: release("x") });
    },
  );

  test("goes by the last of equal releases", async () => {
    const stored = { 35: release("x", "ok"), 3: release("x", "error"), 67: release("y") };
    await store.redis.hSet("releases", stored);
    await store.redis.hSet("releases", { 19: release("x", "refused") });
    expect(await claimIt("x")).toEqual(["answered", 35, release("x", "ok")]);
  });

  test("keeps the newest 3 releases of a shipment", async () => {
    await store.redis.set("ids", 2);
    await store.redis.hSet("releases", { 35: release("b") });
    await store.redis.hSet("releases", { 19: release("a") });
    const ids = async () => Object.keys(await releases()).map(Number);
    const keep = 3;
    expect(await claimIt("c", { keep })).toEqual(["send", 51]);
    expect(await ids()).toEqual([19, 35, 51]);
    expect(await claimIt("d", { keep })).toEqual(["send", 67]);
    expect(await ids()).toEqual([35, 51, 67]);
    expect(await claimIt("e", { keep: 2 })).toEqual(["send", 83]);
    expect(await ids()).toEqual([67, 83]);
  });
});
