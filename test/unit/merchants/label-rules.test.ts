/** Document 1, "Labels" and "stock-release": the bounds of their bodies, each at its limit and one past it, and the rules about them. */
import { describe, expect, test } from "bun:test";
import type { TSchema } from "@sinclair/typebox";
import {
  ConfirmRequest,
  confirmFaults,
  type LabelRecord,
  LabelRequest,
  labelDigest,
  labelFaults,
  parcelsOf,
  totalWeight,
} from "#core/merchants/rules/label.ts";
import { contractOf, isNational, labelCarriers } from "#core/merchants/rules/label-carrier.ts";
import { slipRow, transmissionNumberOf } from "#core/merchants/rules/slip.ts";
import {
  redeliveryDateOf,
  releaseDigest,
  StockReleaseBody,
  stockReleaseFaults,
} from "#core/merchants/rules/stock-release.ts";
import { compileSchema } from "#core/platform/schema/compile-schema.ts";

const CONSIGNEE = {
  name: "Ada",
  street: "Via Po 1",
  city: "Torino",
  state: "TO",
  postcode: "10123",
  country: "IT",
};
const LABEL: LabelRequest = {
  courier: "GENERIC",
  reference: "1001",
  source: "shopify",
  consignee: CONSIGNEE,
};
const ROW = { sku: "s", name: "n", qty: 1 };
const ADDRESS = { name: "Ada", street: "Via Po 1", city: "Torino", zip: "10123", province: "TO" };
const RELEASE: StockReleaseBody = { action: "redeliver_new_address", address: ADDRESS };

const long = (length: number) => "x".repeat(length);
const many = (count: number, one: unknown) => Array.from({ length: count }, () => one);

/** Paths of what a schema refuses, each once. */
function refuser(schema: TSchema, valid: object): (members: object) => string[] {
  const checker = compileSchema(schema);
  return (members) => {
    const errors = checker.errors({ ...valid, ...members });
    return [...new Set([...errors].map(({ path }) => path.slice(1)))];
  };
}
const inLabel = refuser(LabelRequest, LABEL);
const inConfirmation = refuser(ConfirmRequest, { courier: "GENERIC", labelIds: [1] });
const inRelease = refuser(StockReleaseBody, RELEASE);

const consignee = (members: object) => ({ consignee: { ...CONSIGNEE, ...members } });
const address = (members: object) => ({ address: { ...ADDRESS, ...members } });
const row = (members: object) => ({ rows: [{ ...ROW, ...members }] });

/** Members by the path of a bounded value: the greatest one that is accepted, and one more. */
const BOUNDS: ReadonlyArray<
  readonly [
    path: string,
    limit: number,
    refused: (members: object) => string[],
    members: (size: number) => object,
  ]
> = [
  ["courier", 50, inLabel, (size) => ({ courier: long(size) })],
  ["reference", 50, inLabel, (size) => ({ reference: long(size) })],
  ["source", 50, inLabel, (size) => ({ source: long(size) })],
  ["courierService", 50, inLabel, (size) => ({ courierService: long(size) })],
  ["content", 100, inLabel, (size) => ({ content: long(size) })],
  ["parcels", 99, inLabel, (count) => ({ parcels: many(count, {}) })],
  ["rows", 500, inLabel, (count) => ({ rows: many(count, ROW) })],
  ["rows/0/sku", 255, inLabel, (size) => row({ sku: long(size) })],
  ["consignee/name", 255, inLabel, (size) => consignee({ name: long(size) })],
  ["consignee/state", 255, inLabel, (size) => consignee({ state: long(size) })],
  ["consignee/email", 255, inLabel, (size) => consignee({ email: `${long(size - 10)}@acme.test` })],
  ["courier", 50, inConfirmation, (size) => ({ courier: long(size) })],
  ["labelIds", 1_000, inConfirmation, (count) => ({ labelIds: many(count, 1) })],
  ["labelIds/0", 999_999_999_999, inConfirmation, (id) => ({ labelIds: [id] })],
  ["notes", 2_000, inRelease, (size) => ({ notes: long(size) })],
  ["address/name", 255, inRelease, (size) => address({ name: long(size) })],
  ["address/zip", 16, inRelease, (size) => address({ zip: long(size) })],
  ["address/phone", 255, inRelease, (size) => address({ phone: long(size) })],
];

test.each(BOUNDS)("%s may be %d, and not one more", (path, limit, refused, members) => {
  expect(refused(members(limit))).toEqual([]);
  expect(refused(members(limit + 1))).toEqual([path]);
});

test("amounts and quantities may be 0, and not below; a confirmation names a label at least, from 1 on", () => {
  expect(inLabel({ ...row({ qty: 0, price: 0 }), monetary: { amount: 0 } })).toEqual([]);
  expect(inLabel(row({ qty: -1 }))).toEqual(["rows/0/qty"]);
  expect(inLabel({ monetary: { amount: -0.01 } })).toEqual(["monetary/amount"]);
  expect(inConfirmation({ labelIds: [1] })).toEqual([]);
  expect(inConfirmation({ labelIds: [0] })).toEqual(["labelIds/0"]);
  expect(inConfirmation({ labelIds: [] })).toEqual(["labelIds"]);
});

const toldOf = (faults: ReadonlyArray<{ readonly path: string; readonly code: string }>) =>
  faults.map(({ path, code }) => `${path} ${code}`);

describe("a label", () => {
  const rules = { needsWeight: true, boxes: new Map([["S", {}]]), platforms: new Set(["shopify"]) };
  const faulty = (members: Partial<LabelRequest>) =>
    toldOf(labelFaults({ ...LABEL, weight: 1, ...members }, rules));

  test("is of a registered platform, and its boxes are the company's", () => {
    expect(faulty({ parcels: [{ boxCode: "S" }, {}] })).toEqual([]);
    expect(faulty({ source: "ebay", parcels: [{}, { boxCode: "X" }] })).toEqual([
      ...["source NOT_ALLOWED", "parcels[1].boxCode NOT_ALLOWED"],
    ]);
  });

  test("has a province of 2 letters in Italy, and any abroad", () => {
    const to = (state: string, country: string) => faulty(consignee({ state, country }));
    expect([to("to", "IT"), to("County Cork", "IE")]).toEqual([[], []]);
    for (const state of ["T", "TOR", "T1", ""]) {
      expect(to(state, "IT")).toEqual(["consignee.state BAD_FORMAT"]);
    }
  });

  test("names the amount to collect, which may be 0", () => {
    expect(faulty({ monetary: { isCod: true } })).toEqual(["monetary.amount REQUIRED"]);
    expect(faulty({ monetary: { isCod: true, amount: 0 } })).toEqual([]);
    expect(faulty({ monetary: { isCod: false } })).toEqual([]);
  });

  test("needs parcels or a weight where its carrier does", () => {
    const bare = { ...LABEL, parcels: [] };
    expect(toldOf(labelFaults(bare, rules))).toEqual(["weight REQUIRED"]);
    expect(labelFaults({ ...LABEL, parcels: [{}] }, rules)).toEqual([]);
    expect(labelFaults({ ...LABEL, weight: 1 }, rules)).toEqual([]);
    expect(labelFaults(bare, { ...rules, needsWeight: false })).toEqual([]);
  });

  test("is one parcel of the whole weight where none is given", () => {
    expect(parcelsOf(LABEL)).toEqual([{}]);
    expect(parcelsOf({ ...LABEL, parcels: [], weight: 2 })).toEqual([{ weight: 2 }]);
    expect(parcelsOf({ ...LABEL, parcels: [{}, { weight: 1 }], weight: 2 })).toEqual([
      ...[{}, { weight: 1 }],
    ]);
  });

  test("weighs what is given for the whole, else its parcels together, to the gram", () => {
    const weight = (members: Partial<LabelRequest>) => totalWeight({ ...LABEL, ...members });
    expect(weight({ weight: 5, parcels: [{ weight: 1 }, {}] })).toBe(5);
    expect(weight({ parcels: [{ weight: 0.617 }, {}, { weight: 0.617 }] })).toBe(1.234);
    expect(weight({ parcels: [{ weight: 0.1 }, { weight: 0.2 }] })).toBe(0.3);
    expect([weight({}), weight({ parcels: [{}, {}] })]).toEqual([null, null]);
  });

  // Stores hold labels under these digests.
  test("is found again by its carrier and its reference, which no others share", () => {
    expect(labelDigest("GENERIC", "1001")).toBe("wPmQ7IR9r3WqE7CVDz41Z9");
    expect(labelDigest("GENERIC:", "1001")).not.toBe(labelDigest("GENERIC", ":1001"));
  });
});

describe("a confirmation", () => {
  const confirmation = { courier: "GENERIC", labelIds: [1] };
  const faulty = (members: object) => toldOf(confirmFaults({ ...confirmation, ...members }));

  test("names labels, not a day, and a time of pickup only with its day", () => {
    const pickupTime = "14:30";
    expect(faulty({})).toEqual([]);
    expect(faulty({ pickupDate: "2026-12-01" })).toEqual([]);
    expect(faulty({ pickupDate: "2026-12-01", pickupTime })).toEqual([]);
    expect(faulty({ pickupTime })).toEqual(["pickupDate REQUIRED"]);
    expect(faulty({ labelCreationDate: "2026-12-01" })).toEqual(["labelCreationDate NOT_ALLOWED"]);
  });

  test("has a number of nine digits, or more where they do not suffice", () => {
    expect([17, 999_999_999, 1_000_000_000].map(transmissionNumberOf)).toEqual([
      ...["T000000017", "T999999999", "T1000000000"],
    ]);
  });

  test("lists of each label its main number, its recipient, its parcels and its weight", () => {
    const numbers = ["A", "B"].map((number) => ({ number, description: "" }));
    const record: LabelRecord = {
      channelId: 1,
      courier: "GENERIC",
      reference: "1001",
      labelFormat: "PDF",
      trackingNumbers: numbers,
      extShipmentId: null,
      parcels: 2,
      weight: null,
      consignee: CONSIGNEE,
      createdAtMs: 0,
    };
    expect(slipRow(record)).toEqual({
      trackingNumber: "A",
      reference: "1001",
      name: "Ada",
      locality: "10123 Torino IT",
      parcels: 2,
      weight: null,
    });
    expect(slipRow({ ...record, trackingNumbers: [] }).trackingNumber).toBe("");
  });
});

test("the national carrier's labels are asked for by its code or by a contract that has a name", () => {
  const makesLabels = labelCarriers("POSTE");
  const codes = ["GENERIC", "POSTE_ITA", "POSTE-ITA-X", "POSTE-ITA-CRONO"];
  expect(codes.filter(makesLabels)).toEqual(codes);
  const others = ["POSTE-ITA-", "POSTE-ITA", "POSTE_ITA-CRONO", "GLS_ITA", "MY-POSTE-ITA-CRONO"];
  expect(others.filter(makesLabels)).toEqual([]);
  expect(isNational("GENERIC", "POSTE")).toBe(false);
  expect(codes.map((code) => contractOf(code, "POSTE"))).toEqual([null, null, "X", "CRONO"]);
});

describe("a stock release", () => {
  const TODAY = "2026-11-20";
  const faulty = (body: StockReleaseBody) => toldOf(stockReleaseFaults(body, TODAY));

  test("takes an address if and only if it goes to a new one", () => {
    expect(faulty(RELEASE)).toEqual([]);
    expect(faulty({ action: "redeliver_new_address" })).toEqual(["address REQUIRED"]);
    for (const action of ["redeliver", "return_to_sender"] as const) {
      expect(faulty({ action })).toEqual([]);
      expect(faulty({ action, address: ADDRESS })).toEqual(["address NOT_ALLOWED"]);
    }
  });

  test("takes a date from today on, and none where the parcel goes back", () => {
    const on = (redeliveryDate: string) => faulty({ ...RELEASE, redeliveryDate });
    expect([on("2026-11-19"), on(TODAY), on("2026-11-21")]).toEqual([
      ...[["redeliveryDate OUT_OF_RANGE"], [], []],
    ]);
    for (const redeliveryDate of ["2026-11-19", TODAY]) {
      const back = { action: "return_to_sender", redeliveryDate } as const;
      expect(faulty(back)).toEqual(["redeliveryDate NOT_ALLOWED"]);
    }
  });

  test("has the date that was asked for, or the next Italian working day where the carrier requires one", () => {
    const dates = (members: object) =>
      (["required", "optional", "ignored"] as const).map((support) =>
        redeliveryDateOf({ action: "redeliver", ...members }, support, TODAY),
      );
    // Friday, and the Monday after it.
    expect(dates({})).toEqual(["2026-11-23", null, null]);
    expect(dates({ redeliveryDate: "2026-11-27" })).toEqual(["2026-11-27", "2026-11-27", null]);
    expect(dates({ action: "return_to_sender" })).toEqual([null, null, null]);
  });

  test("is the same only if every member and the fact that put the parcel on hold are", () => {
    const members = { notes: "n", redeliveryDate: TODAY, address: { ...ADDRESS, phone: "1" } };
    const release = { ...RELEASE, ...members };
    const changed = [
      ...Object.keys(members.address).map((name) => ({
        ...release,
        address: { ...members.address, [name]: "2" },
      })),
      ...[
        { ...release, notes: "m" },
        { ...release, redeliveryDate: "2026-11-21" },
      ],
      { ...release, action: "redeliver" as const },
    ];
    const digests = changed.map((body) => releaseDigest(body, "fact"));
    const all = [releaseDigest(release, "fact"), releaseDigest(release, "other"), ...digests];
    expect(new Set(all).size).toBe(changed.length + 2);
    expect(releaseDigest({ ...release }, "fact")).toBe(all[0] ?? "");
  });
});
