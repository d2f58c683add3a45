/** The reference model of `waybill verify`: independent of the product's rules, and of one mind with them. */
import { expect, test } from "bun:test";
import fc from "fast-check";
import type { Fact } from "#core/events/rules/fact.ts";
import { fold, foldAll, initialState } from "#core/shipments/rules/fold.ts";
import { STATUSES } from "#core/statuses/rules/status.ts";
import { compareState } from "#core/verify/rules/compare.ts";
import { modelChanges } from "#core/verify/rules/reference-model.ts";

const CASES = 2_000;
const MOST_LINES = 500;

test("the model has at most 500 lines and imports nothing", async () => {
  const text = await Bun.file("core/verify/rules/reference-model.ts").text();
  expect(text.split("\n").length).toBeLessThanOrEqual(MOST_LINES);
  expect(text).not.toMatch(/^\s*import|\brequire\(|\bimport\(/m);
});

const optional = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined });

const members = fc.record({
  occurredAtMs: fc.integer({ min: 0, max: 6 }),
  receivedAtMs: fc.integer({ min: 0, max: 4 }),
  messageIndex: fc.integer({ min: 0, max: 2 }),
  mapping: fc.option(
    fc.record({
      status: fc.constantFrom(...STATUSES),
      detail: fc.integer({ min: 0, max: 1 }),
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
  number: optional(fc.constantFrom("N1", "N2")),
  parcel: optional(fc.constantFrom("P 1", "p1", "P2")),
  isReturn: optional(fc.boolean()),
});

const factsArbitrary = fc.array(members, { maxLength: 9 }).map((all) =>
  all.map(({ name, delivery, number, parcel, isReturn, ...rest }, at): Fact => {
    const key = `k${at}`;
    return {
      key,
      ...rest,
      event: {
        eventId: key,
        trackingNumber: "T",
        occurredAt: "2026-11-10T10:00:00Z",
        status: { code: "C", description: "D" },
        ...(name && { location: { name } }),
        ...(delivery && { delivery }),
        ...(number && { trackingNumberChange: { newTrackingNumber: number } }),
        ...(parcel && { parcel: { trackingNumber: parcel } }),
        ...(isReturn !== undefined && { isReturn }),
      },
    };
  }),
);

test("any facts make the same state of a shipment in both", () => {
  fc.assert(
    fc.property(factsArbitrary, (facts) => {
      expect(compareState(1, foldAll(initialState("PENDING"), facts).state, facts)).toEqual([]);
    }),
    { numRuns: CASES },
  );
});

test("any facts, applied one after the other, change it alike in both", () => {
  fc.assert(
    fc.property(factsArbitrary, (facts) => {
      let state = initialState("PENDING");
      const changes = facts.map((fact) => {
        const folded = fold(state, fact);
        state = folded?.state ?? state;
        const { changed = false, firstOccurrence = false } = folded?.change ?? {};
        return { key: fact.key, status: fact.mapping?.status ?? null, changed, firstOccurrence };
      });
      expect(modelChanges(facts)).toEqual(changes);
    }),
    { numRuns: CASES },
  );
});
