/** What stands together in a log entry, distinguished again. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { decodeLoggedEvent, encodeLoggedEvent, splitEvents } from "#core/events/store/event-log.ts";
import { compareIds, logEntry } from "#core/platform/log/log-entry.ts";
import {
  decodeChangeEntry,
  encodeChange,
  ownerOfChange,
  rowsOf,
  splitChanges,
} from "#core/shipments/store/change-log.ts";
import { STATUSES } from "#core/statuses/rules/status.ts";

describe("an entry of the change log", () => {
  test("gives every change with its shipment and its two lines", () => {
    const fields = { s: "17 33", change: '{"a":1}\n{"b":1}\n{"a":2}\n{"b":2}' };
    expect(splitChanges(fields)).toEqual([
      { s: "17", change: '{"a":1}\n{"b":1}' },
      { s: "33", change: '{"a":2}\n{"b":2}' },
    ]);
  });

  test("of one change, or of a creation, is that alone", () => {
    expect(splitChanges({ s: "1", change: "x\ny" })).toEqual([{ s: "1", change: "x\ny" }]);
    expect(splitChanges({ s: "1", created: "{}" })).toEqual([{ s: "1", created: "{}" }]);
  });

  test("gives every creation with its shipment", () => {
    expect(splitChanges({ s: "17 33", created: '{"a":1}\n{"a":2}' })).toEqual([
      { s: "17", created: '{"a":1}' },
      { s: "33", created: '{"a":2}' },
    ]);
  });

  test("that is neither stays as it is, and fails in its handler", () => {
    expect(splitChanges({ s: "1" })).toEqual([{ s: "1" }]);
  });

  test("keeps any texts", () => {
    const change = fc.tuple(fc.nat(), fc.json(), fc.json());
    fc.assert(
      fc.property(fc.array(change, { minLength: 1, maxLength: 20 }), (changes) => {
        const fields = {
          s: changes.map(([id]) => id).join(" "),
          change: changes.map(([, reported, rows]) => `${reported}\n${rows}`).join("\n"),
        };
        expect(splitChanges(fields)).toEqual(
          changes.map(([id, reportedNow, rows]) => ({
            s: String(id),
            change: `${reportedNow}\n${rows}`,
          })),
        );
      }),
    );
  });
});

const orNull = <T>(of: fc.Arbitrary<T>) => fc.option(of, { nil: null });
const fact = {
  key: fc.string(),
  occurredAtMs: fc.integer(),
  receivedAtMs: fc.integer(),
  status: orNull(fc.constantFrom(...STATUSES)),
  detail: fc.nat(),
};
const changeFact = fc.record({ ...fact, courierStatus: fc.string(), place: orNull(fc.string()) });
const eventRow = fc.record({
  ...fact,
  courier: fc.string(),
  code: fc.string(),
  reasonCode: orNull(fc.string()),
  messageIndex: fc.nat(),
  terminal: fc.boolean(),
  outOfOrder: fc.boolean(),
  isReturn: fc.boolean(),
  destCap: orNull(fc.string()),
  originCap: orNull(fc.string()),
  weightKg: orNull(fc.nat()),
  shipDate: fc.string(),
  version: fc.nat(),
});
const change = fc.record(
  {
    companyId: fc.nat(),
    channelId: fc.nat(),
    fact: changeFact,
    lane: fc.constant(null),
    changed: fc.boolean(),
    firstOccurrence: fc.boolean(),
    isRewrite: fc.constant(true as const),
    events: fc.array(eventRow, { maxLength: 3 }),
  },
  { requiredKeys: ["companyId", "channelId", "fact", "lane", "changed", "firstOccurrence"] },
);

test("a change is read as it was written, with its rows", () => {
  fc.assert(
    fc.property(change, (written) => {
      const read = decodeChangeEntry({ s: "17", change: encodeChange(written) });
      if (read.type === "created") throw new Error("no change");
      expect(read.shipmentId).toBe(17);
      expect({ ...read.change, ...read.readRows() }).toEqual(written);
    }),
  );
});

test("an entry of the event log gives every event, in order", () => {
  expect(splitEvents({ e: "[1]\n[2]" })).toEqual([{ e: "[1]" }, { e: "[2]" }]);
});

test("an event of several shipments is given once for each, whatever its texts hold", () => {
  fc.assert(
    fc.property(fc.array(fc.nat(), { minLength: 1, maxLength: 5 }), fc.string(), (ids, text) => {
      const common = {
        courier: text,
        factKey: "k",
        receivedAtMs: 1,
        messageIndex: 0,
        event: {
          eventId: `]${text}[[`,
          trackingNumber: text,
          occurredAt: "2026-11-10T10:00:00Z",
          status: { code: text, description: text },
        },
      };
      const single = encodeLoggedEvent({ ...common, shipmentId: 7 });
      const e = `${encodeLoggedEvent({ ...common, shipmentId: ids })}\n${single}\n`;
      const decoded = splitEvents({ e }).map((fields) => decodeLoggedEvent(fields["e"] ?? ""));
      expect(decoded).toEqual([...ids, 7].map((shipmentId) => ({ ...common, shipmentId })));
    }),
  );
});

test("ids of what stands together are its entry's, then with an index, in order", () => {
  const { items } = logEntry("log", "5-3", { e: "a\nb\nc" }, splitEvents);
  expect(items.map(({ id }) => id)).toEqual(["5-3", "5-3.1", "5-3.2"]);
  const ordered = ["5-3", "5-3.1", "5-3.2", "5-3.10", "5-4", "5-10", "6-0", "10-0"];
  expect(ordered.toReversed().sort(compareIds)).toEqual(ordered);
  expect(compareIds("5", "5-0")).toBe(0);
});

test("whose a change is, and its rows, are read from it alone", () => {
  const ids = fc.record({ companyId: fc.integer({ min: 1 }), channelId: fc.integer({ min: 1 }) });
  fc.assert(
    fc.property(change, ids, ({ lane, events, ...reportedNow }, owner) => {
      const rows = events === undefined ? { lane } : { lane, events };
      const text = encodeChange({ ...reportedNow, ...rows, ...owner });
      expect(ownerOfChange(text)).toEqual(owner);
      expect(rowsOf(text)).toEqual(rows);
    }),
  );
  for (const text of ["", "{", "[]", "[null,1]", "x,1,2"]) {
    expect(() => ownerOfChange(text)).toThrow();
  }
});
