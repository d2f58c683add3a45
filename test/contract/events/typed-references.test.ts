/** Design, "References as people type them": one rule for events, creations, imports, labels, orders and the panel. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { startApi } from "#api/main.ts";
import type { CourierEvent } from "#core/events/rules/event.ts";
import {
  candidateOf,
  registerReferences,
  resolveReferences,
} from "#core/events/store/references.ts";
import {
  companyKeys,
  companyPartition,
  type Reference,
  trackingReference,
} from "#core/platform/redis/keys.ts";
import type { Running } from "#core/runtime/runtime.ts";
import { readHotShipments } from "#core/shipments/store/shipments.ts";
import { event, push } from "#test/support/clients/courier.ts";
import { request } from "#test/support/clients/merchant.ts";
import { openTestPanel, type TestPanel } from "#test/support/product/panel.ts";
import { openTracking, type Tracking } from "#test/support/product/tracking.ts";

let tracking: Tracking;
let panel: TestPanel;
let api: Running;
let token: string;
let { add, send, eventsOf } = {} as Tracking;
let count = 0;

beforeAll(async () => {
  tracking = await openTracking();
  ({ add, send, eventsOf } = tracking);
  panel = await openTestPanel(tracking.runtime);
  api = await startApi(tracking.runtime);
  const answer = await request("POST", `${api.url}/v2/auth/token`, { apiKey: "key_acme_main" });
  ({ token } = answer.body);
});
afterAll(async () => {
  await api.stop();
  await panel.end();
  await tracking.end();
});

/** A number in its matching form, and ways to type it. */
function newNumber() {
  count += 1;
  const number = `RR${100_000 + count}IT`;
  const [head, middle, tail] = [number.slice(0, 2), number.slice(2, 6), number.slice(6)];
  return {
    number,
    small: number.toLowerCase(),
    typed: [
      number.toLowerCase(),
      `${number}   `,
      `\u00a0${number}`,
      `\ufeff${number}\r\n`,
      `${head} ${middle}\t${tail}`,
      `\u202a${head}\u200b${middle}\u00ad${tail}\u202c`,
      `${number}\u0085`,
    ],
  };
}

const call = (method: string, path: string, body?: unknown) =>
  request(method, `${api.url}${path}`, body, { authorization: `Bearer ${token}` });
const item = (trackingNumber: string, members: object = {}) => ({
  trackingNumber,
  courier: "GLS_ITA",
  shipDate: "2026-11-09",
  ...members,
});
const create = async (...shipments: object[]) => {
  const { status, body } = await call("POST", "/v2/shipments", { shipments });
  return { status, body };
};
const found = async (query: string) => {
  const { body } = await call("GET", `/v2/shipments?${query}`);
  return body.items.map(({ id }: { id: number }) => id);
};
const foundBy = (number: string) => found(`trackingNumber=${encodeURIComponent(number)}`);
const accepted = (many: number) => Array(many).fill("ACCEPTED");

describe("an event", () => {
  test("reaches the shipment however its tracking number is typed", async () => {
    const { number, typed } = newNumber();
    const id = await add(number);
    const events = typed.map((trackingNumber) => event({ trackingNumber }));
    expect(await send(...events)).toEqual(accepted(events.length));
    const [own = []] = await eventsOf(id);
    expect(own.toSorted()).toEqual(events.map(({ eventId }) => eventId).sort());
  });

  test("reaches the shipment however the merchant typed it, by the number of a parcel and by an announced one too", async () => {
    const [main, parcel, next] = [newNumber(), newNumber(), newNumber()];
    const id = await add(` ${main.small}\u200b`, "acme-it", { parcelNumbers: [parcel.small] });
    const change = { newTrackingNumber: ` ${next.small} ` };
    const events = [
      event({ trackingNumber: main.number }),
      event({ trackingNumber: parcel.number }),
      event({ trackingNumber: main.number, trackingNumberChange: change }),
      event({ trackingNumber: next.number }),
    ];
    expect(await send(...events)).toEqual(accepted(4));
    expect((await eventsOf(id))[0]).toHaveLength(4);
    expect(await send(event({ trackingNumber: next.typed[4] ?? "" }))).toEqual(["ACCEPTED"]);
  });

  test("that was parked under a typed number is applied with the first event of the shipment", async () => {
    const { number, typed } = newNumber();
    const aside = typed.map((trackingNumber) => event({ trackingNumber }));
    expect(await send(...aside)).toEqual(aside.map(() => "UNKNOWN_TRACKING"));
    const id = await add(number);
    const first = event({ trackingNumber: number });
    expect(await send(first)).toEqual(["ACCEPTED"]);
    expect((await eventsOf(id))[0]).toHaveLength(aside.length + 1);
  });

  test("is matched by externalId and senderAccount without what stands around them, with their case and inner spaces", async () => {
    const { number } = newNumber();
    const id = await add(number, "acme-it", { orderReference: ` Order ${number} b ` });
    const byOrder = (externalId: string, senderAccount = "ACC-1") => {
      const { trackingNumber: _, ...rest } = event({ externalId, senderAccount });
      return rest;
    };
    const own = [
      byOrder(`Order ${number} b`),
      byOrder(`\u00a0Order ${number} b\r\n`, "\ufeffACC-1 "),
      event({ trackingNumber: number, externalId: `Order ${number} b\u200b` }),
    ];
    expect(await send(...own)).toEqual(accepted(3));
    const others = [byOrder(`Order ${number} B`), byOrder(`Order${number}b`)];
    expect(await send(...others)).toEqual(["UNKNOWN_TRACKING", "UNKNOWN_TRACKING"]);
    expect((await eventsOf(id))[0]).toHaveLength(3);
  });

  test.each([
    "trackingNumber",
    "externalId",
    "senderAccount",
    "parcel.trackingNumber",
    "trackingNumberChange.newTrackingNumber",
  ])(
    "is INVALID alone (BAD_FORMAT) where %s has a control character, or nothing visible",
    async (path) => {
      const [outer = "", inner] = path.split(".");
      const bad = ["A\u0000B", "\u001bA", "A\u007f", "A\u009f", " ", "\u200b\u2060", "\r\n\u00ad"];
      const events = bad.map((text) =>
        event({ [outer]: inner ? { [inner]: text } : text } as Partial<CourierEvent>),
      );
      const good = event({ trackingNumber: newNumber().number });
      const { status, body } = await push(tracking.url, [...events, good]);
      expect(status).toBe(200);
      const errors = body.results.map((one: { outcome: string; errors?: object[] }) => [
        one.outcome,
        ...(one.errors ?? []),
      ]);
      expect(errors).toEqual([
        ...bad.map(() => ["INVALID", { path, code: "BAD_FORMAT", message: expect.any(String) }]),
        ["UNKNOWN_TRACKING"],
      ]);
    },
  );
});

describe("document 1, POST /v2/shipments", () => {
  test("DUPLICATE_SHIPMENT ignores the case of ASCII letters, blanks and format characters, within a batch too", async () => {
    const { small, typed } = newNumber();
    const first = await create(...[small, ...typed].map((one) => item(one)));
    expect(first.status).toBe(207);
    const [{ id, trackingNumber }, ...others] = first.body.items;
    expect(trackingNumber).toBe(small);
    for (const one of others) {
      expect(one).toMatchObject({
        status: "error",
        errors: [{ code: "DUPLICATE_SHIPMENT", field: "trackingNumber" }],
      });
    }
    const again = await create(item(typed[1] ?? ""));
    expect(again.body.items[0].errors[0].code).toBe("DUPLICATE_SHIPMENT");
    expect((await create(item(typed[1] ?? "", { courier: "BRT_ITA" }))).status).toBe(201);
    expect((await call("GET", `/v2/shipments/${id}`)).body.trackingNumber).toBe(small);
  });

  test("what was given is shown, and the search stays exact: it finds the number as it was given alone", async () => {
    const [one, other] = [newNumber(), newNumber()];
    const padded = `${other.small} `;
    const { body } = await create(item(one.small), item(padded));
    const [first, second] = body.items.map(({ id }: { id: number }) => id);
    expect([await foundBy(one.small), await foundBy(padded)]).toEqual([[first], [second]]);
    expect([await foundBy(one.number), await foundBy(other.small)]).toEqual([[], []]);
    expect(await foundBy(other.number)).toEqual([]);
  });

  test("422 BAD_FORMAT for a reference with a control character or nothing visible, TOO_LONG past its length", async () => {
    const parcel = (trackingNumber: string) => ({
      trackingNumber,
      weight: 1,
      length: 1,
      width: 1,
      height: 1,
    });
    const { number } = newNumber();
    const bad = (trackingNumber: string, members: object = {}) =>
      create(item(trackingNumber, members)).then(({ status, body }) => [
        status,
        body.violations?.map(({ path, code }: { path: string; code: string }) => [path, code]),
      ]);
    const fault = (path: string, code: string) => [422, [[`shipments[0].${path}`, code]]];
    for (const text of ["A\u0001", "\u200b\u200e\u202a", "\u2060", "\u00ad", "\u0085", " "]) {
      expect(await bad(text)).toEqual(fault("trackingNumber", "BAD_FORMAT"));
      const parcels = [parcel(text)];
      expect(await bad(number, { parcels })).toEqual(
        fault("parcels[0].trackingNumber", "BAD_FORMAT"),
      );
      expect(await bad(number, { orderReference: text })).toEqual(
        fault("orderReference", "BAD_FORMAT"),
      );
    }
    expect(await bad("A".repeat(51))).toEqual(fault("trackingNumber", "TOO_LONG"));
    expect(await bad(number, { parcels: [parcel("A".repeat(65))] })).toEqual(
      fault("parcels[0].trackingNumber", "TOO_LONG"),
    );
    const longest = { parcels: [parcel("A".repeat(64))] };
    expect((await create(item(number.padEnd(50, "0"), longest))).status).toBe(201);
  });
});

describe("the panel", () => {
  test("finds a shipment by its number however it is typed, and by the number of a parcel", async () => {
    const [main, parcel] = [newNumber(), newNumber()];
    const id = await add(main.small, "acme-it", { parcelNumbers: [parcel.number] });
    for (const text of [main.small, main.number, ...main.typed, ...parcel.typed]) {
      const { body } = await panel.call(
        "GET",
        `/panel/api/shipments?q=${encodeURIComponent(text)}`,
      );
      const ids = body.items.map((one: { id: number }) => one.id);
      expect([text, body.matched, ids]).toEqual([text, "trackingNumber", [id]]);
    }
  });
});

describe("a store in which 0.1.0 wrote numbers as they were given", () => {
  const asGiven = (number: string): Reference => {
    const { asGiven: older } = trackingReference("GLS_ITA", number);
    if (!older) throw new Error("has no other form");
    return older;
  };
  /** As 0.1.0 left it. */
  async function addOlder(number: string): Promise<number> {
    const { redis } = tracking.runtime;
    const id = await add(number, "acme-it", { isRegistered: false });
    const meta = (await readHotShipments(redis, [id])).get(id)?.meta;
    if (!meta) throw new Error("not created");
    await registerReferences(redis, [{ ...candidateOf(id, meta), reference: asGiven(number) }]);
    const keys = companyKeys(companyPartition(meta.companyId));
    await redis.rename(
      keys.numbers(meta.channelId, number),
      keys.numbersAsGiven(meta.channelId, number),
    );
    return id;
  }

  test("an event with the number as it was given finds its shipment, and so does the search", async () => {
    const { small } = newNumber();
    const id = await addOlder(small);
    expect(await send(event({ trackingNumber: small }))).toEqual(["ACCEPTED"]);
    expect((await eventsOf(id))[0]).toHaveLength(1);
    expect(await foundBy(small)).toEqual([id]);
  });

  test("a second creation with it is DUPLICATE_SHIPMENT", async () => {
    const { small } = newNumber();
    const id = await addOlder(small);
    const { body } = await create(item(small));
    expect(body.items[0].errors).toMatchObject([{ code: "DUPLICATE_SHIPMENT" }]);
    expect(await foundBy(small)).toEqual([id]);
  });

  test("an event goes once to a shipment that is registered under both forms", async () => {
    const { small, number } = newNumber();
    const id = await addOlder(small);
    const meta = (await readHotShipments(tracking.runtime.redis, [id])).get(id)?.meta;
    if (!meta) throw new Error("not created");
    const reference = trackingReference("GLS_ITA", small);
    await registerReferences(tracking.runtime.redis, [{ ...candidateOf(id, meta), reference }]);
    const candidates = await resolveReferences(tracking.runtime.redis, [reference]);
    expect(candidates.get(reference.key)?.map(({ shipmentId }) => shipmentId)).toEqual([id]);
    expect(await send(event({ trackingNumber: number }), event({ trackingNumber: small }))).toEqual(
      accepted(2),
    );
    expect((await eventsOf(id))[0]).toHaveLength(2);
  });

  test("what it parked under a number as it was given is applied when the shipment comes", async () => {
    const { small } = newNumber();
    const { redis } = tracking.runtime;
    const aside = event({ trackingNumber: small });
    expect(await send(aside)).toEqual(["UNKNOWN_TRACKING"]);
    const { parkedKey } = trackingReference("GLS_ITA", small);
    await redis.rename(parkedKey, asGiven(small).parkedKey);
    const id = await add(small);
    expect(await send(event({ trackingNumber: small }))).toEqual(["ACCEPTED"]);
    expect((await eventsOf(id))[0]).toHaveLength(2);
    expect(await redis.exists(asGiven(small).parkedKey)).toBe(0);
  });
});
