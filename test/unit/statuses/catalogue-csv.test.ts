/** A courier's catalogue as CSV (issue 18): what is written is read back, and every fault has its line and column. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { RULES_PER_CODE } from "#core/setup/rules/setup.ts";
import type { CatalogueEntry } from "#core/statuses/rules/map-status.ts";
import { STATUSES } from "#core/statuses/rules/status.ts";
import {
  catalogueCsv,
  catalogueFile,
  readCatalogue,
} from "#panel/server/couriers/catalogue-csv.ts";
import { CSV_COLUMNS } from "#panel/server/http/csv-file.ts";

const DETAILS: ReadonlySet<number> = new Set([3, 4]);
const NONE: ReadonlyMap<string, CatalogueEntry> = new Map();
const HEAD = "code,description,status,statusDetail,terminal,reasonCode,isReturn,deliveredTo";

const read = async (text: string, before = NONE) =>
  readCatalogue(await catalogueFile(text), before, DETAILS);
const entriesOf = async (text: string, before = NONE) => {
  const { entries, errors } = await read(text, before);
  expect(errors).toBeNull();
  return entries ?? [];
};
const faultsOf = async (text: string) =>
  ((await read(text)).errors ?? []).map(({ line, column, code }) => [line, column, code]);

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
  test.each([",", ";"] as const)("is read back as it was, separated by %s", async (separator) => {
    const catalogue = [dlv, open];
    expect(await entriesOf(catalogueCsv(catalogue, separator))).toEqual(catalogue);
  });

  test("is read back whatever is in the texts, apostrophes and formulas included", async () => {
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
    await fc.assert(
      fc.asyncProperty(catalogues, fc.constantFrom(",", ";"), async (catalogue, separator) => {
        expect(await entriesOf(catalogueCsv(catalogue, separator))).toEqual(catalogue);
      }),
    );
  });

  test("is calculated by no spreadsheet", async () => {
    const entries = ["=1+1", "+1", "-1", "@A", "\t=1", "\r=1"].map((code) => ({
      ...open,
      code,
      description: code,
    }));
    const cells = catalogueCsv(entries, ",").split("\r\n").slice(1).join(",").split(",");
    for (const cell of cells) expect(cell).not.toMatch(/^"?[=+\-@\t\r]/);
  });
});

describe("what is read", () => {
  test("may be what Excel writes in Italian: byte order mark taken off, semicolons, CRLF, VERO and FALSO", async () => {
    const text =
      "Code;Status;StatusDetail;Terminal\r\nDLV;delivered;;VERO\r\nTRN; IN_TRANSIT ;0;FALSO\r\n;;;\r\n";
    expect(await entriesOf(text)).toEqual([
      { code: "DLV", description: "", terminal: true, status: "DELIVERED" },
      { code: "TRN", description: "", terminal: false, status: "IN_TRANSIT" },
    ]);
  });

  test("leaves what columns say that it does not have", async () => {
    const before = new Map([["DLV", dlv]]);
    const [entry] = await entriesOf("code,status,statusDetail\nDLV,EXCEPTION,4", before);
    expect(entry).toEqual({ ...dlv, status: "EXCEPTION", statusDetail: 4 });
    const [bare] = await entriesOf(
      "code,status,statusDetail,reasonCode\nDLV,DELIVERED,,\n",
      before,
    );
    expect(bare?.rules).toBeUndefined();
  });

  test("a fault names the line where its record begins, and the column", async () => {
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
    expect(await faultsOf(text)).toEqual([
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

  test("a head without a needed column, with one twice or with another one is no catalogue", async () => {
    expect(await faultsOf("code,status\nA,DELAY")).toEqual([[1, "statusDetail", "REQUIRED"]]);
    expect(await faultsOf("code,status,statusDetail,code,colour\nA,DELAY,,A,red")).toEqual([
      [1, "code", "NOT_ALLOWED"],
      [1, "colour", "UNKNOWN_FIELD"],
    ]);
    expect(await faultsOf("")).toEqual([[1, null, "REQUIRED"]]);
    expect(await faultsOf(`${HEAD}\nA,"open,DELAY,,,,,`)).toEqual([[2, null, "BAD_FORMAT"]]);
  });

  test("a column without head and text is passed over, wherever it stands; with text in it it is refused", async () => {
    const dlv = [{ code: "DLV", description: "", terminal: true, status: "DELIVERED" as const }];
    const excel = "code;status;statusDetail;terminal;\r\nDLV;DELIVERED;;VERO;\r\n;;;;\r\n";
    expect(await entriesOf(excel)).toEqual(dlv);
    expect(await entriesOf(excel.replace("VERO;", "VERO"))).toEqual(dlv);
    expect(await entriesOf(excel.replace("VERO;", "VERO;;; "))).toEqual(dlv);
    expect(await entriesOf("code;;status; ;statusDetail;terminal\nDLV;;DELIVERED; ;;VERO")).toEqual(
      dlv,
    );
    expect(await faultsOf("code;;status;statusDetail\nDLV;;DELIVERED;\nTRN;x;IN_TRANSIT;")).toEqual(
      [[1, null, "UNKNOWN_FIELD"]],
    );
    expect(await faultsOf("code;status;statusDetail;\nDLV;DELIVERED;;\nTRN;DELAY;;x")).toEqual([
      [1, null, "UNKNOWN_FIELD"],
    ]);
    expect(await faultsOf("code;status;statusDetail\nDLV;DELIVERED;;x")).toEqual([
      [2, null, "BAD_FORMAT"],
    ]);
    expect(await faultsOf(";;\n;;")).toEqual(
      ["code", "status", "statusDetail"].map((name) => [1, name, "REQUIRED"]),
    );
  });

  test("a condition twice is refused, and so is one more line than a code may have", async () => {
    const rules = (count: number) =>
      [
        `${HEAD}`,
        "A,,DELAY,,,,,",
        ...Array.from({ length: count }, (_, n) => `A,,DELAY,,,R${n},,`),
      ].join("\n");
    expect(await faultsOf(`${rules(2)}\nA,,DELAY,,,R1,,`)).toEqual([[5, null, "NOT_ALLOWED"]]);
    expect((await entriesOf(rules(RULES_PER_CODE)))[0]?.rules).toHaveLength(RULES_PER_CODE);
    expect(await faultsOf(rules(RULES_PER_CODE + 1))).toEqual([[53, "code", "TOO_MANY"]]);
  });

  test("10,001 lines are read, one more is refused as a whole; 5,000 codes are, one more is refused", async () => {
    const codes = (count: number) => [
      HEAD,
      ...Array.from({ length: count }, (_, n) => `C${n},,DELAY,,,,,`),
    ];
    const blank = (lines: readonly string[], count: number) =>
      `${[...lines, ...Array.from({ length: count - lines.length }, () => "")].join("\n")}\n`;
    expect(await entriesOf(blank(codes(5_000), 10_001))).toHaveLength(5_000);
    expect(await faultsOf(blank(codes(3), 10_002))).toEqual([[10_002, null, "TOO_MANY"]]);
    expect(await faultsOf(codes(5_001).join("\n"))).toEqual([[1, null, "TOO_MANY"]]);
  });

  test("of a hopeless file the first 100 faults are told", async () => {
    const text = [HEAD, ...Array.from({ length: 150 }, (_, n) => `C${n},,NONE,,,,,`)].join("\n");
    expect(await faultsOf(text)).toHaveLength(100);
  });

  test("200 columns are read, one more is refused; empty cells behind the last text are none", async () => {
    const wide = (count: number) => {
      const more = Array.from({ length: count - 8 }, () => "x").join(",");
      return `${HEAD},${more}\nA,,DELAY,,,,,,${more}${",".repeat(300)}`;
    };
    const reasonsOf = async (text: string) =>
      new Set(((await read(text)).errors ?? []).map(({ reason }) => reason));
    expect(await reasonsOf(wide(CSV_COLUMNS))).toEqual(new Set(["UNKNOWN_COLUMN"]));
    expect(await reasonsOf(wide(CSV_COLUMNS + 1))).toEqual(new Set(["TOO_MANY_COLUMNS"]));
    expect(CSV_COLUMNS).toBe(200);
    const spread = `${HEAD}${",".repeat(16_000)}\nA,,DELAY${",".repeat(16_000)}`;
    expect(await entriesOf(spread)).toHaveLength(1);
    const beyond = `${HEAD}${",".repeat(300)}\nA,,DELAY${",".repeat(300)}x`;
    expect(await reasonsOf(beyond)).toEqual(new Set(["CELLS"]));
  });
});
