/** A shipment comes back from the archive as it was, and what stands there in clear names nobody. */
import { expect, test } from "bun:test";
import fc from "fast-check";
import { openWords, sealWords } from "#analytics/archive/archive-words.ts";
import { packWhole, unpackWhole } from "#core/archive/store/archived-shipment.ts";
import { textsOf } from "#core/archive/store/archived-texts.ts";
import { factKeyOf } from "#core/events/store/seen.ts";
import { encodeFacts } from "#core/shipments/store/shipment-codec.ts";

const EVENT_IDS = ["one", "two", "three"];
const KEYS = EVENT_IDS.map((id) => factKeyOf("GLS_ITA", id)).sort();
const PLACE = "Filiale di Roma Est";
const RECEIVED_MS = 1_795_380_666_464;
const DELIVERED = {
  delivery: { estimatedDeliveryDate: "2026-11-13", deliveredTo: "OTHER", signedBy: "Rossi" },
};

type Row = readonly unknown[];

function fact(eventId: string, occurredAt: string, ...rest: Row): Row {
  const said = [[12, 0, 1], "DLV", "Consegnata a Rossi", PLACE, "IT", "20121"];
  return [eventId, occurredAt, RECEIVED_MS, 7, ...said, ...rest];
}

const FACTS = [
  fact("one", "2026-11-10T09:00:00+01:00"),
  fact("two", "2026-11-10T09:00:07+01:00", null, ["OTHER-NUMBER"], 1),
  fact("three", "2026-11-11T10:00:00.5Z", DELIVERED, null, null, null, null, "message-1", 5),
];
const historyOf = (facts: readonly Row[]) => JSON.stringify(facts).slice(1, -1);
const HISTORY = historyOf(FACTS);

function stateOf(keys: string | readonly string[], place = PLACE): string {
  const meta = [1, 1, "GLS_ITA", "1Z999", "2026-11-24", 0, "ORDER-1", "00118", null, 1.7, ["P-1"]];
  const [ended, first] = [
    KEYS.indexOf(factKeyOf("GLS_ITA", "three")),
    KEYS.indexOf(factKeyOf("GLS_ITA", "one")),
  ];
  const firstMs = Date.parse("2026-11-10T08:00:00Z");
  const orders = [
    [ended, Date.parse("2026-11-11T10:00:00.5Z"), RECEIVED_MS, 7, 1],
    [first, firstMs, RECEIVED_MS, 7],
    ["a-key-that-left", 1, 2],
  ];
  const said = [
    [0, place],
    [0, 12, 0],
    [1, "2026-11-13", null, null],
    [0, "OTHER", "Rossi", null],
    0,
    0,
    [["P-1", [0, 12, 0]]],
  ];
  const rest = [null, 2, null, 1, null, firstMs, ["ALIAS-1"], null, ["DELIVERED:0"]];
  return JSON.stringify([meta, [[12, 0], keys, ["DELIVERED:0", "PENDING:0"], orders, said, rest]]);
}

const RECORD = JSON.stringify([
  {
    orderDate: "2026-11-01",
    note: "Citofono Rossi",
    consignee: {
      name: "Ada Rossi",
      street: "Via Roma 1",
      email: "ada@example.test",
      country: "IT",
    },
    orderItems: [{ sku: "S1", name: "Maglietta di cotone", quantity: 1, price: 19.9 }],
    planning: { deliveryDate: null },
  },
  ["orderReference"],
]);
const OWN = stateOf(KEYS.join(""));

function wholeOf(texts: Readonly<Record<string, string>>) {
  const fields = Object.entries({ v: "3 0 0 9", ...texts }).flatMap(([name, text]) => [
    Buffer.from(name),
    Buffer.from(name === "v" ? text : encodeFacts(text)),
  ]);
  const beside = { messages: ['{"to":"Rossi"}'], releases: ["7", "{}"], topics: ["t", "1"] };
  return { fields, numbers: ["1Z999", "ALIAS-1"], accounts: ["ACC-1"], ...beside };
}

function expectWhole(texts: Readonly<Record<string, string>>): void {
  const { fields, ...beside } = wholeOf(texts);
  const { id, fields: again, ...rest } = unpackWhole(16, packWhole(beside, textsOf(fields)));
  expect({ id, ...rest }).toEqual({ id: 16, ...beside });
  expect(Object.fromEntries(textsOf(again))).toEqual(Object.fromEntries(textsOf(fields)));
}

test.each([
  ["whose keys follow from its history", { c: RECORD, h: HISTORY, st: OWN }],
  [
    "with keys of other events",
    { c: RECORD, h: HISTORY, st: stateOf([...KEYS, "AAAAAAAAAAA"].join("")) },
  ],
  ["with keys of another form", { c: RECORD, h: HISTORY, st: stateOf([...KEYS, "other"]) }],
  ["without events", { c: RECORD, st: stateOf("") }],
  [
    "whose history has several parts",
    {
      c: RECORD,
      h0: HISTORY,
      h: historyOf(FACTS.slice(0, 1)),
      f0: historyOf(FACTS.slice(1)),
      st: OWN,
    },
  ],
  [
    "whose history has lost facts",
    { b: OWN, c: RECORD, h: HISTORY, st: stateOf(KEYS.slice(1).join("")) },
  ],
  ["whose texts look like marks", { c: RECORD, h: HISTORY, st: stateOf(KEYS.join(""), "=p") }],
  [
    "whose record has members that nobody knows",
    { c: '[{"later":{"p":"w0"}},[]]', h: HISTORY, st: OWN },
  ],
  ["whose texts are not written as ours are", { c: "[ {}, [] ]", h: HISTORY, st: OWN }],
])("a shipment %s comes back as it was", (_, texts) => {
  // From the third time on its texts are words.
  for (let time = 0; time < 5; time += 1) expectWhole(texts);
});

test("times of events come back as their couriers wrote them", () => {
  const time = fc.oneof(
    fc
      .record({
        at: fc.date({
          min: new Date("2025-01-01"),
          max: new Date("2027-12-31"),
          noInvalidDate: true,
        }),
        zone: fc.constantFrom("Z", "+01:00", "+02:00", "-03:30", "+0100"),
      })
      .map(({ at, zone }) => `${at.toISOString().slice(0, 19)}${zone}`),
    fc.constantFrom(
      "2026-11-10T09:00:00.123+01:00",
      "2026-11-10t09:00:60z",
      "2026-11-10T09:00:00,5Z",
    ),
  );
  fc.assert(
    fc.property(fc.array(time, { maxLength: 12 }), (times) => {
      const facts = times.map((occurredAt, at) => fact(`e${at}`, occurredAt));
      expectWhole({ c: RECORD, h: historyOf(facts), st: OWN });
    }),
  );
});

test("what stands in clear has no name, address, number or word of a courier", () => {
  const { fields, ...beside } = wholeOf({ c: RECORD, h: HISTORY, st: OWN, b: OWN });
  for (let time = 0; time < 5; time += 1) {
    const { eventIds, occurred, rest, words } = packWhole(beside, textsOf(fields));
    const open = eventIds + occurred + rest;
    for (const secret of [
      "Rossi",
      "Via",
      "example",
      "1Z999",
      "ALIAS",
      "ORDER",
      "P-1",
      "Filiale",
      "Maglietta",
      "S1",
    ]) {
      expect(open).not.toContain(secret);
    }
    expect(words.join()).not.toContain("Ada");
  }
});

test("what the history tells takes no room in the state", () => {
  const { fields, ...beside } = wholeOf({ h: HISTORY, st: OWN });
  const { rest } = packWhole(beside, textsOf(fields));
  expect(rest).not.toContain(KEYS[0] ?? "");
  expect(rest.split(String(RECEIVED_MS))).toHaveLength(2);
});

test("a word is the same bytes wherever it stands, for one company", () => {
  const [ours, theirs] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)];
  const words = ["Filiale di Roma", "", "In consegna", "Filiale di Roma"];
  const bytes = sealWords(ours, words);
  expect(bytes.includes("Roma")).toBe(false);
  expect(openWords(ours, bytes)).toEqual(words);
  expect(sealWords(ours, words.slice(0, 1))).toEqual(bytes.subarray(0, 14 + 15));
  expect(sealWords(theirs, words).equals(bytes)).toBe(false);
  expect(() => openWords(theirs, bytes)).toThrow();
});
