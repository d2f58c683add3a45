/** The first-day comparison of a courier with another tracking (document 2, onboarding; issue 18). */
import { describe, expect, test } from "bun:test";
import { FURTHER_LISTED } from "#panel/server/couriers/compare-first-day.ts";
import { makeAccount } from "#test/support/data/accounts.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { addShipment } from "#test/support/data/shipments.ts";
import { forAll } from "#test/support/for-all.ts";
import { openTestPanel } from "#test/support/product/panel.ts";
import { openTestRuntime } from "#test/support/product/runtime.ts";
import { applyEvents } from "#test/support/product/webhooks.ts";

const HEAD = "trackingNumber;code;occurredAt";

const runtime = forAll(() => openTestRuntime(testSetup()));
const panel = forAll(() => openTestPanel(runtime));

const scan = (trackingNumber: string, code: string, time: string, members: object = {}) => ({
  trackingNumber,
  eventId: `${trackingNumber}-${code}-${time}`,
  status: { code, description: code },
  occurredAt: `2026-11-10T${time}:30+01:00`,
  ...members,
});
const compare = async (lines: readonly string[], courier = "GLS_ITA") => {
  const path = `/panel/api/couriers/${courier}/comparison`;
  const { status, body } = await panel.call("POST", path, [HEAD, ...lines].join("\r\n"));
  expect(status).toBe(200);
  return body;
};
const viewOf = async (courier: string) =>
  (await panel.call("GET", `/panel/api/couriers/${courier}`)).body;

describe("POST /panel/api/couriers/{code}/comparison", () => {
  test("tells of each line whether it was received so, and of each event that no line says", async () => {
    const id = await addShipment(runtime, "FIRST-1");
    await applyEvents(runtime, id, [
      scan("FIRST-1", "TRN", "08:00"),
      scan("FIRST-1", "OUT", "09:00"),
      scan("FIRST-1", "DLV", "10:00"),
      scan("FIRST-1", "HUB", "09:30"),
      scan("FIRST-1", "EARLY", "01:00"),
    ]);
    await addShipment(runtime, "OTHERS-1", { courier: "BRT_ITA" });
    const body = await compare([
      "FIRST-1;TRN;2026-11-10 08:00",
      "FIRST-1;OUT;2026-11-10T09:00:00Z",
      "FIRST-1;POD;2026-11-10T10:00:00+01:00",
      "FIRST-1;RET;2026-11-10 12:00:00",
      "OTHERS-1;TRN;2026-11-10 08:00",
      "NOBODYS-1;TRN;2026-11-10 08:00",
    ]);
    const results = body.lines.map(
      (one: { line: number; result: string; received: { eventId: string } | null }) => [
        one.line,
        one.result,
        one.received?.eventId ?? null,
      ],
    );
    expect(results).toEqual([
      [2, "same", "FIRST-1-TRN-08:00"],
      [3, "otherTime", "FIRST-1-OUT-09:00"],
      [4, "otherCode", "FIRST-1-DLV-10:00"],
      [5, "notReceived", null],
      [6, "unknownNumber", null],
      [7, "unknownNumber", null],
    ]);
    // What was received before the first line and after the last is not of the file's time.
    expect(body.further).toEqual([
      {
        trackingNumber: "FIRST-1",
        eventId: "FIRST-1-HUB-09:30",
        code: "HUB",
        occurredAt: "2026-11-10T08:30:30.000Z",
      },
    ]);
    expect(body.sums).toEqual({
      lines: 6,
      same: 1,
      otherTime: 1,
      otherCode: 1,
      notReceived: 1,
      unknownNumber: 2,
      further: 1,
    });
  });

  test("finds a parcel under the number that it had before, and counts what several merchants follow once", async () => {
    const ids = [
      await addShipment(runtime, "OLD-1"),
      await addShipment(runtime, "OLD-1", { channel: "beta-it" }),
    ];
    const events = [
      scan("OLD-1", "TRN", "08:00", {
        trackingNumberChange: { newTrackingNumber: "LATER-1" },
      }),
      scan("LATER-1", "DLV", "10:00"),
    ];
    for (const id of ids) await applyEvents(runtime, id, events);
    const file = (number: string) => [
      `${number};TRN;2026-11-10 08:00`,
      `${number};DLV;2026-11-10 10:00`,
    ];
    for (const number of ["OLD-1", "LATER-1"]) {
      expect((await compare(file(number))).sums).toMatchObject({ same: 2, further: 0 });
    }
  });

  test("compares a number however the file and the courier type it", async () => {
    const id = await addShipment(runtime, "typed-1");
    await applyEvents(runtime, id, [
      scan("TYPED-1", "TRN", "08:00"),
      scan("typed 1", "DLV", "10:00"),
    ]);
    const body = await compare([
      "Typed-1 ;TRN;2026-11-10 08:00",
      "TYPED -1;DLV;2026-11-10 12:00",
      "ty\u200bped-1;TRN;2026-11-10 08:00",
    ]);
    expect(body.sums).toMatchObject({ lines: 3, unknownNumber: 0, same: 1 });
  });

  test("is noted for the onboarding and in the audit log, unless somebody compares who only reads", async () => {
    expect(await viewOf("BRT_ITA")).toMatchObject({ comparison: null });
    const member = (role: "owner" | "read-only") =>
      makeAccount(runtime, "courier", role, { courierCode: "BRT_ITA" });
    const ask = async (cookie: string, courier: string) => {
      const request = new Request(`http://localhost/panel/api/couriers/${courier}/comparison`, {
        method: "POST",
        headers: { cookie, "content-type": "text/csv", "sec-fetch-site": "same-origin" },
        body: `${HEAD}\nNOBODYS-1;TRN;2026-11-10 08:00\n`,
      });
      return (await panel.handle(request)).status;
    };
    const reader = (await member("read-only")).cookie;
    expect(await ask(reader, "BRT_ITA")).toBe(200);
    expect(await viewOf("BRT_ITA")).toMatchObject({ comparison: null });
    expect(await ask(reader, "GLS_ITA")).toBe(404);
    expect(await ask((await member("owner")).cookie, "BRT_ITA")).toBe(200);
    const at = expect.stringMatching(/^\d{4}-.*Z$/);
    expect(await viewOf("BRT_ITA")).toMatchObject({
      comparison: { at, lines: 1, same: 0 },
      catalogueCodes: expect.any(Number),
    });
    const { items } = (await panel.call("GET", "/panel/api/audit")).body;
    const noted = items.filter(({ action }: { action: string }) => action.includes("comparison"));
    expect(noted.map(({ actor }: { actor: string }) => actor)).toContain("owner@brt_ita.test");
    expect(noted.map(({ actor }: { actor: string }) => actor)).not.toContain(
      "read-only@brt_ita.test",
    );
  });

  test("compares nothing while the file has errors, each named by line and column", async () => {
    const body = await compare([
      "TN;TRN;yesterday",
      ";TRN;2026-11-10 08:00",
      `${"9".repeat(65)};TRN;2026-11-10 08:00`,
      `${"9".repeat(64)};TRN;2026-11-10 08:00`,
      "TN;TRN",
    ]);
    const found = body.errors.map(
      (one: { line: number; column: string | null; code: string; reason: string | null }) => [
        one.line,
        one.column,
        one.code,
        one.reason,
      ],
    );
    expect(found).toEqual([
      [2, "occurredAt", "BAD_FORMAT", "NO_INSTANT"],
      [3, "trackingNumber", "REQUIRED", null],
      [4, "trackingNumber", "TOO_LONG", null],
      [6, null, "BAD_FORMAT", "CELLS"],
    ]);
    expect(body).toMatchObject({ sums: null, lines: [], further: [] });
    expect((await compare([])).errors).toMatchObject([{ reason: "EMPTY_FILE" }]);
  });

  test("takes 5,000 lines, and not one more", async () => {
    const lines = Array.from({ length: 5_000 }, (_, at) => `NO-${at};TRN;2026-11-10 08:00`);
    expect((await compare(lines)).sums).toMatchObject({ lines: 5_000, unknownNumber: 5_000 });
    const { errors } = await compare([...lines, "NO;TRN;2026-11-10 08:00"]);
    expect(errors).toMatchObject([{ line: 5_002, reason: "TOO_MANY_LINES" }]);
  });

  test("lists a thousand further events, and counts them all", async () => {
    for (const [number, count] of [
      ["MANY-1", FURTHER_LISTED / 2],
      ["MANY-2", FURTHER_LISTED / 2 + 1],
    ] as const) {
      const id = await addShipment(runtime, number);
      const events = Array.from({ length: count }, (_, at) => ({
        ...scan(number, `C${at}`, "08:00"),
      }));
      await applyEvents(runtime, id, events);
    }
    const body = await compare(["MANY-1;X;2026-11-10 07:00", "MANY-2;X;2026-11-10 09:00"]);
    expect(body.sums.further).toBe(FURTHER_LISTED + 1);
    expect(body.further).toHaveLength(FURTHER_LISTED);
  });
});
