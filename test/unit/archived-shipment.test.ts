/** A shipment is unpacked from the archive byte for byte as it was, whether or not its keys follow from its history. */
import { expect, test } from "bun:test";
import { factKeyOf } from "#core/redis/log/seen.ts";
import { packWhole, unpackWhole } from "#core/redis/shipments/archived-shipment.ts";
import { decodeFactsText, encodeFacts } from "#core/redis/shipments/shipment-codec.ts";

const EVENT_IDS = ["one", "two", "three"];
const KEYS = EVENT_IDS.map((id) => factKeyOf("GLS_ITA", id)).join("");
const HISTORY = EVENT_IDS.map((id) => JSON.stringify([id, "2026-11-10T09:00:00+01:00"])).join(",");

function state(keys: string, place: string): string {
  return JSON.stringify([
    [1, 1, "GLS_ITA", "N1"],
    [[12, 0], keys, [[0, place]]],
  ]);
}

function wholeOf(texts: Readonly<Record<string, string>>) {
  const fields = Object.entries(texts).flatMap(([name, text]) => [
    Buffer.from(name),
    Buffer.from(encodeFacts(text)),
  ]);
  const beside = { messages: ['{"a":"b\\n"}'], releases: ["7", "{}"], topics: ["t", "1"] };
  const numbers = ["N1", "N2"];
  return {
    id: 16,
    fields: [Buffer.from("v"), Buffer.from("3 0 0 9"), ...fields],
    numbers,
    ...beside,
  };
}

function textsOf(fields: readonly Buffer[]): string[] {
  return fields.map((bytes, at) =>
    at > 1 && at % 2 === 1 ? decodeFactsText(bytes) : String(bytes),
  );
}

test.each([
  ["whose keys follow from its history", { c: "[{},[]]", h: HISTORY, st: state(KEYS, "Roma") }],
  ["with keys of its own", { c: "[{},[]]", h: HISTORY, st: state(`${KEYS}AAAAAAAAAAA`, "Roma") }],
  ["whose text looks like keys left out", { c: "[{},[]]", h: HISTORY, st: state(KEYS, "=") }],
  ["without events", { c: "[{},[]]", st: state("", "") }],
  ["whose history has lost some", { b: "[[],[]]", h: HISTORY, st: state(KEYS.slice(11), "Roma") }],
] as const)("a shipment %s", (_, texts) => {
  const { id, ...whole } = wholeOf(texts);
  const { fields, ...rest } = unpackWhole(id, packWhole(whole));
  expect({ ...rest, texts: textsOf(fields).sort() }).toEqual({
    ...{ id, messages: whole.messages, releases: whole.releases, topics: whole.topics },
    ...{ numbers: whole.numbers, texts: textsOf(whole.fields).sort() },
  });
});

test("keys that follow from the history take no room", () => {
  const sizeOf = (texts: Readonly<Record<string, string>>) => packWhole(wholeOf(texts)).length;
  const derived = sizeOf({ h: HISTORY, st: state(KEYS, "Roma") });
  const own = sizeOf({ h: HISTORY, st: state([...KEYS].reverse().join(""), "Roma") });
  expect(own - derived).toBeGreaterThan(20);
});
