/** A history comes back whole and in order, however its commits have spread it over the fields of its shipment. */
import { expect, test } from "bun:test";
import fc from "fast-check";
import type { Fact } from "#core/events/rules/fact.ts";
import { seenBucket } from "#core/events/store/seen.ts";
import { instantOf } from "#core/platform/time/rome-time.ts";
import {
  historyOf,
  partsOf,
  REPACKED_FIELDS,
  repacks,
} from "#core/shipments/store/history-parts.ts";

const CASES = 300;
const COURIER = "GLS_ITA";
const meta = {
  companyId: 1,
  channelId: 1,
  courier: COURIER,
  trackingNumber: "T1",
  shipDate: "2026-11-09",
  isPlaceholder: false,
  orderReference: null,
  destCap: null,
  originCap: null,
  weightKg: null,
};

const occurredAt = "2026-11-10T08:00:00Z";

function factOf(number: number, description: string): Fact {
  const eventId = `event-${number}`;
  return {
    key: seenBucket(COURIER, eventId).factKey,
    event: { eventId, occurredAt, trackingNumber: "T1", status: { code: "TRN", description } },
    occurredAtMs: instantOf(occurredAt),
    receivedAtMs: number,
    messageIndex: 0,
    mapping: null,
  };
}

/** What a commit adds, or what takes the place of all there is. */
const step = fc.record({
  count: fc.oneof({ weight: 6, arbitrary: fc.nat(5) }, fc.nat(70)),
  isReplaced: fc.oneof({ weight: 9, arbitrary: fc.constant(false) }, fc.boolean()),
  isUnderWay: fc.oneof({ weight: 5, arbitrary: fc.constant(true) }, fc.boolean()),
  description: fc.oneof(fc.string({ unit: "grapheme" }), fc.constant("long ".repeat(1_000))),
});

test("a history is read as it was written, commit by commit", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const fields = new Map<string, Buffer>();
      let history: readonly Fact[] = [];
      let unpacked = 0;
      let number = 0;
      for (const { count, description, ...kind } of steps) {
        const facts = Array.from({ length: count }, () => {
          number += 1;
          return factOf(number, description);
        });
        const change = { meta, known: history.length, unpacked, facts, ...kind };
        const stored = repacks(change)
          ? REPACKED_FIELDS.map((name) => fields.get(name) ?? null)
          : [];
        const parts = partsOf(change, stored);
        for (let at = 0; at < parts.fields.length; at += 2) {
          fields.set(String(parts.fields[at]), Buffer.from(parts.fields[at + 1] ?? ""));
        }
        for (const name of parts.dropped) fields.delete(name);
        unpacked = parts.unpacked;
        if (facts.length > 0) history = kind.isReplaced ? facts : [...history, ...facts];
        expect(historyOf(meta, fields)).toEqual([...history]);
        expect(fields.size).toBeLessThanOrEqual(Math.floor(history.length / 32) + 1 + unpacked);
      }
    }),
    { numRuns: CASES },
  );
});
