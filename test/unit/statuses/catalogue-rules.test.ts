/** Document 2, "Status catalogue": what a code maps to, when two entries map alike, and a setup file's catalogue over the stored one. */
import { describe, expect, test } from "bun:test";
import type { SetupCatalogueEntry } from "#core/setup/rules/setup.ts";
import { compareCatalogues } from "#core/statuses/rules/compare-catalogues.ts";
import {
  type CatalogueEntry,
  type MappedEvent,
  type MappingRule,
  mapStatus,
  pairsOf,
  sameMapping,
} from "#core/statuses/rules/map-status.ts";
import { mergeCatalogue } from "#core/statuses/rules/merge-catalogue.ts";
import { DEFAULT_STATUS_DETAILS } from "#core/statuses/rules/status-details.ts";
import { statusDetailText } from "#core/statuses/rules/status-text.ts";

const entry = (members: Partial<CatalogueEntry> = {}): CatalogueEntry => ({
  code: "C",
  description: "text",
  terminal: false,
  ...members,
});
const code = { code: "C", description: "text" };

describe("what a code maps to", () => {
  const mapped = (one: CatalogueEntry, event: Partial<MappedEvent> = {}) =>
    mapStatus(new Map([["C", one]]), { status: code, ...event });

  test("is nothing for a code that is unknown or not mapped, and no detail where none is said", () => {
    expect(mapStatus(new Map(), { status: code })).toBeNull();
    expect(mapped(entry())).toBeNull();
    expect(mapped(entry({ statusDetail: 3 }))).toBeNull();
    expect(mapped(entry({ status: "DELAY" }))).toEqual({
      status: "DELAY",
      detail: 0,
      terminal: false,
    });
    expect(mapped(entry({ status: "DELAY", statusDetail: 3, terminal: true }))).toEqual({
      status: "DELAY",
      detail: 3,
      terminal: true,
    });
  });

  test("is that of the first rule whose conditions are all met; an event that does not say so is no return", () => {
    const rules: MappingRule[] = [
      { reasonCode: "R", isReturn: true, status: "RETURNED", terminal: true },
      { deliveredTo: "NEIGHBOUR", status: "DELIVERED", statusDetail: 2 },
      { isReturn: false, status: "DEPARTED" },
    ];
    const one = entry({ status: "DELAY", rules });
    const statusOf = (event: Partial<MappedEvent>) => mapped(one, event)?.status;
    expect(mapped(one, { reason: { code: "R" }, isReturn: true })).toEqual({
      status: "RETURNED",
      detail: 0,
      terminal: true,
    });
    expect(statusOf({ isReturn: true })).toBe("DELAY");
    expect(statusOf({ reason: { code: "S" }, isReturn: true })).toBe("DELAY");
    expect(mapped(one, { delivery: { deliveredTo: "NEIGHBOUR" }, isReturn: true })).toEqual({
      status: "DELIVERED",
      detail: 2,
      terminal: false,
    });
    expect(statusOf({ delivery: { deliveredTo: "MAILBOX" }, isReturn: true })).toBe("DELAY");
    expect([statusOf({}), statusOf({ isReturn: false })]).toEqual(["DEPARTED", "DEPARTED"]);
    const rulesAlone = entry({ rules: [{ reasonCode: "R", status: "DELAY", statusDetail: 3 }] });
    expect(mapped(rulesAlone, { reason: { code: "R" } })?.detail).toBe(3);
    expect(mapped(rulesAlone)).toBeNull();
  });

  test("its pairs are those of its rules and its own", () => {
    expect(pairsOf(null)).toEqual([]);
    expect(pairsOf(entry())).toEqual([]);
    const rules: MappingRule[] = [{ status: "DELAY", statusDetail: 2 }, { status: "RETURNED" }];
    expect(pairsOf(entry({ rules, status: "DEPARTED" }))).toEqual([
      { status: "DELAY", detail: 2 },
      { status: "RETURNED", detail: 0 },
      { status: "DEPARTED", detail: 0 },
    ]);
  });
});

describe("two entries map alike", () => {
  const base = entry({ status: "DELAY", statusDetail: 2 });
  const rule: MappingRule = { reasonCode: "R", status: "RETURNED" };

  test("where only descriptions differ, where neither maps, and where a default is said or not", () => {
    expect(sameMapping(base, { ...base, description: "other" })).toBe(true);
    expect(sameMapping(entry(), null)).toBe(true);
    expect(sameMapping(entry({ terminal: true }), undefined)).toBe(true);
    const plain = entry({ status: "DELAY" });
    expect(sameMapping(plain, { ...plain, statusDetail: 0, rules: [] })).toBe(true);
    const ruled = entry({ rules: [rule] });
    expect(sameMapping(ruled, entry({ rules: [{ ...rule, statusDetail: 0 }] }))).toBe(true);
    expect(sameMapping(ruled, entry({ rules: [{ ...rule, terminal: false }] }))).toBe(true);
    // Without a status beside it only the rules read the terminal flag, and this one says its own.
    const said = entry({ rules: [{ ...rule, terminal: false }] });
    expect(sameMapping(said, { ...said, terminal: true, statusDetail: 5 })).toBe(true);
  });

  test("not where any part of a mapping differs", () => {
    const ruled = entry({ ...base, rules: [rule] });
    const others: CatalogueEntry[] = [
      { ...base, status: "DEPARTED" },
      { ...base, statusDetail: 3 },
      { ...base, terminal: true },
      entry(),
      ruled,
    ];
    for (const other of others) expect(sameMapping(base, other)).toBe(false);
    const rules: MappingRule[] = [
      { ...rule, reasonCode: "S" },
      { status: "RETURNED" },
      { ...rule, isReturn: false },
      { ...rule, isReturn: true },
      { ...rule, deliveredTo: "MAILBOX" },
      { ...rule, deliveredTo: "OTHER" },
      { ...rule, status: "DELIVERED" },
      { ...rule, statusDetail: 1 },
      { ...rule, terminal: true },
    ];
    for (const one of rules) expect(sameMapping(ruled, { ...ruled, rules: [one] })).toBe(false);
    for (const one of rules)
      for (const other of rules)
        expect(sameMapping(entry({ rules: [one] }), entry({ rules: [other] }))).toBe(one === other);
  });
});

describe("a setup file's catalogue over the stored one", () => {
  const said = (members: Partial<SetupCatalogueEntry> = {}) =>
    ({ code: "C", ...members }) as SetupCatalogueEntry;
  /** @param stored what the operators have made of it, null = removed */
  const merge = (
    stored: CatalogueEntry | null,
    last: SetupCatalogueEntry | null,
    now: SetupCatalogueEntry,
  ) => mergeCatalogue({ entries: stored ? [stored] : [], said: last ? [last] : [] }, [now]).entries;

  test("a new code is stored with its defaults, and with rules only where it has some", () => {
    expect(merge(null, null, said())).toEqual([{ code: "C", description: "", terminal: false }]);
    const rules = [{ status: "DELAY" as const }];
    expect(merge(null, null, said({ rules, terminal: true, description: "d" }))).toEqual([
      { code: "C", description: "d", terminal: true, rules },
    ]);
    expect(Object.keys(merge(null, null, said({ rules: [] }))[0] ?? {})).not.toContain("rules");
  });

  test("what the file says as the last time leaves what the operators have changed, removed codes included", () => {
    const last = said({ description: "d", terminal: false, status: "DELAY", statusDetail: 1 });
    const changed = entry({ description: "own", terminal: true, status: "DEPARTED" });
    expect(merge(changed, last, last)).toEqual([changed]);
    expect(merge(null, last, last)).toEqual([]);
    expect(merge(null, last, { ...last, terminal: true })).toHaveLength(1);
    const ruled = said({ rules: [{ status: "DELAY" }] });
    expect(merge(changed, ruled, ruled)).toEqual([changed]);
    const codes = mergeCatalogue({ entries: [], said: [last] }, [last, said({ code: "D" })]);
    expect(codes.said).toEqual([last, said({ code: "D" })]);
  });

  test("what it says again counts member by member, and what it does not name stays", () => {
    const stored = entry({ description: "own", terminal: true, status: "DELAY", statusDetail: 1 });
    const rules = [{ status: "RETURNED" as const }];
    expect(merge(stored, said(), said({ description: "new" }))).toEqual([
      { ...stored, description: "new" },
    ]);
    expect(merge(stored, said(), said({ terminal: false }))).toEqual([
      { ...stored, terminal: false },
    ]);
    expect(merge(stored, said(), said({ rules }))).toEqual([{ ...stored, rules }]);
    expect(merge({ ...stored, rules }, said({ rules }), said({ rules: [] }))).toEqual([
      { ...stored, rules: [] },
    ]);
    expect(merge({ ...stored, rules }, said({ rules }), said())).toEqual([{ ...stored, rules }]);
    const all = said({ description: "d", terminal: true, status: "DELAY", rules });
    expect(merge(stored, all, said())).toEqual([stored]);
  });

  test("status and detail are one pair: a new status does not keep the old detail", () => {
    const stored = entry({ status: "DELAY", statusDetail: 1 });
    const last = said({ status: "DELAY", statusDetail: 1 });
    expect(merge(stored, last, said({ status: "DEPARTED" }))).toEqual([
      entry({ status: "DEPARTED" }),
    ]);
    expect(merge(stored, last, said({ status: "DELAY", statusDetail: 2 }))).toEqual([
      entry({ status: "DELAY", statusDetail: 2 }),
    ]);
    expect(merge(stored, last, said({ statusDetail: 2 }))).toEqual([
      entry({ status: "DELAY", statusDetail: 2 }),
    ]);
  });
});

test("a detail is named in the language, else in English, else not at all", () => {
  const detail = (description: Record<string, string>) =>
    ({ id: 1, description }) as unknown as Parameters<typeof statusDetailText>[0];
  expect(statusDetailText(detail({ it: "In giacenza", en: "Held" }), "it")).toBe("In giacenza");
  expect(statusDetailText(detail({ en: "Held" }), "it")).toBe("Held");
  expect(statusDetailText(detail({ it: "In giacenza" }), "en")).toBeNull();
  expect(statusDetailText(undefined, "it")).toBeNull();
});

test("a comparison lists what a catalogue read from a file adds, changes, leaves, keeps and removes", () => {
  const [same, old, missing] = ["S", "O", "M"].map((code) => entry({ code }));
  const changed = entry({ code: "O", description: "new" });
  const added = entry({ code: "N" });
  const before = [same, old, missing] as CatalogueEntry[];
  const after = [same, changed, added] as CatalogueEntry[];
  const found = { added: [added], changed: [{ before: old, after: changed }], unchanged: 1 };
  const whole = compareCatalogues(before, after, true);
  expect(whole as unknown).toEqual({ ...found, removed: [missing], kept: 0 });
  const partial = compareCatalogues(before, after, false);
  expect(partial as unknown).toEqual({ ...found, removed: [], kept: 1 });
});

test("built-in details keep their numbers, which stored shipments have, and one means held in depot", () => {
  const details = DEFAULT_STATUS_DETAILS.map(({ id, description }) => [id, description?.["en"]]);
  expect(details).toEqual([
    [1, "Wrong or incomplete address"],
    [2, "Recipient absent"],
    [3, "Refused by the recipient"],
    [4, "Held in depot"],
    [5, "Damaged"],
    [6, "Lost"],
    [7, "Carrier delay"],
    [8, "Held at customs"],
  ]);
  const held = DEFAULT_STATUS_DETAILS.filter(({ heldInDepot }) => heldInDepot);
  expect(held.map(({ id }) => id)).toEqual([4]);
});
