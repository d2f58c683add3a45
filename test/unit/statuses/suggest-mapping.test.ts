/** Suggestions for unmapped codes (issue 18): what speaks for a meaning, and what keeps a wrong one from being suggested. */
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
  of: { courier, name: `Courier ${courier}`, code },
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
  known("B", "10", "Ritardo per maltempo", "DELAY"),
  known("A", "HOLD", "In giacenza", "EXCEPTION", 4),
  known("B", "HOLD", "Ferma", "EXCEPTION", 4),
  known("A", "STP", "Fermata", "DELAY"),
  known("B", "STP", "Stop", "EXCEPTION"),
  own("Failed delivery attempt", "FAILED_ATTEMPT"),
  own("Tentativo di consegna fallito", "FAILED_ATTEMPT"),
];

const suggest = (
  description: string,
  code = "???",
  passages: readonly Passage[] = [],
  courier = "C",
) => knowledgeOf(KNOWN).suggest({ courier, code, description }, passages);
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

  test("that is only alike is likely", () => {
    expect(meaningOf("Tentativo di consegna")).toEqual(["FAILED_ATTEMPT", 0, "medium"]);
    expect(meaningOf("In consegna oggi")).toEqual(["OUT_FOR_DELIVERY", 0, "medium"]);
  });

  test.each([
    "Non consegnata",
    "Consegnata al vicino",
    "Mancata consegna",
    "Consegna rifiutata",
    "Non in consegna",
    "Delivery",
    "In consegna fallita",
    "Consegnata al mittente",
    "",
    "Evento 42",
  ])("%p suggests nothing: it may mean something else", (description) => {
    expect(suggest(description)).toBeNull();
  });

  test("suggests nothing where codes with the same words mean different things", () => {
    const two = [known("A", "X", "Ferma", "EXCEPTION", 4), known("B", "Y", "fermo", "DELAY")];
    const given = { courier: "C", code: "Z", description: "Ferma" };
    expect(knowledgeOf(two).suggest(given, [])).toBeNull();
  });
});

describe("words", () => {
  const suggestOf = (texts: readonly KnownText[], description: string) =>
    knowledgeOf(texts).suggest({ courier: "C", code: "?", description }, []);

  test("of four letters keep their last vowel, and fillers alone are no description", () => {
    expect(suggest("Reso al mittente")).toBeNull();
    expect(suggestOf([known("A", "X", "Il collo", "DELAY")], "la spedizione")).toBeNull();
  });

  test("lead to every text that has them, not to the first alone", () => {
    const texts = [
      ...[known("A", "1", "alfa zeta", "DELAY"), known("A", "2", "gamma eta", "DELAY")],
      known("A", "3", "alfa gamma", "RETURNED"),
    ];
    expect(suggestOf(texts, "alfa gamma nuovo")?.status).toBe("RETURNED");
  });

  test("seven of ten alike are enough, six are not", () => {
    const ten = "uno1 due2 tre3 qua4 cin5 sei6 set7 ott8 nov9 die10";
    const like = (count: number) =>
      ten
        .split(" ")
        .map((word, at) => (at < count ? word : `x${word}`))
        .join(" ");
    const texts = [known("A", "1", ten, "DELAY")];
    expect(suggestOf(texts, like(7))?.status).toBe("DELAY");
    expect(suggestOf(texts, like(6))).toBeNull();
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

describe("the same code at other couriers", () => {
  test("counts where it is made of letters and two others agree, and makes a text that agrees certain", () => {
    expect(meaningOf("arrivo", "hold")).toEqual(["EXCEPTION", 4, "medium"]);
    expect(meaningOf("Tentativo di consegna", "DLV")).toBeNull();
    const found = suggest("Consegnata", "DLV");
    expect(found?.confidence).toBe("high");
    expect(found?.because.en).toContain("2 other couriers use the code DLV");
  });

  test("says nothing where it is a number, where one courier alone has it, or where they disagree", () => {
    expect(suggest("arrivo", "10")).toBeNull();
    expect(suggest("arrivo", "OFD")).toBeNull();
    expect(suggest("arrivo", "HOLD", [], "A")).toBeNull();
    expect(suggest("arrivo", "STP")).toBeNull();
    const numbers = ["A", "B"].map((courier) => known(courier, "20", "Sosta", "DELAY"));
    const given = { courier: "C", code: "20", description: "arrivo" };
    expect(knowledgeOf(numbers).suggest(given, [])).toBeNull();
  });
});

describe("what happened to parcels", () => {
  test("refuses a delivery after which more than a tenth of the parcels went on", () => {
    const ended = passages(9, "OUT_FOR_DELIVERY");
    const wentOn = passages(1, "IN_TRANSIT", "OUT_FOR_DELIVERY");
    expect(meaningOf("Consegnata", "X", [...ended, ...wentOn])).toEqual(["DELIVERED", 0, "high"]);
    expect(suggest("Consegnata", "X", [...ended.slice(1), ...wentOn])).toBeNull();
    expect(suggest("In consegna", "X", passages(5, "DELIVERED"))).toBeNull();
    expect(suggest("In consegna", "X", passages(5, "IN_TRANSIT"))?.status).toBe("OUT_FOR_DELIVERY");
    expect(suggest("In consegna", "X", passages(5, null))?.status).toBe("OUT_FOR_DELIVERY");
  });

  test("between two events of one status in 95 % of 20 parcels, a code seems to change nothing", () => {
    const between = (count: number) => passages(count, "IN_TRANSIT", "IN_TRANSIT", "DELIVERED");
    expect(meaningOf("Evento 42", "X", between(20))).toEqual(["IN_TRANSIT", 0, "low"]);
    expect(suggest("Evento 42", "X", between(19))).toBeNull();
    expect(meaningOf("Evento 42", "X", [...between(19), ...passages(1, null)])?.[2]).toBe("low");
    expect(suggest("Evento 42", "X", [...between(18), ...passages(2, null)])).toBeNull();
    expect(suggest("Evento 42", "X", passages(30, "DELIVERED", "DELIVERED"))).toBeNull();
    const stray = passages(1, "DEPARTED", "DEPARTED");
    for (const all of [
      [...stray, ...between(19)],
      [...between(19), ...stray],
    ]) {
      expect(meaningOf("Evento 42", "X", all)).toEqual(["IN_TRANSIT", 0, "low"]);
    }
  });
});

test("every suggestion says why, in both languages", () => {
  const found = [suggest("Consegnata"), suggest("In consegna oggi"), suggest("arrivo", "HOLD")];
  expect(found.map((one) => one?.because)).toEqual([
    {
      en: "Its description says the same as “Consegnata”, DLV of Courier A.",
      it: "La descrizione dice lo stesso di “Consegnata”, DLV di Courier A.",
    },
    {
      en: "Its description is close to “In consegna”, OFD of Courier A.",
      it: "La descrizione è vicina a “In consegna”, OFD di Courier A.",
    },
    {
      en: "2 other couriers use the code HOLD for it, such as Courier A.",
      it: "Altri 2 corrieri usano per questo il codice HOLD, come Courier A.",
    },
  ]);
});
