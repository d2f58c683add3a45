/** Invariant 3: the same facts in any order and any multiplicity give the same state. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { Fact } from "#core/events/rules/fact.ts";
import {
  fold,
  foldAll as foldAllAtOnce,
  initialState,
  type ShipmentState,
} from "#core/shipments/rules/fold.ts";
import { STATUSES } from "#core/statuses/rules/status.ts";

const CASES = 3_000;

const optional = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined });

const factArbitrary = (key: string): fc.Arbitrary<Fact> =>
  fc
    .record({
      occurredAtMs: fc.integer({ min: 0, max: 5 }),
      receivedAtMs: fc.integer({ min: 0, max: 3 }),
      messageIndex: fc.integer({ min: 0, max: 2 }),
      mapping: fc.option(
        fc.record({
          status: fc.constantFrom(...STATUSES),
          detail: fc.integer({ min: 0, max: 2 }),
          terminal: fc.boolean(),
        }),
      ),
      name: optional(fc.constantFrom("Milano", "Roma")),
      delivery: optional(
        fc.record(
          {
            estimatedDeliveryDate: fc.constantFrom("2026-11-10", "2026-11-11"),
            attemptNumber: fc.integer({ min: 1, max: 3 }),
            signedBy: fc.constantFrom("A", "B"),
          },
          { requiredKeys: [] },
        ),
      ),
      newNumber: optional(fc.constantFrom("N1", "N2")),
      parcel: optional(fc.constantFrom("P1", "P2")),
      isReturn: optional(fc.boolean()),
    })
    .map(({ name, delivery, newNumber, parcel, isReturn, ...rest }) => ({
      key,
      ...rest,
      event: {
        eventId: key,
        trackingNumber: "T",
        occurredAt: "2026-11-10T10:00:00Z",
        status: { code: "C", description: "D" },
        ...(name && { location: { name } }),
        ...(delivery && { delivery }),
        ...(newNumber && { trackingNumberChange: { newTrackingNumber: newNumber } }),
        ...(parcel && { parcel: { trackingNumber: parcel } }),
        ...(isReturn !== undefined && { isReturn }),
      },
    }));

const factsArbitrary = fc
  .integer({ min: 1, max: 8 })
  .chain((count) => fc.tuple(...Array.from({ length: count }, (_, at) => factArbitrary(`k${at}`))));

function foldAll(facts: readonly Fact[]): ShipmentState {
  return facts.reduce((state, fact) => fold(state, fact)?.state ?? state, initialState("PENDING"));
}

describe("fold (invariant 3)", () => {
  test("any order and any multiplicity of the same facts give the same state", () => {
    fc.assert(
      fc.property(
        factsArbitrary.chain((facts) =>
          fc.tuple(
            fc.constant(facts),
            fc.shuffledSubarray(facts, { minLength: facts.length }),
            fc.array(fc.constantFrom(...facts)),
          ),
        ),
        ([facts, shuffled, repeats]) => {
          const { entered: _, ...any } = foldAll([...shuffled, ...repeats]);
          expect(foldAll(facts)).toMatchObject(any);
        },
      ),
      { numRuns: CASES },
    );
  });

  const at = (occurredAtMs: number, members: Partial<Fact> = {}): Fact => ({
    key: `${occurredAtMs}-${JSON.stringify(members.mapping ?? null)}`,
    occurredAtMs,
    receivedAtMs: 0,
    messageIndex: 0,
    mapping: { status: "IN_TRANSIT", detail: 0, terminal: false },
    event: {
      eventId: "e",
      trackingNumber: "T",
      occurredAt: "2026-11-10T10:00:00Z",
      status: { code: "C", description: "D" },
    },
    ...members,
  });
  const delivered = { status: "DELIVERED", detail: 0, terminal: true } as const;
  const failed = { status: "FAILED_ATTEMPT", detail: 0, terminal: false } as const;

  test.each([1, 2, 3, 4, 5, 6, 50])(
    "%d facts folded at once count once each, also those that the shipment knows and those given twice",
    (count) => {
      const facts = Array.from({ length: count }, (_, n) =>
        at(n + 1, { key: `k${n}`, mapping: failed }),
      );
      const known = facts.slice(0, Math.ceil(count / 2));
      const before = foldAllAtOnce(initialState("PENDING"), known);
      expect(before.folded).toHaveLength(known.length);
      const after = foldAllAtOnce(before.state, [...facts, ...facts]);
      expect(after.folded).toHaveLength(count - known.length);
      expect(after.state).toEqual(foldAll(facts));
      expect(after.state.failedAttempts).toBe(count);
      expect(after.state.keys).toEqual(facts.map(({ key }) => key).sort());
      expect(foldAllAtOnce(after.state, facts)).toEqual({ state: after.state, folded: [] });
    },
  );

  test("a terminal status beats a non-terminal one at the same occurredAt, whenever received", () => {
    const terminal = at(1, { mapping: delivered, receivedAtMs: 1 });
    const other = at(1, { receivedAtMs: 9 });
    expect(foldAll([terminal, other]).pair.status).toBe("DELIVERED");
    expect(foldAll([other, terminal]).pair.status).toBe("DELIVERED");
  });

  test("at the same occurredAt the later received wins, then the later in its message", () => {
    const pair = (detail: number) => ({ status: "EXCEPTION", detail, terminal: false }) as const;
    const early = at(1, { mapping: pair(1), receivedAtMs: 5, messageIndex: 9 });
    const late = at(1, { mapping: pair(2), receivedAtMs: 6, messageIndex: 0 });
    const last = at(1, { mapping: pair(3), receivedAtMs: 6, messageIndex: 1 });
    expect(foldAll([last, late, early]).pair.detail).toBe(3);
    expect(foldAll([late, early]).pair.detail).toBe(2);
  });

  test("a fact ahead of its time does not stand in front of one that is received after it, and keeps its time", () => {
    const ahead = at(100, { mapping: delivered, receivedAtMs: 5 });
    const next = at(6, { receivedAtMs: 7 });
    const before = at(4, {
      mapping: { status: "EXCEPTION", detail: 1, terminal: false },
      receivedAtMs: 9,
    });
    for (const facts of [
      [ahead, next, before],
      [before, next, ahead],
      [next, ahead, before],
    ]) {
      expect(foldAll(facts).pair.status).toBe("IN_TRANSIT");
    }
    expect(foldAll([ahead, before]).last?.by).toMatchObject({ occurredAtMs: 100, receivedAtMs: 5 });
    // Of two that were received at once the one that is further ahead is the later one.
    expect(foldAll([ahead, at(50, { receivedAtMs: 5 })]).pair.status).toBe("DELIVERED");
  });

  test("an unmapped fact moves statusDate and place but neither status nor its pairs", () => {
    const unmapped = at(2, { mapping: null });
    const state = foldAll([at(1), unmapped]);
    expect(state.pair.status).toBe("IN_TRANSIT");
    expect(state.last?.by.occurredAtMs).toBe(2);
    expect(state.unmapped).toBe(1);
  });

  test("document 2, data rule 3: the estimate of the latest event that carries delivery stands", () => {
    const carrying = (ms: number, date: string) =>
      at(ms, {
        key: `d${ms}`,
        event: { ...at(ms).event, delivery: { estimatedDeliveryDate: date } },
      });
    const facts = [carrying(3, "2026-11-13"), carrying(1, "2026-11-11"), at(4)];
    expect(foldAll(facts).estimate?.value.date).toBe("2026-11-13");
  });

  test("a parcel is one however its number is typed, in any order of the facts", () => {
    const of = (ms: number, trackingNumber: string) =>
      at(ms, { key: `p${ms}`, event: { ...at(ms).event, parcel: { trackingNumber } } });
    const facts = [of(1, "p 1"), of(2, "P1\u200b"), of(3, "p1")];
    const state = foldAll(facts);
    expect(Object.entries(state.parcels).map(([name, { by }]) => [name, by.occurredAtMs])).toEqual([
      ["P1", 3],
    ]);
    expect(foldAll(facts.toReversed()).parcels).toEqual(state.parcels);
  });

  test("a parcel may have any number, also the name of something every object has", () => {
    for (const number of ["constructor", "__proto__", "valueOf"]) {
      const parcel = { trackingNumber: number };
      const state = foldAll([at(1, { event: { ...at(1).event, parcel } })]);
      expect(Object.entries(state.parcels).map(([name]) => name)).toEqual([number.toUpperCase()]);
    }
  });

  const numbered = (count: number, event: (n: number) => Partial<Fact["event"]>) =>
    Array.from({ length: count }, (_, n) =>
      at(n, { key: `n${n}`, event: { ...at(n).event, ...event(n) } }),
    );

  test("100 further tracking numbers are listed, the 101st is not and its fact counts all the same", () => {
    const facts = numbered(101, (n) => ({ trackingNumberChange: { newTrackingNumber: `N${n}` } }));
    expect(foldAll(facts.slice(0, 100)).aliases.length).toBe(100);
    const state = foldAll(facts);
    expect([state.aliases.length, state.last?.by.occurredAtMs]).toEqual([100, 100]);
    expect(state.aliases).not.toContain("N100");
  });

  test("1,000 parcels have their own status, the 1,001st counts for the shipment alone", () => {
    const facts = numbered(1_001, (n) => ({ parcel: { trackingNumber: `P${n}` } }));
    const known = at(2_000, {
      mapping: delivered,
      event: { ...at(0).event, parcel: { trackingNumber: "P5" } },
    });
    const state = foldAll([...facts, known]);
    expect(Object.keys(state.parcels).length).toBe(1_000);
    expect(state.parcels).not.toHaveProperty("P1000");
    expect(state.parcels["P5"]?.value.status).toBe("DELIVERED");
    expect(state.keys.length).toBe(1_002);
  });

  test("document 3, Trigger semantics: a change says whether the shipment's pair changed, and to one it had never been in", () => {
    const exception = { status: "EXCEPTION", detail: 4, terminal: false } as const;
    let state = initialState("PENDING");
    const reported = [
      at(1),
      at(2),
      at(3, { mapping: exception }),
      at(4),
      at(0, { mapping: delivered }),
      at(5, { mapping: delivered }),
      at(6, { mapping: { status: "PENDING", detail: 0, terminal: false } }),
    ].map((fact) => {
      const next = fold(state, fact);
      state = next?.state ?? state;
      return [next?.change.changed, next?.change.firstOccurrence];
    });
    expect(reported).toEqual([
      [true, true],
      [false, false],
      [true, true],
      [true, false],
      [false, false],
      [true, true],
      [true, false],
    ]);
  });
});
