/** Document 1, `POST /v2/shipments/{id}/stock-release`. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { releaseCarrier } from "#api/shipments/release-carrier.ts";
import type { Consumer } from "#core/redis/consumer.ts";
import { startConsumer } from "#core/redis/consumer.ts";
import { claimRelease, keepRelease, readReleases } from "#core/redis/stock-releases.ts";
import type { Running } from "#core/runtime.ts";
import { startIngest } from "#ingest/main.ts";
import { trackHandler } from "#processors/track.ts";
import { type Depot, startDepot } from "#start/demo/depot.ts";
import { item, openTestApi, type TestApi } from "#test/support/api.ts";
import { push } from "#test/support/courier.ts";
import { eventually } from "#test/support/eventually.ts";
import { applyEvents } from "#test/support/facts.ts";
import { testSetup } from "#test/support/setup.ts";

let api: TestApi;
let token: string;
let depot: Depot;
let ingest: Running;
let track: Consumer;
let counter = 0;

const ADDRESS = { name: "Ada", street: "Via Po 1", city: "Torino", zip: "10123", province: "TO" };

beforeAll(async () => {
  depot = startDepot({
    now: Date.now,
    wordsOf: () => ({ code: "OUT", description: "Svincolata: in consegna" }),
    tell: async (courier, event) => {
      await push(ingest.url ?? "", [event], { courier, token: `tok_${courier}` });
    },
  });
  const setup = testSetup();
  const catalogue = setup.couriers?.[0]?.catalogue ?? [];
  const courier = (code: string, members: object) =>
    setup.couriers?.push({ code, tokens: [`tok_${code}`], catalogue, ...members });
  const base = depot.url("sync").replace(/\/stock-release.*/, "");
  courier("SYNC", { stockRelease: "sync", stockReleaseUrl: depot.url("sync") });
  courier("DATED", {
    ...{ stockRelease: "sync", stockReleaseUrl: depot.url("sync") },
    stockReleaseNeedsDate: true,
  });
  courier("LATER", { stockRelease: "deferred", stockReleaseUrl: depot.url("deferred") });
  courier("AWAY", { stockRelease: "sync", stockReleaseUrl: "http://127.0.0.1:1/none" });
  courier("LOST", { stockRelease: "sync", stockReleaseUrl: `${base}/elsewhere` });
  courier("NONE", { stockRelease: "none" });
  courier("POSTE_ITA", { stockRelease: "sync" });
  const codes = ["SYNC", "DATED", "LATER", "AWAY", "LOST", "NONE", "POSTE_ITA"];
  setup.companies?.[0]?.channels?.[0]?.couriers?.push(...codes.map((code) => ({ code })));
  api = await openTestApi(setup);
  token = await api.token("key_acme_main");
  ingest = await startIngest(api.runtime);
  const { redis, live, log, config } = api.runtime;
  track = startConsumer({
    ...{ redis, log, source: "event", group: "track", batch: 100 },
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

  test("the same request again is the same release: the carrier is asked once, the answer is the same", async () => {
    const id = await held();
    const body = { action: "redeliver", notes: "ring three times" };
    const first = await release(id, body);
    const before = depot.releases.length;
    const again = await release(id, body);
    expect([again.status, again.body]).toEqual([200, first.body]);
    expect(depot.releases).toHaveLength(before);
    expect(await readReleases(api.runtime.redis, id)).toHaveLength(1);
  });

  test("another event that holds it makes the same request another release", async () => {
    const id = await held();
    const first = await release(id, { action: "redeliver" });
    await applyEvents(api.runtime, [{ shipmentId: id, code: "HLD" }]);
    const second = await release(id, { action: "redeliver" });
    expect(second.body.releaseId).not.toBe(first.body.releaseId);
  });

  test("after a failure the carrier is asked under the same id, after a refusal or an error under another one", async () => {
    for (const [notes, isSame] of [
      ["fail", true],
      ["babble", true],
      ["refuse", false],
      ["error", false],
    ] as const) {
      const id = await held();
      await release(id, { action: "redeliver", notes });
      await release(id, { action: "redeliver", notes });
      const [first, second] = depot.releases.slice(-2);
      expect([notes, first?.releaseId === second?.releaseId]).toEqual([notes, isSame]);
    }
  });

  test("no two releases have one id, in whatever partition: it is the carrier's idempotency key", async () => {
    const asked = { heldBy: "x", action: "redeliver", notes: null, redeliveryDate: null };
    const ids = await Promise.all(
      Array.from({ length: 32 }, async (_, shipmentId) => {
        const one = { ...asked, shipmentId: 900_000 + shipmentId, address: null };
        return (await claimRelease(api.runtime.redis, one)).releaseId;
      }),
    );
    expect(new Set(ids).size).toBe(ids.length);
  });

  test("the latest 50 releases of a shipment are remembered", async () => {
    const { redis } = api.runtime;
    const asked = { shipmentId: 16, heldBy: "x", action: "redeliver", notes: null };
    const known = { action: "redeliver", redeliveryDate: null, askedAtMs: 0, message: null };
    const one = { ...asked, redeliveryDate: null, address: null };
    for (let releaseId = 1; releaseId <= 51; releaseId += 1) {
      await keepRelease(redis, one, { ...known, releaseId, outcome: "ok" }, "unknown");
      if (releaseId === 50) expect((await readReleases(redis, 16))[0]?.releaseId).toBe(1);
    }
    const ids = (await readReleases(redis, 16)).map(({ releaseId }) => releaseId);
    expect([ids.length, ids[0], ids.at(-1)]).toEqual([50, 2, 51]);
  });

  test("redeliveryDate is passed on to a carrier that requires a date", async () => {
    await release(await held("DATED"), { action: "redeliver", redeliveryDate: "2027-01-12" });
    expect(asked()?.redeliveryDate).toBe("2027-01-12");
  });

  test("redeliveryDate is ignored by a carrier that does not support it", async () => {
    const { status } = await release(await held(), {
      action: "redeliver",
      redeliveryDate: "2027-01-12",
    });
    expect(status).toBe(200);
    expect(asked()?.redeliveryDate).toBeNull();
  });

  test("a carrier that requires a date gets none with return_to_sender", async () => {
    await release(await held("DATED"), { action: "return_to_sender" });
    expect(asked()?.redeliveryDate).toBeNull();
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
      "a date with return_to_sender",
      { action: "return_to_sender", redeliveryDate: "2027-01-12" },
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
  const config = { nationalCarrier: "POSTE", nationalCarrierUrl: null, testClock: false };
  const order = {
    ...{ releaseId: 1, courier: "POSTE_ITA", trackingNumber: "N1", action: "redeliver" as const },
    ...{ notes: null, redeliveryDate: null, address: null },
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

  test("a carrier without one is away, unless the test clock plays it", async () => {
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
  // Each moves the clock on.
  const days: [string, string, string][] = [
    ["over a weekend and Christmas", "2026-12-24T12:00:00Z", "2026-12-28"],
    ["over Easter Monday", "2027-03-27T12:00:00Z", "2027-03-30"],
    ["over Liberation Day's eve in Rome", "2028-04-24T22:30:00Z", "2028-04-26"],
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
