/** Document 1, `POST /v2/shipments/{id}/stock-release`. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { releaseCarrier } from "#api/shipments/release-carrier.ts";
import { claimRelease, readReleases } from "#core/merchants/store/stock-releases.ts";
import type { Consumer } from "#core/platform/log/consumer.ts";
import { startConsumer } from "#core/platform/log/consumer.ts";
import { romeDate } from "#core/platform/time/rome-time.ts";
import type { Running } from "#core/runtime/runtime.ts";
import { type Depot, startDepot } from "#demo/depot.ts";
import { startIngest } from "#ingest/main.ts";
import { trackHandler } from "#processors/track/track.ts";
import { push } from "#test/support/clients/courier.ts";
import { applyEvents } from "#test/support/data/facts.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { eventually } from "#test/support/eventually.ts";
import { item, openTestApi, type TestApi } from "#test/support/product/api.ts";

let api: TestApi;
let token: string;
let depot: Depot;
let ingest: Running;
let track: Consumer;
let counter = 0;

/** A day that is still to come. */
const NEXT_MONTH = romeDate(Date.now() + 30 * 86_400_000);

const ADDRESS = { name: "Ada", street: "Via Po 1", city: "Torino", zip: "10123", province: "TO" };

beforeAll(async () => {
  depot = startDepot({
    now: Date.now,
    wordsOf: () => ({ code: "OUT", description: "Svincolata: in consegna" }),
    // The others hold their parcels for as long as a test asks about them.
    tell: async (courier, event) => {
      if (courier !== "LATER") return;
      await push(ingest.url ?? "", [event], { courier, token: `tok_${courier}` });
    },
  });
  const setup = testSetup();
  const catalogue = setup.couriers?.[0]?.catalogue ?? [];
  const courier = (code: string, members: object) =>
    setup.couriers?.push({ code, tokens: [`tok_${code}`], catalogue, ...members });
  const base = depot.url("sync").replace(/\/stock-release.*/, "");
  const sync = { stockRelease: "sync", stockReleaseUrl: depot.url("sync") };
  courier("SYNC", sync);
  courier("DATED", { ...sync, stockReleaseDate: "required" });
  courier("OLD_DATED", { ...sync, stockReleaseNeedsDate: true });
  courier("UNDATED", { ...sync, stockReleaseDate: "ignored" });
  courier("LATER", { stockRelease: "deferred", stockReleaseUrl: depot.url("deferred") });
  courier("AWAY", { stockRelease: "sync", stockReleaseUrl: "http://127.0.0.1:1/none" });
  courier("LOST", { stockRelease: "sync", stockReleaseUrl: `${base}/elsewhere` });
  courier("NONE", { stockRelease: "none" });
  courier("POSTE_ITA", { stockRelease: "sync" });
  const codes = [
    "SYNC",
    "DATED",
    "OLD_DATED",
    "UNDATED",
    "LATER",
    "AWAY",
    "LOST",
    "NONE",
    "POSTE_ITA",
  ];
  setup.companies?.[0]?.channels?.[0]?.couriers?.push(...codes.map((code) => ({ code })));
  api = await openTestApi(setup);
  token = await api.token("key_acme_main");
  ingest = await startIngest(api.runtime);
  const { redis, live, log, config } = api.runtime;
  track = startConsumer({
    redis,
    log,
    source: "event",
    group: "track",
    batch: 100,
    handler: trackHandler({ redis, live, eventsPerDay: config.eventsPerDay }),
  });
});

afterAll(async () => {
  await track.stop();
  await ingest.stop();
  await depot.stop();
  await api.end();
});

/** A shipment of a courier, held in its depot. */
async function held(courier = "SYNC"): Promise<number> {
  counter += 1;
  const body = { shipments: [item(`HELD-${counter}`, { courier })] };
  const answer = await api.call("POST", "/v2/shipments", { token, body });
  const { id } = answer.body.items[0];
  await applyEvents(api.runtime, [{ shipmentId: id, code: "HLD" }]);
  return id;
}

function release(id: number | string, body: object, as = token) {
  return api.call("POST", `/v2/shipments/${id}/stock-release`, { token: as, body });
}

const asked = () => depot.releases.at(-1);

describe("200", () => {
  test("a sync carrier: status sent, courierOutcome ok, message and releaseId", async () => {
    const id = await held();
    const { status, body } = await release(id, { action: "redeliver", notes: "ring twice" });
    expect(status).toBe(200);
    expect(body).toEqual({
      status: "sent",
      courierOutcome: "ok",
      message: null,
      releaseId: expect.any(Number),
    });
    expect(asked()).toEqual({
      releaseId: body.releaseId,
      courier: "SYNC",
      trackingNumber: `HELD-${counter}`,
      action: "redeliver",
      notes: "ring twice",
      redeliveryDate: null,
      address: null,
    });
    const kept = await readReleases(api.runtime.redis, id);
    expect(kept).toMatchObject([{ releaseId: body.releaseId, outcome: "ok" }]);
  });

  test("a sync carrier that could not do it: courierOutcome error with its message", async () => {
    const { status, body } = await release(await held(), { action: "redeliver", notes: "error" });
    expect([status, body.courierOutcome, body.message]).toEqual([200, "error", "No such street."]);
    expect(body.status).toBe("sent");
  });

  test("a deferred carrier: pending, and its outcome appears as a tracking event", async () => {
    const id = await held("LATER");
    const { status, body } = await release(id, { action: "redeliver" });
    expect([status, body.status, body.courierOutcome]).toEqual([200, "sent", "pending"]);
    await eventually(async () => {
      const detail = await api.call("GET", `/v2/shipments/${id}`, { token });
      return detail.body.history[0].courierStatus === "Svincolata: in consegna";
    }, "the outcome is in the history");
  });

  test("a new address is passed on", async () => {
    const { status } = await release(await held(), {
      action: "redeliver_new_address",
      address: { ...ADDRESS, phone: "+39 011" },
    });
    expect(status).toBe(200);
    expect(asked()?.address).toEqual({ ...ADDRESS, phone: "+39 011" });
  });

  test("every release has an id of its own", async () => {
    const id = await held();
    const first = await release(id, { action: "redeliver" });
    const second = await release(id, { action: "return_to_sender" });
    expect(first.body.releaseId).not.toBe(second.body.releaseId);
  });

  for (const courier of ["DATED", "OLD_DATED", "SYNC"]) {
    test(`redeliveryDate is passed on to a carrier that requires or supports one: ${courier}`, async () => {
      await release(await held(courier), { action: "redeliver", redeliveryDate: NEXT_MONTH });
      expect(asked()?.redeliveryDate).toBe(NEXT_MONTH);
    });
  }

  test("redeliveryDate may be today", async () => {
    const id = await held();
    const redeliveryDate = romeDate(api.runtime.live.now());
    const { status } = await release(id, { action: "redeliver", redeliveryDate });
    expect([status, asked()?.redeliveryDate]).toEqual([200, redeliveryDate]);
  });

  test("the same release twice is answered and not sent twice, also at once", async () => {
    const id = await held();
    const body = { action: "redeliver", notes: "once" };
    const first = await release(id, body);
    const sent = depot.releases.length;
    const again = await Promise.all([release(id, body), release(id, body)]);
    expect(again.map((answer) => answer.body)).toEqual([first.body, first.body]);
    expect(depot.releases.length).toBe(sent);
    expect((await release(id, { ...body, notes: "twice" })).body.releaseId).not.toBe(
      first.body.releaseId,
    );
  });

  test("409 while the carrier is being asked for the same release", async () => {
    const id = await held();
    const sent = depot.releases.length;
    const answers = await Promise.all([1, 2, 3].map(() => release(id, { action: "redeliver" })));
    expect(depot.releases.length).toBe(sent + 1);
    for (const { status, body } of answers) {
      expect(status === 200 || body.code === "STOCK_RELEASE_UNDER_WAY").toBe(true);
    }
  });

  test("what the carrier refused or could not do may be asked again, and so may a parcel that is held again", async () => {
    const id = await held();
    const ids = new Set<number>();
    for (const notes of ["error", "error", "fine"]) {
      ids.add((await release(id, { action: "redeliver", notes })).body.releaseId);
    }
    await applyEvents(api.runtime, [{ shipmentId: id, code: "OUT" }]);
    await applyEvents(api.runtime, [{ shipmentId: id, code: "HLD" }]);
    ids.add((await release(id, { action: "redeliver", notes: "fine" })).body.releaseId);
    expect(ids.size).toBe(4);
  });

  test("a release whose outcome is not known is sent again under the same id", async () => {
    const id = await held();
    const sent = depot.releases.length;
    await release(id, { action: "redeliver", notes: "fail" });
    await release(id, { action: "redeliver", notes: "fail" });
    const ids = depot.releases.slice(sent).map(({ releaseId }) => releaseId);
    expect(ids).toHaveLength(2);
    expect(new Set(ids).size).toBe(1);
  });

  test("no two releases share an id in any partition: it is the carrier's idempotency key", async () => {
    const asked = { action: "redeliver", redeliveryDate: null, digest: "x", askedAtMs: 0 };
    const claims = await Promise.all(
      Array.from({ length: 32 }, (_, at) =>
        claimRelease(api.runtime.redis, 900_000 + at, asked, 1_000),
      ),
    );
    expect(new Set(claims.map(({ releaseId }) => releaseId)).size).toBe(claims.length);
  });

  test("the latest 50 releases of a shipment are remembered", async () => {
    const { redis } = api.runtime;
    const ids: number[] = [];
    for (let at = 1; at <= 51; at += 1) {
      const asked = { action: "redeliver", redeliveryDate: null, digest: `${at}`, askedAtMs: 0 };
      ids.push((await claimRelease(redis, 16, asked, 1_000)).releaseId);
      const kept = (await readReleases(redis, 16)).map(({ releaseId }) => releaseId);
      expect(kept).toEqual(ids.slice(-50));
    }
  });

  test("redeliveryDate is ignored by a carrier that does not support it", async () => {
    const { status } = await release(await held("UNDATED"), {
      action: "redeliver",
      redeliveryDate: NEXT_MONTH,
    });
    expect(status).toBe(200);
    expect(asked()?.redeliveryDate).toBeNull();
  });

  test("a carrier that requires a date gets none with return_to_sender", async () => {
    await release(await held("DATED"), { action: "return_to_sender" });
    expect(asked()?.redeliveryDate).toBeNull();
  });
});

describe("read again", () => {
  const read = (id: number, releaseId: number | string, as = token) =>
    api.call("GET", `/v2/shipments/${id}/stock-releases/${releaseId}`, { token: as });

  test("what was asked and what the carrier made of it", async () => {
    const id = await held();
    const { body } = await release(id, { action: "redeliver", redeliveryDate: NEXT_MONTH });
    const answer = await read(id, body.releaseId);
    expect(answer.status).toBe(200);
    expect(answer.body).toEqual({
      ...body,
      shipmentId: id,
      action: "redeliver",
      redeliveryDate: NEXT_MONTH,
      requestedAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*[+]0[12]:00$/),
    });
  });

  test("a release that the carrier refused, lost or is being asked for says so", async () => {
    const { redis } = api.runtime;
    const statuses: unknown[] = [];
    for (const notes of ["refuse", "fail"]) {
      const id = await held();
      await release(id, { action: "redeliver", notes });
      const [kept] = await readReleases(redis, id);
      const { body } = await read(id, kept?.releaseId ?? 0);
      statuses.push([body.status, body.courierOutcome]);
    }
    const id = await held();
    const asked = { action: "redeliver", redeliveryDate: null, digest: "x", askedAtMs: Date.now() };
    const { releaseId } = await claimRelease(redis, id, asked, 60_000);
    const { body } = await read(id, releaseId);
    statuses.push([body.status, body.courierOutcome]);
    expect(statuses).toEqual([
      ["refused", null],
      ["unknown", null],
      ["sending", null],
    ]);
  });

  test("404: of another shipment, of another channel and missing", async () => {
    const [id, other] = [await held(), await held()];
    const { releaseId } = (await release(id, { action: "redeliver" })).body;
    const missing = await read(id, 999_999);
    expect([missing.status, missing.body.code]).toEqual([404, "STOCK_RELEASE_NOT_FOUND"]);
    expect((await read(other, releaseId)).body).toEqual(missing.body);
    expect((await read(id, "x")).body).toEqual(missing.body);
    const outlet = await api.token("key_acme_outlet");
    const foreign = await read(id, releaseId, outlet);
    expect([foreign.status, foreign.body]).toEqual([
      404,
      (await read(999_999, releaseId, outlet)).body,
    ]);
  });
});

describe("409: the shipment is not held in depot", () => {
  test("before and after it is", async () => {
    const id = await held();
    await applyEvents(api.runtime, [{ shipmentId: id, code: "OUT" }]);
    const { status, body } = await release(id, { action: "redeliver" });
    expect([status, body.status, body.code]).toEqual([409, 409, "NOT_HELD_IN_DEPOT"]);
  });
});

describe("422", () => {
  const faulty: [string, object, string, string][] = [
    ["no action", {}, "action", "REQUIRED"],
    ["an unknown action", { action: "burn" }, "action", "NOT_ALLOWED"],
    ["notes no text", { action: "redeliver", notes: 1 }, "notes", "WRONG_TYPE"],
    [
      "a date that is none",
      { action: "redeliver", redeliveryDate: "2026-02-30" },
      "redeliveryDate",
      "BAD_FORMAT",
    ],
    [
      "a date in the past",
      { action: "redeliver", redeliveryDate: "2026-11-09" },
      "redeliveryDate",
      "OUT_OF_RANGE",
    ],
    [
      "a date with return_to_sender",
      { action: "return_to_sender", redeliveryDate: NEXT_MONTH },
      "redeliveryDate",
      "NOT_ALLOWED",
    ],
    [
      "an address with redeliver",
      { action: "redeliver", address: ADDRESS },
      "address",
      "NOT_ALLOWED",
    ],
    [
      "an address with return_to_sender",
      { action: "return_to_sender", address: ADDRESS },
      "address",
      "NOT_ALLOWED",
    ],
    [
      "no address with redeliver_new_address",
      { action: "redeliver_new_address" },
      "address",
      "REQUIRED",
    ],
    [
      "the name of a province where its code belongs",
      { action: "redeliver_new_address", address: { ...ADDRESS, province: "Torino" } },
      "address.province",
      "BAD_FORMAT",
    ],
    ...(["name", "street", "city", "zip", "province"] as const).map(
      (field): [string, object, string, string] => [
        `an address without ${field}`,
        { action: "redeliver_new_address", address: { ...ADDRESS, [field]: undefined } },
        `address.${field}`,
        "REQUIRED",
      ],
    ),
  ];
  for (const [name, body, path, code] of faulty) {
    test(name, async () => {
      const answer = await release(await held(), body);
      expect(answer.status).toBe(422);
      expect(answer.headers.get("content-type")).toContain("application/problem+json");
      expect(answer.body.violations[0]).toMatchObject({ path, code });
    });
  }

  test("the carrier refuses: its own words", async () => {
    const { status, body } = await release(await held(), { action: "redeliver", notes: "refuse" });
    expect([status, body.code]).toEqual([422, "CARRIER_REFUSED"]);
    expect(body.detail).toBe("The parcel has left the depot.");
  });

  test("a carrier that takes no stock releases", async () => {
    const { status, body } = await release(await held("NONE"), { action: "redeliver" });
    expect([status, body.code]).toEqual([422, "CARRIER_REFUSED"]);
  });
});

describe("502", () => {
  test("the carrier cannot be reached, or fails", async () => {
    const away = await release(await held("AWAY"), { action: "redeliver" });
    const failing = await release(await held(), { action: "redeliver", notes: "fail" });
    expect([away.status, failing.status]).toEqual([502, 502]);
    expect(away.body.code).toBe("CARRIER_UNREACHABLE");
  });

  test("the carrier's answer cannot be read", async () => {
    const { status, body } = await release(await held(), { action: "redeliver", notes: "babble" });
    expect([status, body.code]).toEqual([502, "CARRIER_UNREADABLE"]);
  });
});

describe("the gateway of a carrier", () => {
  test("only 400, 409 and 422 are refusals: a wrong token, URL or pace is no decision about the parcel", async () => {
    let status = 0;
    const gateway = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      fetch: () => Response.json({ message: "no" }, { status }),
    });
    const nationalCarrierUrl = `http://127.0.0.1:${gateway.port}`;
    const ask = releaseCarrier(national(), { ...config, nationalCarrierUrl });
    const kinds = [];
    for (status of [400, 409, 422, 401, 403, 404, 408, 429, 500, 503]) {
      kinds.push(`${status} ${(await ask?.(order))?.kind}`);
    }
    await gateway.stop(true);
    expect(kinds).toEqual([
      ...["400 refused", "409 refused", "422 refused"],
      ...["401 unreadable", "403 unreadable", "404 unreadable", "408 unreadable", "429 unreadable"],
      ...["500 unreachable", "503 unreachable"],
    ]);
  });

  const config = { nationalCarrier: "POSTE", nationalCarrierUrl: null, testClock: false };
  const order = {
    releaseId: 1,
    courier: "POSTE_ITA",
    trackingNumber: "N1",
    action: "redeliver" as const,
    notes: null,
    redeliveryDate: null,
    address: null,
  };
  const national = () => {
    const courier = api.runtime.live.configuration().couriers.get("POSTE_ITA");
    if (!courier) throw new Error("no POSTE_ITA");
    return courier;
  };

  test("the national carrier's is NATIONAL_CARRIER_URL", async () => {
    const nationalCarrierUrl = depot.url("sync").replace(/\/stock-release.*/, "/");
    const carrier = releaseCarrier(national(), { ...config, nationalCarrierUrl });
    expect(await carrier?.(order)).toEqual({ kind: "accepted", outcome: "ok", message: null });
    expect(asked()).toEqual(order);
  });

  test("a carrier without one is unavailable, unless the test clock plays it", async () => {
    expect(await releaseCarrier(national(), config)?.(order)).toEqual({ kind: "unreachable" });
    const played = await releaseCarrier(national(), { ...config, testClock: true })?.(order);
    expect(played).toMatchObject({ kind: "accepted", outcome: "ok" });
  });
});

describe("404", () => {
  test("a missing shipment and one of another channel answer the same", async () => {
    const outlet = await api.token("key_acme_outlet");
    const foreign = await release(await held(), { action: "redeliver" }, outlet);
    const missing = await release(999_999, { action: "redeliver" }, outlet);
    expect([foreign.status, missing.status]).toEqual([404, 404]);
    expect(foreign.body).toEqual(missing.body);
  });
});

describe("the date of a carrier that requires one defaults to the next Italian working day", () => {
  // Each moves the clock on. It cannot go back, so all of them lie far ahead.
  const days: [string, string, string][] = [
    ["over a weekend and Christmas", "2043-12-24T12:00:00Z", "2043-12-28"],
    ["over Easter Monday", "2044-04-16T12:00:00Z", "2044-04-19"],
    ["over Liberation Day's eve in Rome", "2045-04-24T22:30:00Z", "2045-04-26"],
  ];
  for (const [name, now, expected] of days) {
    test(name, async () => {
      await api.advance(Math.round((Date.parse(now) - api.runtime.live.now()) / 1000));
      const fresh = await api.call("POST", "/v2/auth/token", { body: { apiKey: "key_acme_main" } });
      token = fresh.body.token;
      const { status } = await release(await held("DATED"), { action: "redeliver" });
      expect(status).toBe(200);
      expect(asked()?.redeliveryDate).toBe(expected);
    });
  }
});
