/** Suggestions for unmapped codes: what speaks for a meaning, and what keeps a wrong one from being suggested. */
import { describe, expect, test } from "bun:test";
import type { Status } from "#core/statuses/rules/status.ts";
import { type KnownText, knowledgeOf, type Passage } from "#core/statuses/rules/suggest-mapping.ts";

const pair = (status: Status, detail = 0) => ({ status, detail });
const known = (
  courier: string,
  code: string,
  text: string,
  status: Status,
  detail = 0,
): KnownText => ({
  pair: pair(status, detail),
  text,
  of: { name: `Courier ${courier}`, code },
});
const own = (text: string, status: Status, detail = 0): KnownText => ({
  pair: pair(status, detail),
  text,
  of: null,
});

const KNOWN = [
  known("A", "DLV", "Consegnata", "DELIVERED"),
  known("B", "DLV", "Merce consegnata", "DELIVERED"),
  known("A", "OFD", "In consegna", "OUT_FOR_DELIVERY"),
  known("A", "RTN", "Resa al mittente", "RETURNED"),
  known("A", "10", "Partita dalla filiale", "DEPARTED"),
  known("A", "HOLD", "In giacenza", "EXCEPTION", 4),
  own("Failed delivery attempt", "FAILED_ATTEMPT"),
  own("Tentativo di consegna fallito", "FAILED_ATTEMPT"),
];

const suggest = (description: string, passages: readonly Passage[] = []) =>
  knowledgeOf(KNOWN).suggest(description, passages);
const meaningOf = (...given: Parameters<typeof suggest>) => {
  const found = suggest(...given);
  return found && [found.status, found.statusDetail, found.confidence];
};
const passages = (count: number, before: Status | null, ...after: Status[]): Passage[] =>
  Array.from({ length: count }, () => ({
    before: before && pair(before),
    after: after.map((status) => pair(status)),
  }));

describe("the description", () => {
  test("with the same words as a mapped code means the same, whatever case, accents, gender and fillers", () => {
    expect(meaningOf("SPEDIZIONE CONSEGNATA")).toEqual(["DELIVERED", 0, "high"]);
    expect(meaningOf("Il collo è stato consegnato")).toEqual(["DELIVERED", 0, "high"]);
    expect(meaningOf("in giacenza")).toEqual(["EXCEPTION", 4, "high"]);
    expect(meaningOf("failed delivery attempt")).toEqual(["FAILED_ATTEMPT", 0, "high"]);
  });

  test.each([
    "Non consegnata",
    "Consegnata al vicino",
    "Mancata consegna",
    "Consegna rifiutata",
    "Non in consegna",
    "Delivery",
    "In consegna fallita",
    "In consegna oggi",
    "Tentativo di consegna",
    "Consegnata al mittente",
    "",
    "Evento 42",
  ])("%p suggests nothing: it may mean something else", (description) => {
    expect(suggest(description)).toBeNull();
  });

  test("suggests nothing where codes with the same words mean different things", () => {
    const two = [known("A", "X", "Ferma", "EXCEPTION", 4), known("B", "Y", "fermo", "DELAY")];
    expect(knowledgeOf(two).suggest("Ferma", [])).toBeNull();
  });
});

describe("words", () => {
  const suggestOf = (texts: readonly KnownText[], description: string) =>
    knowledgeOf(texts).suggest(description, []);

  test("of four letters keep their last vowel, and fillers alone are no description", () => {
    expect(suggest("Reso al mittente")).toBeNull();
    expect(suggestOf([known("A", "X", "Il collo", "DELAY")], "la spedizione")).toBeNull();
  });

  test("that a courier and we use alike are told to be the courier's; ours are told to be ours", () => {
    const both = [own("Ferma in sede", "DELAY"), known("A", "X", "Ferma in sede", "DELAY")];
    expect(suggestOf(both, "ferma in sede")?.because.en).toEndWith(
      "“Ferma in sede”, X of Courier A.",
    );
    expect(suggest("failed delivery attempt")?.because).toEqual({
      en: "Its description says the same as “Failed delivery attempt”, our own name of it.",
      it: "La descrizione dice lo stesso di “Failed delivery attempt”, il nostro nome per questo.",
    });
  });
});

describe("what happened to parcels", () => {
  test("refuses a delivery after which more than a tenth of the parcels went on", () => {
    const ended = passages(9, "OUT_FOR_DELIVERY");
    const wentOn = passages(1, "IN_TRANSIT", "OUT_FOR_DELIVERY");
    expect(meaningOf("Consegnata", [...ended, ...wentOn])).toEqual(["DELIVERED", 0, "high"]);
    expect(suggest("Consegnata", [...ended.slice(1), ...wentOn])).toBeNull();
    expect(suggest("In consegna", passages(5, "DELIVERED"))).toBeNull();
    expect(suggest("In consegna", passages(5, "IN_TRANSIT"))?.status).toBe("OUT_FOR_DELIVERY");
    expect(suggest("In consegna", passages(5, null))?.status).toBe("OUT_FOR_DELIVERY");
  });

  test("between two events of one status in 95 % of 20 parcels, a code seems to change nothing", () => {
    const between = (count: number) => passages(count, "IN_TRANSIT", "IN_TRANSIT", "DELIVERED");
    expect(meaningOf("Evento 42", between(20))).toEqual(["IN_TRANSIT", 0, "low"]);
    expect(suggest("Evento 42", between(19))).toBeNull();
    expect(meaningOf("Evento 42", [...between(19), ...passages(1, null)])?.[2]).toBe("low");
    expect(suggest("Evento 42", [...between(18), ...passages(2, null)])).toBeNull();
    expect(suggest("Evento 42", passages(30, "DELIVERED", "DELIVERED"))).toBeNull();
    const stray = passages(1, "DEPARTED", "DEPARTED");
    for (const all of [
      [...stray, ...between(19)],
      [...between(19), ...stray],
    ]) {
      expect(meaningOf("Evento 42", all)).toEqual(["IN_TRANSIT", 0, "low"]);
    }
  });
});

test("every suggestion says why, in both languages", () => {
  expect(suggest("Consegnata")?.because).toEqual({
    en: "Its description says the same as “Consegnata”, DLV of Courier A.",
    it: "La descrizione dice lo stesso di “Consegnata”, DLV di Courier A.",
  });
});
