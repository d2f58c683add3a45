/** setup-file.md: a file that is applied again changes what it says otherwise than the last time, and leaves the panel's word alone. */
import { describe, expect, test } from "bun:test";
import {
  mergeChannelCouriers,
  newlySaid,
  ownersOfTranscodings,
  ownSettingsOf,
  saidAfter,
  withCourierDefaults,
} from "#core/setup/rules/merge-said.ts";

describe("what a file says newly", () => {
  test("is what it says otherwise than the last time, or for the first time", () => {
    expect(newlySaid({ a: 1, b: 2, c: [3] }, { a: 1, b: 3, c: [3] })).toEqual({ b: 2 });
    expect(newlySaid({ a: 1 }, undefined)).toEqual({ a: 1 });
  });

  test("is nothing of what it does not name", () => {
    expect(newlySaid<{ a?: number | undefined }>({ a: undefined }, { a: 1 })).toEqual({});
    expect(newlySaid(undefined, { a: 1 })).toEqual({});
  });
});

describe("what files have said of a channel", () => {
  const [gls, brt] = [{ code: "GLS" }, { code: "BRT", errorLabel: true }];
  const sender = { city: "Milano" };
  const rateLimit = { bucketSize: 300 };
  const emails = { managed: true, templates: [] };
  const said = saidAfter({}, { code: "c", name: "C", couriers: [gls], rateLimit, sender, emails });

  test("is kept by its parts, templates of mails apart", () => {
    expect(said).toEqual({
      own: { name: "C" },
      couriers: { GLS: gls },
      rateLimit,
      sender,
      emails: { managed: true },
    });
  });

  test("stays where the next file does not name it", () => {
    expect(saidAfter(said, { code: "c" })).toEqual(said);
  });

  test("is the next file's where that names it", () => {
    const next = {
      code: "c",
      language: "en" as const,
      couriers: [brt],
      rateLimit: { bucketSize: 5 },
      sender: { city: "Roma" },
      emails: { from: "a@b.test" },
    };
    expect(saidAfter(said, next)).toEqual({
      own: { name: "C", language: "en" },
      couriers: { GLS: gls, BRT: brt },
      rateLimit: next.rateLimit,
      sender: next.sender,
      emails: next.emails,
    });
  });

  test("its own settings are those that are one value each", () => {
    const own = { name: "C", language: "it", trackingPage: false, addressCheck: true } as const;
    expect(ownSettingsOf({ code: "c", active: true, ...own, couriers: [gls] })).toEqual(own);
  });
});

describe("couriers of a channel after a file", () => {
  const gls = withCourierDefaults({ code: "GLS" });
  const changed = { ...gls, labelFormat: "ZPL" as const };

  test("are enabled, with PDF labels and none for errors, unless the file says otherwise", () => {
    const defaults = {
      transcodings: [],
      senderAccounts: [],
      shippingEnabled: true,
      labelFormat: "PDF" as const,
      errorLabel: false,
    };
    expect(mergeChannelCouriers([], {}, [{ code: "GLS" }])).toEqual([{ code: "GLS", ...defaults }]);
    const given = { code: "BRT", shippingEnabled: false, errorLabel: true };
    expect(mergeChannelCouriers([], {}, [given])).toEqual([{ ...defaults, ...given }]);
  });

  test("are the panel's where the file says what it said before", () => {
    const said = { GLS: { code: "GLS", labelFormat: "PDF" } } as const;
    expect(mergeChannelCouriers([changed], said, [said.GLS])).toEqual([changed]);
    expect(mergeChannelCouriers([], said, [said.GLS])).toEqual([]);
    expect(mergeChannelCouriers([changed], said, undefined)).toEqual([changed]);
  });

  test("take over what is new, and keep what the panel has changed beside it", () => {
    const said = { GLS: { code: "GLS", labelFormat: "PDF" } } as const;
    const file = [{ ...said.GLS, transcodings: ["gls"] }];
    expect(mergeChannelCouriers([changed], said, file)).toEqual([
      { ...changed, transcodings: ["gls"] },
    ]);
  });

  test("come back whole, after the panel removed them, with the first new word", () => {
    const said = { GLS: { code: "GLS", senderAccounts: ["A"] } };
    const file = [{ ...said.GLS, errorLabel: true }];
    expect(mergeChannelCouriers([], said, file)).toEqual([
      { ...gls, senderAccounts: ["A"], errorLabel: true },
    ]);
  });

  test("an item without its code changes none", () => {
    expect(mergeChannelCouriers([gls], {}, [{ labelFormat: "ZPL" }])).toEqual([gls]);
  });
});

test("transcodings that differ only in upper and lower case are the same", () => {
  const owners = ownersOfTranscodings([
    { code: "A", transcodings: ["Express", "a"] },
    { code: "B", transcodings: ["EXPRESS"] },
  ]);
  expect([...owners]).toEqual([
    ["express", ["A", "B"]],
    ["a", ["A"]],
  ]);
});
