/** A courier's catalogue as CSV (issue 18): what is written is read back, and every fault has its line and column. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { RULES_PER_CODE } from "#core/domain/setup/setup.ts";
import type { CatalogueEntry } from "#core/domain/statuses/map-status.ts";
import { STATUSES } from "#core/domain/statuses/status.ts";
import { catalogueCsv, readCatalogue } from "#panel/catalogue-csv.ts";

const DETAILS: ReadonlySet<number> = new Set([3, 4]);
const NONE: ReadonlyMap<string, CatalogueEntry> = new Map();
const HEAD = "code,description,status,statusDetail,terminal,reasonCode,isReturn,deliveredTo";

const read = (text: string, before = NONE) => readCatalogue(text, before, DETAILS);
const entriesOf = (text: string, before = NONE) => {
  const { entries, errors } = read(text, before);
  expect(errors).toBeNull();
  return entries ?? [];
};
const faultsOf = (text: string) =>
  (read(text).errors ?? []).map(({ line, column, code }) => [line, column, code]);

const dlv: CatalogueEntry = {
  code: "DLV",
  description: 'Consegnata; "al vicino",\nfirmata',
  terminal: true,
  status: "DELIVERED",
  rules: [
    { reasonCode: "R1", isReturn: false, status: "EXCEPTION", statusDetail: 3, terminal: false },
    { deliveredTo: "PICKUP_POINT", status: "PICKUP_POINT" },
  ],
};
const open: CatalogueEntry = { code: "XYZ", description: "", terminal: false };

describe("what is written", () => {
  test.each([",", ";"] as const)("is read back as it was, separated by %s", (separator) => {
    const catalogue = [dlv, open];
    expect(entriesOf(catalogueCsv(catalogue, separator))).toEqual(catalogue);
  });

  test("is read back whatever is in the texts, apostrophes and formulas included", () => {
    const text = (maxLength: number) =>
      fc.oneof(
        fc.string({ maxLength }),
        fc.string({ maxLength, unit: fc.constantFrom(..."'=+-@\t\r\n\",; a") }),
      );
    const entry = fc.record({
      code: text(10).filter((code) => code.trim() !== ""),
      description: text(20),
      terminal: fc.boolean(),
      status: fc.constantFrom(...STATUSES),
    });
    const catalogues = fc.uniqueArray(entry, { selector: ({ code }) => code, minLength: 1 });
    fc.assert(
      fc.property(catalogues, fc.constantFrom(",", ";"), (catalogue, separator) => {
        expect(entriesOf(catalogueCsv(catalogue, separator))).toEqual(catalogue);
      }),
    );
  });

  test("is calculated by no spreadsheet", () => {
    const entries = ["=1+1", "+1", "-1", "@A", "\t=1", "\r=1"].map((code) => ({
      ...open,
      ...{ code, description: code },
    }));
    const cells = catalogueCsv(entries, ",").split("\r\n").slice(1).join(",").split(",");
    for (const cell of cells) expect(cell).not.toMatch(/^"?[=+\-@\t\r]/);
  });
});

describe("what is read", () => {
  test("may be what Excel writes in Italian: byte order mark taken off, semicolons, CRLF, VERO and FALSO", () => {
    const text =
      "Code;Status;StatusDetail;Terminal\r\nDLV;delivered;;VERO\r\nTRN; IN_TRANSIT ;0;FALSO\r\n;;;\r\n";
    expect(entriesOf(text)).toEqual([
      { code: "DLV", description: "", terminal: true, status: "DELIVERED" },
      { code: "TRN", description: "", terminal: false, status: "IN_TRANSIT" },
    ]);
  });

  test("leaves what columns say that it does not have", () => {
    const before = new Map([["DLV", dlv]]);
    const [entry] = entriesOf("code,status,statusDetail\nDLV,EXCEPTION,4", before);
    expect(entry).toEqual({ ...dlv, status: "EXCEPTION", statusDetail: 4 });
    const [bare] = entriesOf("code,status,statusDetail,reasonCode\nDLV,DELIVERED,,\n", before);
    expect(bare?.rules).toBeUndefined();
  });

  test("a fault names the line where its record begins, and the column", () => {
    const text = [
      HEAD,
      'DLV,"two\nlines",DELIVERED,,true,,,',
      "HLD,,HELD,,,,,",
      "EXC,,EXCEPTION,9,,,,",
      "EXC2,,EXCEPTION,1.5,,,,",
      "ORP,,,4,,,,",
      "DLV,,DELIVERED,,maybe,,,",
      "NEW,,DELAY,,,R1,,",
      `${"L".repeat(65)},,DELAY,,,,,`,
      ",,DELAY,,,,,",
      "DLV,,DELAY,,,,,NOBODY",
      "DLV,,,,,R1,,",
      "short,line",
    ].join("\n");
    expect(faultsOf(text)).toEqual([
      [4, "status", "NOT_ALLOWED"],
      [5, "statusDetail", "NOT_ALLOWED"],
      [6, "statusDetail", "WRONG_TYPE"],
      [7, "statusDetail", "NOT_ALLOWED"],
      [8, "terminal", "NOT_ALLOWED"],
      [8, "code", "NOT_ALLOWED"],
      [9, "code", "NOT_ALLOWED"],
      [10, "code", "TOO_LONG"],
      [11, "code", "TOO_SHORT"],
      [12, "deliveredTo", "NOT_ALLOWED"],
      [13, "status", "REQUIRED"],
      [14, null, "BAD_FORMAT"],
    ]);
  });

  test("a head without a needed column, with one twice or with another one is no catalogue", () => {
    expect(faultsOf("code,status\nA,DELAY")).toEqual([[1, "statusDetail", "REQUIRED"]]);
    expect(faultsOf("code,status,statusDetail,code,colour\nA,DELAY,,A,red")).toEqual([
      [1, "code", "NOT_ALLOWED"],
      [1, "colour", "UNKNOWN_FIELD"],
    ]);
    expect(faultsOf("")).toEqual([[1, null, "REQUIRED"]]);
    expect(faultsOf(`${HEAD}\nA,"open,DELAY,,,,,`)).toEqual([[2, null, "BAD_FORMAT"]]);
  });

  test("a column without head and text is passed over, wherever it stands; with text in it it is refused", () => {
    const dlv = [{ code: "DLV", description: "", terminal: true, status: "DELIVERED" as const }];
    const excel = "code;status;statusDetail;terminal;\r\nDLV;DELIVERED;;VERO;\r\n;;;;\r\n";
    expect(entriesOf(excel)).toEqual(dlv);
    expect(entriesOf(excel.replace("VERO;", "VERO"))).toEqual(dlv);
    expect(entriesOf(excel.replace("VERO;", "VERO;;; "))).toEqual(dlv);
    expect(entriesOf("code;;status; ;statusDetail;terminal\nDLV;;DELIVERED; ;;VERO")).toEqual(dlv);
    expect(faultsOf("code;;status;statusDetail\nDLV;;DELIVERED;\nTRN;x;IN_TRANSIT;")).toEqual([
      [1, null, "UNKNOWN_FIELD"],
    ]);
    expect(faultsOf("code;status;statusDetail;\nDLV;DELIVERED;;\nTRN;DELAY;;x")).toEqual([
      [1, null, "UNKNOWN_FIELD"],
    ]);
    expect(faultsOf("code;status;statusDetail\nDLV;DELIVERED;;x")).toEqual([
      [2, null, "BAD_FORMAT"],
    ]);
    expect(faultsOf(";;\n;;")).toEqual(
      ["code", "status", "statusDetail"].map((name) => [1, name, "REQUIRED"]),
    );
  });

  test("a condition twice is refused, and so is one more line than a code may have", () => {
    const rules = (count: number) =>
      [
        `${HEAD}`,
        "A,,DELAY,,,,,",
        ...Array.from({ length: count }, (_, n) => `A,,DELAY,,,R${n},,`),
      ].join("\n");
    expect(faultsOf(`${rules(2)}\nA,,DELAY,,,R1,,`)).toEqual([[5, null, "NOT_ALLOWED"]]);
    expect(entriesOf(rules(RULES_PER_CODE))[0]?.rules).toHaveLength(RULES_PER_CODE);
    expect(faultsOf(rules(RULES_PER_CODE + 1))).toEqual([[53, "code", "TOO_MANY"]]);
  });

  test("10,001 lines are read, one more is refused as a whole; 5,000 codes are, one more is refused", () => {
    const codes = (count: number) => [
      HEAD,
      ...Array.from({ length: count }, (_, n) => `C${n},,DELAY,,,,,`),
    ];
    const blank = (lines: readonly string[], count: number) =>
      `${[...lines, ...Array.from({ length: count - lines.length }, () => "")].join("\n")}\n`;
    expect(entriesOf(blank(codes(5_000), 10_001))).toHaveLength(5_000);
    expect(faultsOf(blank(codes(3), 10_002))).toEqual([[10_002, null, "TOO_MANY"]]);
    expect(faultsOf(codes(5_001).join("\n"))).toEqual([[1, null, "TOO_MANY"]]);
  });

  test("of a hopeless file the first 100 faults are told", () => {
    const text = [HEAD, ...Array.from({ length: 150 }, (_, n) => `C${n},,NONE,,,,,`)].join("\n");
    expect(faultsOf(text)).toHaveLength(100);
  });
});
