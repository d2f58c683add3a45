/** What leaves a history stays true: a fold of the rest from the base gives the state of all facts. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { Fact } from "#core/events/rules/fact.ts";
import { foldAll, initialState, type ShipmentState } from "#core/shipments/rules/fold.ts";
import {
  type Base,
  HISTORY_LIMIT,
  startFrom,
  trimHistory,
} from "#core/shipments/rules/history-limit.ts";
import { STATUSES } from "#core/statuses/rules/status.ts";

const CASES = 60;

interface Draw {
  readonly occurredAtMs: number;
  readonly status: number;
  readonly isMapped: boolean;
  readonly attempt: number;
}

const draw: fc.Arbitrary<Draw> = fc.record({
  occurredAtMs: fc.nat(500),
  status: fc.nat(STATUSES.length - 1),
  isMapped: fc.boolean(),
  attempt: fc.integer({ min: 1, max: 9 }),
});

/** Facts made of a few draws, over and over: what counts is which of them leave. */
function factsOf(draws: readonly Draw[], count: number): Fact[] {
  return Array.from({ length: count }, (_, n) => {
    const { occurredAtMs, status, isMapped, attempt } = draws[n % draws.length] as Draw;
    const name = STATUSES[status] ?? "PENDING";
    return {
      key: `k${n}`,
      occurredAtMs: (occurredAtMs * (n + 1)) % 5_003,
      receivedAtMs: n,
      messageIndex: 0,
      mapping: isMapped ? { status: name, detail: 0, terminal: name === "DELIVERED" } : null,
      event: {
        eventId: `k${n}`,
        trackingNumber: "T",
        occurredAt: "2026-11-10T10:00:00Z",
        status: { code: "C", description: "D" },
        delivery: { attemptNumber: attempt },
      },
    };
  });
}

/** `entered` stays in the shipment's state: a base and a fold from it do not tell it. */
const ofFacts = ({ keys: _, dropped: __, entered: ___, ...rest }: ShipmentState) => rest;

describe("a history over its limit", () => {
  test("loses nothing of the state, however often it is trimmed", () => {
    fc.assert(
      fc.property(
        fc.array(draw, { minLength: 1, maxLength: 40 }),
        fc.integer({ min: 1, max: 900 }),
        (draws, more) => {
          const facts = factsOf(draws, HISTORY_LIMIT + more);
          let base: Base | null = null;
          let history: readonly Fact[] = [];
          for (const fact of facts) {
            history = [...history, fact];
            if (history.length <= HISTORY_LIMIT) continue;
            const trimmed = trimHistory(history, base);
            [history, base] = [trimmed.kept, trimmed.base];
          }
          const folded = foldAll(startFrom(base), history).state;
          const all = foldAll(initialState("PENDING"), facts).state;
          expect(ofFacts(folded)).toEqual(ofFacts(all));
          expect(folded.keys.length + folded.dropped).toBe(facts.length);
          expect(new Set([...folded.keys, ...(base?.keys ?? [])]).size).toBe(facts.length);
        },
      ),
      { numRuns: CASES },
    );
  });

  test("at the limit is whole, one past it keeps the first 100 and the latest 650", () => {
    const one = { occurredAtMs: 1, status: 3, isMapped: true, attempt: 1 };
    const facts = factsOf([one], HISTORY_LIMIT + 1);
    const { kept, base } = trimHistory(facts, null);
    expect(kept).toEqual([...facts.slice(0, 100), ...facts.slice(-650)]);
    expect([base.dropped, base.keys.length]).toEqual([251, 251]);
  });
});

test("the latest 5,000 keys of facts that have left stay known, and no more", () => {
  const facts = factsOf(
    [{ occurredAtMs: 1, status: 0, isMapped: true, attempt: 1 }],
    HISTORY_LIMIT,
  );
  const keys = Array.from({ length: 5_000 }, (_, at) => `before-${at}`);
  const { base } = trimHistory(facts, { ...initialState("PENDING"), keys });
  expect(base.keys).toHaveLength(5_000);
  const left = base.keys.filter((key) => !keys.includes(key)).length;
  expect(left).toBeGreaterThan(0);
  expect(base.keys.slice(0, -left)).toEqual(keys.slice(left));
});
