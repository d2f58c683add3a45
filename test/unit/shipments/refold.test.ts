/** A shipment folded again from its history, after a mapping has changed or a fact has arrived in full. */
import { describe, expect, test } from "bun:test";
import type { Fact, Mapping } from "#core/events/rules/fact.ts";
import { foldAll, initialState } from "#core/shipments/rules/fold.ts";
import { refold, remapFacts, unmappedDeltas } from "#core/shipments/rules/refold.ts";

const mapped = (status: Mapping["status"], detail = 0): Mapping => ({
  status,
  detail,
  terminal: false,
});
const fact = (key: string, atMs: number, mapping: Mapping | null, members: object = {}): Fact => ({
  key,
  occurredAtMs: atMs,
  receivedAtMs: atMs,
  messageIndex: 0,
  mapping,
  event: {
    eventId: key,
    trackingNumber: "T",
    occurredAt: new Date(atMs).toISOString(),
    status: { code: key, description: key },
  },
  ...members,
});
const said = (code: string, description: string, atMs: number, mapping: Mapping | null = null) => {
  const one = fact(`${code} ${atMs}`, atMs, mapping);
  return { ...one, event: { ...one.event, status: { code, description } } };
};

describe("facts mapped again", () => {
  const entry = (status: Mapping["status"], terminal = false) => ({
    code: "A",
    description: "",
    terminal,
    status,
  });
  const remap = (one: Fact, known: ReturnType<typeof entry> | null, codes = ["A"]) =>
    remapFacts([one], new Set(codes), new Map(known ? [["A", known]] : []));

  test("are none where the catalogue says the same", () => {
    expect(remap(fact("A", 1, mapped("DELAY")), entry("DELAY"))).toBeNull();
    expect(remap(fact("A", 1, null), null)).toBeNull();
  });

  test("are those of the codes asked for whose pair or end has changed", () => {
    const one = fact("A", 1, mapped("DELAY"));
    expect(remap(one, entry("RETURNED"))).toEqual([{ ...one, mapping: mapped("RETURNED") }]);
    expect(remap(one, entry("DELAY", true))?.[0]?.mapping?.terminal).toBe(true);
    expect(remap(one, null)?.[0]?.mapping).toBeNull();
    expect(remap({ ...one, mapping: null }, entry("DELAY"))).toEqual([one]);
    expect(remap(one, entry("RETURNED"), ["B"])).toBeNull();
  });
});

describe("a shipment folded again", () => {
  test("stays where it began as long as no fact is mapped", () => {
    for (const status of ["WAITING_TO_COMPUTE", "PENDING"] as const) {
      const before = initialState(status);
      const { state, change } = refold(before, [fact("A", 1, null)]);
      expect([state.pair, state.entered, change]).toEqual([before.pair, [], null]);
    }
  });

  test("reports a change with the fact that decides it, and whether it was ever there", () => {
    const [first, last] = [fact("A", 1, mapped("DELAY")), fact("B", 2, mapped("DEPARTED"))];
    const noise = fact("C", 3, null);
    const { state: before } = foldAll(initialState("PENDING"), [first, last, noise]);
    const back = refold(before, [first, { ...last, mapping: null }, noise]);
    expect(back.change).toMatchObject({ changed: true, firstOccurrence: false, fact: first });
    expect([back.decisive, back.state.entered]).toEqual([first, before.entered]);
    const moved = { ...last, mapping: mapped("RETURNED") };
    const onward = refold(before, [first, moved, noise]);
    expect(onward.change).toMatchObject({ firstOccurrence: true, fact: moved });
    expect(onward.state.entered).toEqual([...before.entered, "RETURNED:0"]);
  });

  test("is carried by its latest fact where the one that decides has left the history", () => {
    const left = fact("L", 9, mapped("DELAY"));
    const { state: base } = foldAll(initialState("PENDING"), [left]);
    const history = [fact("A", 2, null), fact("C", 4, null), fact("B", 3, null)];
    expect(refold(base, history, base).decisive?.key).toBe("C");
    expect(refold(base, [], base).decisive).toBeNull();
  });
});

describe("counts of unmapped codes", () => {
  test("change by the events that were mapped or are no longer", () => {
    const before = [said("A", "one", 5), said("A", "two", 1), said("B", "b", 2)];
    const after = [said("A", "one", 5, mapped("DELAY")), said("A", "three", 7), said("B", "b", 2)];
    expect(unmappedDeltas(before, [...after, said("C", "c", 3), said("C", "d", 4)])).toEqual([
      { code: "A", description: "three", events: -1, present: true, firstMs: 1, lastMs: 7 },
      { code: "C", description: "d", events: 2, present: true, firstMs: 3, lastMs: 4 },
    ]);
    const gone = said("A", "one", 5, mapped("DELAY"));
    expect(unmappedDeltas([said("A", "one", 4), said("A", "two", 5)], [gone])).toEqual([
      { code: "A", description: "two", events: -2, present: false, firstMs: 4, lastMs: 5 },
    ]);
    expect(unmappedDeltas([gone], [gone])).toEqual([]);
  });
});
