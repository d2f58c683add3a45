/** A shipment as it was known at an earlier time: the same facts and the same fold. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { Fact, Mapping } from "#core/events/rules/fact.ts";
import { asOf, type KnownHistory, type MappingChange } from "#core/shipments/rules/as-of.ts";
import { foldAll, initialState } from "#core/shipments/rules/fold.ts";
import { HISTORY_LIMIT, trimHistory } from "#core/shipments/rules/history-limit.ts";
import { STATUSES } from "#core/statuses/rules/status.ts";

const CASES = 1_000;

interface Sent {
  readonly occurredAtMs: number;
  readonly mapping: Mapping | null;
  readonly place: string;
}

const sentArbitrary: fc.Arbitrary<Sent> = fc.record({
  occurredAtMs: fc.integer({ min: 0, max: 40 }),
  mapping: fc.option(
    fc.record({
      status: fc.constantFrom(...STATUSES),
      detail: fc.integer({ min: 0, max: 1 }),
      terminal: fc.boolean(),
    }),
  ),
  place: fc.constantFrom("Milano", "Roma"),
});

/** Received one after the other, a millisecond each from 10 on. */
const factOf = ({ occurredAtMs, mapping, place }: Sent, at: number): Fact => ({
  key: `k${String(at).padStart(4, "0")}`,
  occurredAtMs,
  receivedAtMs: 10 + at,
  messageIndex: 0,
  mapping,
  event: {
    eventId: `e${at}`,
    trackingNumber: "T",
    occurredAt: "2026-11-10T10:00:00Z",
    status: { code: "C", description: "D" },
    location: { name: place },
  },
});

const START = initialState("PENDING");
const history = (facts: readonly Fact[]): KnownHistory => ({
  facts,
  state: foldAll(START, facts).state,
  base: null,
  trackingNumber: "T",
});

describe("a shipment as of a time", () => {
  test("is, at the receipt of each of its events, what these events had made of it by then, and now what it is now", () => {
    fc.assert(
      fc.property(fc.array(sentArbitrary, { maxLength: 8 }), (sent) => {
        const facts = sent.map(factOf);
        for (let known = 0; known <= facts.length; known += 1) {
          const { state } = foldAll(START, facts.slice(0, known));
          const then = asOf(history(facts), 9 + known, []);
          expect(then.facts).toEqual(facts.slice(0, known));
          expect(then.state).toEqual(state);
        }
      }),
      { numRuns: CASES },
    );
  });

  test("is mapped as the catalogue said, through any number of later remaps, and stays as it is where they did not reach it", () => {
    const entry = (status: Mapping["status"]) => ({
      code: "C",
      description: "",
      terminal: false,
      status,
    });
    const change = (at: number, before: Mapping["status"] | null, after: Mapping["status"]) => ({
      id: `rmp_${at}`,
      createdAtMs: at,
      entries: [{ code: "C", before: before && entry(before), after: entry(after) }],
    });
    const later: MappingChange[] = [change(300, "DELAY", "DELIVERED"), change(200, null, "DELAY")];
    const mapped = (status: Mapping["status"]) => ({ status, detail: 0, terminal: false });
    const one = (mapping: Mapping | null) =>
      history([factOf({ occurredAtMs: 1, mapping, place: "Roma" }, 0)]);
    const then = (mapping: Mapping | null, changes: readonly MappingChange[]) => {
      const known = asOf(one(mapping), 150, changes);
      return [known.facts[0]?.mapping, known.state.pair.status, known.mappedBefore.get("k0000")];
    };
    expect(then(mapped("DELIVERED"), later)).toEqual([null, "PENDING", "rmp_200"]);
    const [latest] = later;
    expect(then(mapped("DELIVERED"), latest ? [latest] : [])).toEqual([
      mapped("DELAY"),
      "DELAY",
      "rmp_300",
    ]);
    expect(then(mapped("RETURNED"), later)).toEqual([mapped("RETURNED"), "RETURNED", undefined]);
    expect(then(null, later)).toEqual([null, "PENDING", undefined]);
  });

  test("has a parked event from its release on: by the first event, or by the one that announced its number", () => {
    const sent = { occurredAtMs: 1, mapping: null, place: "Roma" };
    const [own, early, other] = [20, 0, 5].map((at) => factOf(sent, at)) as [Fact, Fact, Fact];
    const announcing = factOf(sent, 40);
    const facts: Fact[] = [
      { ...early, parked: true },
      own,
      { ...other, parked: true, event: { ...other.event, trackingNumber: "t-2" } },
      {
        ...announcing,
        event: { ...announcing.event, trackingNumberChange: { newTrackingNumber: "T-2" } },
      },
    ];
    const countAt = (atMs: number) => asOf(history(facts), atMs, []).facts.length;
    expect([29, 30, 49, 50].map(countAt)).toEqual([0, 2, 2, 4]);
  });

  test("counts what left a full history as soon as it knows an event behind it", () => {
    const mapping = { status: "EXCEPTION", detail: 0, terminal: false } as const;
    const facts = Array.from({ length: HISTORY_LIMIT + 1 }, (_, at) =>
      factOf({ occurredAtMs: at, mapping, place: "Roma" }, at),
    );
    const { state } = foldAll(START, facts);
    const { kept, base } = trimHistory(facts, null);
    const trimmed = { facts: kept, state, base, trackingNumber: "T" };
    const exceptionsAt = (at: number) => asOf(trimmed, 10 + at, []).state.exceptions;
    expect([49, 99, HISTORY_LIMIT - 1, HISTORY_LIMIT].map(exceptionsAt)).toEqual([
      ...[50, 100, HISTORY_LIMIT, HISTORY_LIMIT + 1],
    ]);
  });
});
