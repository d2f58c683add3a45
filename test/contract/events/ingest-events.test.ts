/** Document 2: fields of an event and the outcome of each. */
import { beforeAll, describe, expect, test } from "bun:test";
import { advanceClock } from "#core/configuration/store/live.ts";
import { checkTime } from "#core/events/rules/check-time.ts";
import { PARKED_PER_REFERENCE } from "#core/events/store/parked.ts";
import { bucketKeys, seenBucket, seenLayout } from "#core/events/store/seen.ts";
import { readLedger } from "#core/webhooks/store/deliveries/ledger.ts";
import { startIngest } from "#ingest/main.ts";
import { event, push } from "#test/support/clients/courier.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { addShipment } from "#test/support/data/shipments.ts";
import { forAll } from "#test/support/for-all.ts";
import { openTestRuntime } from "#test/support/product/runtime.ts";

let url: string;

const runtime = forAll(() => openTestRuntime(testSetup(), { LOG_HIGH_WATER: "160000" }));
const ingest = forAll(() => startIngest(runtime));
beforeAll(async () => {
  url = ingest.url ?? "";
  await addShipment(runtime, "TN1");
});

async function outcomes(events: readonly unknown[], path = "/v1/events"): Promise<string[]> {
  const { status, body } = await push(url, events, { path });
  expect(status).toBe(200);
  const { accepted, duplicate, unknownTracking, invalid, results } = body;
  expect(accepted + duplicate + unknownTracking + invalid).toBe(events.length);
  return results.map(({ outcome }: { outcome: string }) => outcome);
}

describe("an event is INVALID (document 2, Event)", () => {
  const text = (length: number) => "x".repeat(length);
  const faulty: [string, Record<string, unknown>, string, string][] = [
    ["no eventId", { eventId: undefined }, "eventId", "REQUIRED"],
    ["an empty eventId", { eventId: "" }, "eventId", "TOO_SHORT"],
    ["an eventId of 129", { eventId: text(129) }, "eventId", "TOO_LONG"],
    ["a trackingNumber of 65", { trackingNumber: text(65) }, "trackingNumber", "TOO_LONG"],
    ["neither reference", { trackingNumber: undefined }, "trackingNumber", "REQUIRED"],
    [
      "externalId alone",
      { trackingNumber: undefined, externalId: "R" },
      "senderAccount",
      "REQUIRED",
    ],
    ["an externalId of 129", { externalId: text(129) }, "externalId", "TOO_LONG"],
    ["a senderAccount of 65", { senderAccount: text(65) }, "senderAccount", "TOO_LONG"],
    [
      "occurredAt without offset",
      { occurredAt: "2026-11-10T10:00:00" },
      "occurredAt",
      "BAD_FORMAT",
    ],
    ["an impossible day", { occurredAt: "2026-02-30T10:00:00Z" }, "occurredAt", "BAD_FORMAT"],
    ["no status", { status: undefined }, "status", "REQUIRED"],
    ["a code of 65", { status: { code: text(65), description: "d" } }, "status.code", "TOO_LONG"],
    ["no description", { status: { code: "TRN" } }, "status.description", "REQUIRED"],
    [
      "a description of 501",
      { status: { code: "TRN", description: text(501) } },
      "status.description",
      "TOO_LONG",
    ],
    ["an unknown field", { surprise: 1 }, "surprise", "UNKNOWN_FIELD"],
    ["an unknown inner field", { location: { street: "x" } }, "location.street", "UNKNOWN_FIELD"],
    ["a country of 3", { location: { countryCode: "ITA" } }, "location.countryCode", "BAD_FORMAT"],
    ["a parcel index of 0", { parcel: { index: 0 } }, "parcel.index", "OUT_OF_RANGE"],
    ["a broken index", { parcel: { index: 1.5 } }, "parcel.index", "WRONG_TYPE"],
    [
      "another deliveredTo",
      { delivery: { deliveredTo: "DOG" } },
      "delivery.deliveredTo",
      "NOT_ALLOWED",
    ],
    ["a podUrl that is none", { delivery: { podUrl: "nope" } }, "delivery.podUrl", "BAD_FORMAT"],
    ["attempt 0", { delivery: { attemptNumber: 0 } }, "delivery.attemptNumber", "OUT_OF_RANGE"],
    [
      "an estimate that is no date",
      { delivery: { estimatedDeliveryDate: "2026-13-01" } },
      "delivery.estimatedDeliveryDate",
      "BAD_FORMAT",
    ],
    [
      "a change without the new number",
      { trackingNumberChange: {} },
      "trackingNumberChange.newTrackingNumber",
      "REQUIRED",
    ],
    ["isReturn as text", { isReturn: "yes" }, "isReturn", "WRONG_TYPE"],
    ["attributes that are no text", { attributes: { a: 1 } }, "attributes.a", "WRONG_TYPE"],
    [
      "21 attributes",
      { attributes: Object.fromEntries(Array.from({ length: 21 }, (_, n) => [`k${n}`, "v"])) },
      "attributes",
      "TOO_MANY",
    ],
  ];
  test.each(faulty)("%s", async (_, members, path, code) => {
    const { body } = await push(url, [{ ...event(), ...members }]);
    expect(body.invalid).toBe(1);
    const [{ outcome, errors }] = body.results;
    expect(outcome).toBe("INVALID");
    expect(errors).toContainEqual({ path, code, message: expect.any(String) });
  });

  test("which is dated more than 24 hours after the service's clock, which a test may advance", async () => {
    const MINUTE_MS = 60_000;
    const ahead = (minutes: number) => {
      const occurredAt = new Date(runtime.live.now() + minutes * MINUTE_MS).toISOString();
      return event({ occurredAt });
    };
    for (const path of ["/v1/events/validate", "/v1/events"]) {
      const { body } = await push(url, [ahead(24 * 60 - 1), ahead(24 * 60 + 1)], { path });
      expect(body).toMatchObject({ accepted: 1, invalid: 1 });
      expect(body.results[1].errors).toEqual([
        { path: "occurredAt", code: "IN_FUTURE", message: expect.any(String) },
      ]);
    }
    const tomorrow = ahead(24 * 60 + 1);
    expect(await outcomes([tomorrow])).toEqual(["INVALID"]);
    await advanceClock(runtime.redis, 120);
    // It did not take the id.
    expect(await outcomes([tomorrow])).toEqual(["ACCEPTED"]);
  });

  test("24 hours ahead to the millisecond is still valid", () => {
    const nowMs = Date.parse("2026-11-10T10:00:00.000Z");
    const at = (occurredAt: string) =>
      checkTime(event({ occurredAt }), nowMs).map(({ code }) => code);
    expect(at("2026-11-11T11:00:00.000+01:00")).toEqual([]);
    expect(at("2026-11-11T11:00:00.001+01")).toEqual(["IN_FUTURE"]);
    expect(at("2099-01-01T00:00:00Z")).toEqual(["IN_FUTURE"]);
  });

  test("every fault of it is reported, at most 20", async () => {
    const { body } = await push(url, [{ eventId: "", occurredAt: "x", status: {}, extra: 1 }]);
    const paths = body.results[0].errors.map(({ path }: { path: string }) => path);
    expect(paths).toEqual(
      expect.arrayContaining([
        "eventId",
        "occurredAt",
        "status.code",
        "status.description",
        "extra",
      ]),
    );
    const many = Object.fromEntries(Array.from({ length: 50 }, (_, n) => [`x${n}`, n]));
    const flooded = await push(url, [{ ...event(), ...many }]);
    expect(flooded.body.results[0].errors.length).toBe(20);
  });

  test("what is no object is INVALID too, with a null eventId", async () => {
    const { body } = await push(url, [null, 5, "text", []]);
    expect(body.invalid).toBe(4);
    expect(body.results[0].eventId).toBeNull();
  });

  test("identifiers have as many characters as allowed, also where each has two UTF-16 units", async () => {
    const long = (count: number) => `${crypto.randomUUID()}${"📦".repeat(count - 36)}`;
    const number = long(64);
    await addShipment(runtime, number.slice(0, 40));
    const named = event({ eventId: long(128), trackingNumber: number.slice(0, 40) });
    expect(await outcomes([named, named])).toEqual(["ACCEPTED", "DUPLICATE"]);
    expect(await outcomes([event({ trackingNumber: number })])).toEqual(["UNKNOWN_TRACKING"]);
    const tooLong = [event({ eventId: long(129) }), event({ trackingNumber: long(65) })];
    expect(await outcomes(tooLong)).toEqual(["INVALID", "INVALID"]);
  });

  test("every optional field at its limit is accepted", async () => {
    const full = event({
      eventId: text(128),
      externalId: text(128),
      senderAccount: text(64),
      status: { code: text(64), description: text(500) },
      location: { name: text(200), countryCode: "IT", postalCode: "20121" },
      parcel: { trackingNumber: text(64), index: 1, total: 999 },
      reason: { code: text(64), description: text(500) },
      delivery: {
        estimatedDeliveryDate: "2026-11-12",
        estimatedDeliveryWindow: {
          from: "2026-11-12T09:00:00+01:00",
          to: "2026-11-12T11:00:00+01:00",
        },
        deliveredTo: "NEIGHBOUR",
        signedBy: text(200),
        podUrl: "https://courier.example/pod/1",
        attemptNumber: 1,
      },
      pickupPoint: {
        id: text(64),
        name: text(200),
        address: text(500),
        postalCode: "20121",
        countryCode: "IT",
        availableUntil: "2026-11-20T19:00:00+01:00",
      },
      trackingNumberChange: { newTrackingNumber: text(64), reason: text(500) },
      recipientActionUrl: "https://courier.example/action",
      isReturn: false,
      attributes: Object.fromEntries(
        Array.from({ length: 20 }, (_, n) => [`${n}`.padEnd(64, "k"), text(500)]),
      ),
    });
    expect(await outcomes([full], "/v1/events/validate")).toEqual(["ACCEPTED"]);
  });
});

describe("outcomes (document 2, States and transitions)", () => {
  test("ACCEPTED, DUPLICATE, UNKNOWN_TRACKING and INVALID come in send order", async () => {
    const known = event();
    expect(await outcomes([known])).toEqual(["ACCEPTED"]);
    const all = [{ eventId: 1 }, known, event({ trackingNumber: "nobody's" }), event()];
    expect(await outcomes(all)).toEqual(["INVALID", "DUPLICATE", "UNKNOWN_TRACKING", "ACCEPTED"]);
  });

  test("only the eventId counts: with another tracking number it is a DUPLICATE still", async () => {
    const { eventId } = event();
    await outcomes([event({ eventId })]);
    expect(await outcomes([event({ eventId, trackingNumber: "nobody's" })])).toEqual(["DUPLICATE"]);
  });

  test("twice in one message: the first is judged, the second is a DUPLICATE", async () => {
    const twice = event();
    expect(await outcomes([twice, twice])).toEqual(["ACCEPTED", "DUPLICATE"]);
  });

  test("a message of 500 is judged in parts and answered in send order", async () => {
    const kinds = ["ACCEPTED", "UNKNOWN_TRACKING", "INVALID", "DUPLICATE", "INVALID"];
    const twice = Array.from({ length: 100 }, () => event());
    const of: Record<string, (at: number) => unknown> = {
      ACCEPTED: (at) => twice[at],
      DUPLICATE: (at) => ({ ...twice[at], trackingNumber: "another" }),
      UNKNOWN_TRACKING: () => event({ trackingNumber: "a stranger" }),
    };
    const broken = [null, 7, "text", [], { eventId: "x".repeat(500) }, { eventId: 5 }];
    const events = Array.from({ length: 500 }, (_, index) => {
      const at = Math.floor(index / kinds.length);
      return of[kinds[index % kinds.length] ?? ""]?.(at) ?? broken[at % broken.length];
    });
    const reported = events.map((_, index) => kinds[index % kinds.length]);
    expect(await outcomes(events)).toEqual(reported as string[]);
    const { body } = await push(url, events);
    expect(body.results.map(({ eventId }: { eventId: unknown }) => eventId)).toEqual(
      events.map((one) => {
        const id = (one as { eventId?: unknown } | null)?.eventId;
        return typeof id === "string" ? id : null;
      }),
    );
    expect([body.accepted, body.duplicate]).toEqual([0, 200]);
  });

  test("an INVALID or UNKNOWN_TRACKING event does not take the id", async () => {
    const { eventId } = event();
    const tries = [
      { ...event({ eventId }), surprise: 1 },
      event({ eventId, trackingNumber: "nobody's" }),
      event({ eventId }),
    ];
    for (const [at, expected] of ["INVALID", "UNKNOWN_TRACKING", "ACCEPTED"].entries()) {
      expect(await outcomes([tries[at]])).toEqual([expected]);
    }
  });

  test("the same event id of two couriers is two events", async () => {
    await addShipment(runtime, "BRT1", { courier: "BRT_ITA" });
    const { eventId } = event();
    expect(await outcomes([event({ eventId })])).toEqual(["ACCEPTED"]);
    const other = event({ eventId, trackingNumber: "BRT1" });
    const { body } = await push(url, [other], { token: "tok_brt_1", courier: "BRT_ITA" });
    expect(body.accepted).toBe(1);
  });

  test("one event in twenty concurrent messages is accepted once", async () => {
    const shared = Array.from({ length: 50 }, () => event());
    const answers = await Promise.all(Array.from({ length: 20 }, () => push(url, shared)));
    const accepted = answers.reduce((sum, { body }) => sum + body.accepted, 0);
    const duplicate = answers.reduce((sum, { body }) => sum + body.duplicate, 0);
    expect([accepted, duplicate]).toEqual([50, 950]);
  });

  test("messages of two couriers that come together keep their outcomes, and each is counted as its own", async () => {
    const before = await readLedger(runtime.redis);
    const couriers = ["GLS_ITA", "BRT_ITA"] as const;
    const answers = await Promise.all(
      Array.from({ length: 40 }, (_, n) => {
        const courier = couriers[n % 2] ?? "GLS_ITA";
        const trackingNumber = n % 4 < 2 ? "TN1" : "nobody's";
        const to = { courier, token: courier === "GLS_ITA" ? "tok_gls_1" : "tok_brt_1" };
        return push(url, [event({ trackingNumber })], to);
      }),
    );
    const reportedNow = answers.map(({ body }) => body.results[0].outcome);
    const expected = reportedNow.map((_, n) => (n % 4 === 0 ? "ACCEPTED" : "UNKNOWN_TRACKING"));
    expect(reportedNow).toEqual(expected);
    const after = await readLedger(runtime.redis);
    const grown = (courier: string) => {
      const of = (ledger: typeof after) => ledger.couriers.find((one) => one.courier === courier);
      return [
        (of(after)?.accepted ?? 0) - (of(before)?.accepted ?? 0),
        (of(after)?.unknown ?? 0) - (of(before)?.unknown ?? 0),
      ];
    };
    expect([grown("GLS_ITA"), grown("BRT_ITA")]).toEqual([
      [10, 10],
      [0, 20],
    ]);
  });

  test("validate stores nothing, needs no known parcels and tells DUPLICATE of a known id", async () => {
    const known = event();
    await outcomes([known]);
    const fresh = event({ trackingNumber: "nobody's" });
    const path = "/v1/events/validate";
    expect(await outcomes([fresh, fresh, known, {}], path)).toEqual([
      "ACCEPTED",
      "DUPLICATE",
      "DUPLICATE",
      "INVALID",
    ]);
    expect(await outcomes([fresh], path)).toEqual(["ACCEPTED"]);
  });
});

describe("matching (document 2, Data rules)", () => {
  test("2: externalId under its sender account finds the shipment, under another one it does not", async () => {
    await addShipment(runtime, "EXT1", { orderReference: "ORDER-1" });
    const byReference = (senderAccount: string) => {
      const { trackingNumber: _, ...rest } = event({ externalId: "ORDER-1", senderAccount });
      return rest;
    };
    expect(await outcomes([byReference("ACC-1"), byReference("ACC-2")])).toEqual([
      "ACCEPTED",
      "UNKNOWN_TRACKING",
    ]);
  });

  test("2: two shipments of one reference are no guess", async () => {
    await addShipment(runtime, "TWIN1", { orderReference: "TWIN" });
    await addShipment(runtime, "TWIN2", { orderReference: "TWIN" });
    const { trackingNumber: _, ...rest } = event({ externalId: "TWIN", senderAccount: "ACC-1" });
    const numbered = event({ trackingNumber: "TWIN2", externalId: "TWIN", senderAccount: "ACC-1" });
    expect(await outcomes([rest, numbered])).toEqual(["UNKNOWN_TRACKING", "ACCEPTED"]);
  });

  test("a tracking number of two channels is accepted once, with a sender account and without", async () => {
    await addShipment(runtime, "SHARED");
    await addShipment(runtime, "SHARED", { channel: "acme-outlet" });
    const plain = event({ trackingNumber: "SHARED" });
    const narrowed = event({ trackingNumber: "SHARED", senderAccount: "ACC-1" });
    expect(await outcomes([plain, narrowed])).toEqual(["ACCEPTED", "ACCEPTED"]);
  });

  test("a tracking number and an externalId that disagree are UNKNOWN_TRACKING", async () => {
    await addShipment(runtime, "AGREE", { orderReference: "R-1" });
    const agreeing = event({ trackingNumber: "AGREE", externalId: "R-1" });
    const disagreeing = event({ trackingNumber: "AGREE", externalId: "R-2" });
    expect(await outcomes([agreeing, disagreeing])).toEqual(["ACCEPTED", "UNKNOWN_TRACKING"]);
  });

  test("a placeholder number is found by externalId under the real number", async () => {
    await addShipment(runtime, "TEMP-1", { orderReference: "R-9", isPlaceholder: true });
    const real = event({ trackingNumber: "REAL-1", externalId: "R-9", senderAccount: "ACC-1" });
    expect(await outcomes([real])).toEqual(["ACCEPTED"]);
  });

  test("1: the new tracking number counts at once, also in the same message, and the old one stays", async () => {
    await addShipment(runtime, "OLD");
    const change = event({
      trackingNumber: "OLD",
      trackingNumberChange: { newTrackingNumber: "NEW" },
    });
    const chained = event({
      trackingNumber: "NEW",
      trackingNumberChange: { newTrackingNumber: "NEWER" },
    });
    const newer = event({ trackingNumber: "NEWER" });
    expect(await outcomes([newer, change, chained])).toEqual(["ACCEPTED", "ACCEPTED", "ACCEPTED"]);
    const later = ["OLD", "NEW", "NEWER"].map((trackingNumber) => event({ trackingNumber }));
    expect(await outcomes(later)).toEqual(["ACCEPTED", "ACCEPTED", "ACCEPTED"]);
  });
});

describe("matching in a large message (document 2, Data rules)", () => {
  test("1: a number that the last of 300 events announces is known to all of them", async () => {
    await addShipment(runtime, "LARGE-1");
    const early = Array.from({ length: 299 }, () => event({ trackingNumber: "LARGE-2" }));
    const change = event({
      trackingNumber: "LARGE-1",
      trackingNumberChange: { newTrackingNumber: "LARGE-2" },
    });
    const reportedNow = await outcomes([...early, change]);
    expect(new Set(reportedNow)).toEqual(new Set(["ACCEPTED"]));
  });
});

describe("set-aside (document 2, Unknown-tracking set-aside)", () => {
  test("a resend of a parked event stays UNKNOWN_TRACKING, and one reference keeps a bounded number", async () => {
    const parked = Array.from({ length: PARKED_PER_REFERENCE + 1 }, () =>
      event({ trackingNumber: "LATER" }),
    );
    const all = await outcomes(parked);
    expect(new Set(all)).toEqual(new Set(["UNKNOWN_TRACKING"]));
    expect(await outcomes(parked.slice(0, 1))).toEqual(["UNKNOWN_TRACKING"]);
  });
});

describe("memory of eventIds (document 2, Limits)", () => {
  test("buckets stay integer sets: 9 bytes an id", async () => {
    const events = Array.from({ length: 500 }, () => event());
    await outcomes(events);
    const layout = await seenLayout(runtime.redis, runtime.live.now(), runtime.config.eventsPerDay);
    for (const { eventId } of events.slice(0, 50)) {
      const [bucket = ""] = bucketKeys(layout, seenBucket("GLS_ITA", eventId));
      expect(await runtime.redis.objectEncoding(bucket)).toBe("intset");
      expect(await runtime.redis.ttl(bucket)).toBeGreaterThan(184 * 86_400);
    }
  });
});
