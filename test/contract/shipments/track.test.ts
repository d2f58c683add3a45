/** From accepted events to shipment state: mapping, parked release, aliases, order, repetition, dead letters. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { advanceClock } from "#core/configuration/store/live.ts";
import { type Consumer, startConsumer } from "#core/platform/log/consumer.ts";
import { readLags } from "#core/platform/log/streams.ts";
import { changeLogs, deadLetterKey, eventLogs } from "#core/platform/redis/keys.ts";
import type { Running } from "#core/runtime/runtime.ts";
import { findByPart } from "#core/search/store/search-lines.ts";
import { readHistory, readShipments } from "#core/shipments/store/shipments.ts";
import { STATUSES } from "#core/statuses/rules/status.ts";
import { readLedger } from "#core/webhooks/store/deliveries/ledger.ts";
import { startIngest } from "#ingest/main.ts";
import { trackHandler } from "#processors/track/track.ts";
import { event, push } from "#test/support/clients/courier.ts";
import { hold } from "#test/support/data/held.ts";
import { isFoundIn } from "#test/support/data/search.ts";
import { channelOf, testSetup } from "#test/support/data/setup.ts";
import { addShipment } from "#test/support/data/shipments.ts";
import { eventually } from "#test/support/eventually.ts";
import { openTestRuntime, type TestRuntime } from "#test/support/product/runtime.ts";

let runtime: TestRuntime;
let ingest: Running;
let url: string;
const consumers: Consumer[] = [];

function startTrack(): Consumer {
  const { redis, live, log, config } = runtime;
  const handler = trackHandler({ redis, live, eventsPerDay: config.eventsPerDay });
  return startConsumer({ redis, log, source: "event", group: "track", handler, batch: 100 });
}

beforeAll(async () => {
  runtime = await openTestRuntime(testSetup());
  ingest = await startIngest(runtime);
  url = ingest.url ?? "";
  consumers.push(startTrack(), startTrack());
});

afterAll(async () => {
  for (const consumer of consumers) await consumer.stop();
  await ingest.stop();
  await runtime.end();
});

const status = (code: string) => ({ code, description: `text of ${code}` });
const at = (time: string) => `2026-11-10T${time}:00+01:00`;

async function settled(): Promise<void> {
  await eventually(async () => {
    const lags = await readLags(runtime.redis);
    return lags.every(({ group, entries }) => group !== "track" || entries === 0);
  }, "track has caught up");
}

async function shipment(id: number) {
  const [found] = await readShipments(runtime.redis, [id]);
  if (!found) throw new Error(`no shipment ${id}`);
  return found;
}

/** Pushes events and waits until they are applied. */
async function apply(...events: unknown[]): Promise<void> {
  const { body } = await push(url, events);
  expect(body.results.map(({ outcome }: { outcome: string }) => outcome)).not.toContain("INVALID");
  await settled();
}

describe("state", () => {
  test("follows the latest event by occurredAt, whatever the order of arrival", async () => {
    const id = await addShipment(runtime, "ORDER");
    const of = (code: string, time: string) =>
      event({ trackingNumber: "ORDER", status: status(code), occurredAt: at(time) });
    await apply(of("OUT", "12:00"));
    await apply(of("TRN", "10:00"), of("DLV", "13:00"), of("DEP", "09:00"));
    await apply(of("INF", "08:00"));
    const { state } = await shipment(id);
    expect(state.pair).toEqual({ status: "DELIVERED", detail: 0 });
    expect(state.departedAtMs).toBe(Date.parse(at("09:00")));
    expect((await readHistory(runtime.redis, id)).length).toBe(5);
  });

  test("of a shipment that an event from 2099 held, as an earlier version took it, is put right by the next event", async () => {
    const id = await addShipment(runtime, "HELD");
    await hold(runtime, id, [
      { code: "TRN", occurredAt: at("10:00"), receivedAt: at("10:00") },
      { code: "OUT", occurredAt: "2099-01-01T00:00:00Z", receivedAt: at("11:00") },
      { code: "DLV", occurredAt: at("12:00"), receivedAt: at("12:00") },
    ]);
    expect((await shipment(id)).state.pair.status).toBe("OUT_FOR_DELIVERY");
    await apply(event({ trackingNumber: "HELD", status: status("INF"), occurredAt: at("08:00") }));
    const { state } = await shipment(id);
    expect(state.pair.status).toBe("DELIVERED");
    expect(state.last?.by.occurredAtMs).toBe(Date.parse(at("12:00")));
    const history = await readHistory(runtime.redis, id);
    expect(history.map(({ event }) => event.occurredAt)).toContain("2099-01-01T00:00:00Z");
  });

  test("of a shipment whose parked event was ahead of its time follows what was received after that", async () => {
    const inMs = (ms: number) => new Date(runtime.live.now() + ms).toISOString();
    const of = (code: string, occurredAt: string) =>
      event({ trackingNumber: "EARLY", status: status(code), occurredAt });
    const early = of("OUT", inMs(2 * 3_600_000));
    const { body } = await push(url, [early]);
    expect(body.results[0].outcome).toBe("UNKNOWN_TRACKING");
    const id = await addShipment(runtime, "EARLY");
    await advanceClock(runtime.redis, 60);
    await apply(of("DLV", inMs(60_000)));
    const { state } = await shipment(id);
    expect([state.pair.status, state.keys.length]).toEqual(["DELIVERED", 2]);
    const history = await readHistory(runtime.redis, id);
    expect(history.map((fact) => fact.event.occurredAt)).toContain(early.occurredAt);
  });

  test("statusUpdatedAt is null until an event changes the status, and stays while it does not", async () => {
    const id = await addShipment(runtime, "STAMP");
    expect((await shipment(id)).statusUpdatedAtMs).toBeNull();
    await apply(event({ trackingNumber: "STAMP" }));
    const first = (await shipment(id)).statusUpdatedAtMs ?? 0;
    expect(Math.abs(first - runtime.live.now())).toBeLessThan(10_000);
    await advanceClock(runtime.redis, 60);
    await apply(event({ trackingNumber: "STAMP", occurredAt: at("18:00") }));
    expect((await shipment(id)).statusUpdatedAtMs).toBe(first);
  });

  test("an unmapped code is stored and flagged and leaves the status alone", async () => {
    const id = await addShipment(runtime, "UNMAPPED");
    await apply(event({ trackingNumber: "UNMAPPED", status: status("XYZ") }));
    const { state } = await shipment(id);
    expect([state.pair.status, state.unmapped]).toEqual(["WAITING_TO_COMPUTE", 1]);
    const [fact] = await readHistory(runtime.redis, id);
    expect(fact?.mapping).toBeNull();
    expect(fact?.event.status.description).toBe("text of XYZ");
  });

  test("the search finds a shipment in its present status and in no other", async () => {
    const id = await addShipment(runtime, "INDEXED");
    for (const [code, name] of [
      ["TRN", "IN_TRANSIT"],
      ["HLD", "EXCEPTION"],
      ["DLV", "DELIVERED"],
    ] as const) {
      const minute = String(name.length).padStart(2, "0");
      await apply(
        event({ trackingNumber: "INDEXED", status: status(code), occurredAt: at(`19:${minute}`) }),
      );
      const current = (await shipment(id)).state.pair.status;
      for (const one of STATUSES) {
        expect(await isFoundIn(runtime, id, one)).toBe(one === current);
      }
    }
  });
});

describe("repetition", () => {
  test("an entry that is delivered again changes nothing", async () => {
    const id = await addShipment(runtime, "AGAIN");
    await apply(event({ trackingNumber: "AGAIN" }));
    const before = await shipment(id);
    const logged = [id, "GLS_ITA", before.state.keys[0], 1, 0, event({ trackingNumber: "AGAIN" })];
    await runtime.redis.xAdd(eventLogs()[0] ?? "", "*", { e: JSON.stringify(logged) });
    await settled();
    expect(await shipment(id)).toEqual(before);
    expect((await readHistory(runtime.redis, id)).length).toBe(1);
  });

  test("two consumers on one shipment lose and double nothing", async () => {
    const id = await addShipment(runtime, "BUSY");
    const events = Array.from({ length: 400 }, (_, n) =>
      event({ trackingNumber: "BUSY", occurredAt: at(`10:${String(n % 60).padStart(2, "0")}`) }),
    );
    await Promise.all(
      Array.from({ length: 40 }, (_, n) => push(url, events.slice(n * 10, n * 10 + 10))),
    );
    await settled();
    const history = await readHistory(runtime.redis, id);
    expect(new Set(history.map(({ key }) => key)).size).toBe(400);
    expect(history.length).toBe(400);
  });
});

describe("set-aside (document 2, Unknown-tracking set-aside)", () => {
  test("parked events are applied with the first matching event, minimal, in one commit", async () => {
    const parked = event({
      trackingNumber: "PARKED",
      occurredAt: at("08:00"),
      status: status("DEP"),
      delivery: { signedBy: "Mario Rossi", podUrl: "https://courier.example/pod" },
      pickupPoint: { address: "Via Roma 1" },
      recipientActionUrl: "https://courier.example/act",
    });
    expect((await push(url, [parked])).body.unknownTracking).toBe(1);
    const id = await addShipment(runtime, "PARKED");
    expect((await shipment(id)).state.keys).toEqual([]);
    await apply(event({ trackingNumber: "PARKED", occurredAt: at("09:00") }));
    const { state } = await shipment(id);
    expect(state.departedAtMs).toBe(Date.parse(at("08:00")));
    expect(state.proof).toBeNull();
    const history = await readHistory(runtime.redis, id);
    const kept = history.find((fact) => fact.event.eventId === parked.eventId);
    expect(kept?.event).toEqual({
      eventId: parked.eventId,
      trackingNumber: "PARKED",
      occurredAt: parked.occurredAt,
      status: parked.status,
      location: { name: "Hub Milano" },
    });
    expect((await push(url, [parked])).body.duplicate).toBe(1);
  });

  test("an event that is resent in full after the shipment appeared replaces its parked copy", async () => {
    const full = event({ trackingNumber: "RESENT", delivery: { signedBy: "Mario Rossi" } });
    await push(url, [full]);
    const id = await addShipment(runtime, "RESENT");
    await apply(full);
    const { state } = await shipment(id);
    expect(state.keys.length).toBe(1);
    expect(state.proof?.value.signedBy).toBe("Mario Rossi");
  });

  test("after 7 days nothing is left of it", async () => {
    const parked = event({ trackingNumber: "STALE" });
    await push(url, [parked]);
    await advanceClock(runtime.redis, 7 * 86_400 + 1);
    await runtime.live.refresh();
    const id = await addShipment(runtime, "STALE");
    await apply(event({ trackingNumber: "STALE" }));
    expect((await readHistory(runtime.redis, id)).length).toBe(1);
  });

  test("what was parked under a new number is applied when the number is announced", async () => {
    const id = await addShipment(runtime, "FIRST-NO");
    await apply(event({ trackingNumber: "FIRST-NO", occurredAt: at("08:00") }));
    await push(url, [event({ trackingNumber: "SECOND-NO", occurredAt: at("10:00") })]);
    const change = { newTrackingNumber: "SECOND-NO" };
    await apply(
      event({ trackingNumber: "FIRST-NO", occurredAt: at("09:00"), trackingNumberChange: change }),
    );
    const { state } = await shipment(id);
    expect(state.keys.length).toBe(3);
    expect(state.aliases).toEqual(["SECOND-NO"]);
    const { companyId, id: channelId } = channelOf(runtime);
    const part = { text: "second-n", courier: "" };
    const { ids } = await findByPart(runtime.redis, companyId, [channelId], part);
    expect(ids.get(channelId)).toEqual([id]);
    // The new number is taken: the channel has a shipment with it.
    await expect(addShipment(runtime, "SECOND-NO")).rejects.toThrow("exists already");
  });
});

describe("trouble", () => {
  test("an entry of an unknown shipment becomes a dead letter after 5 tries, the others go on", async () => {
    const log = eventLogs()[0] ?? "";
    const poison = [999_999_999, "GLS_ITA", "key", 1, 0, event()];
    await runtime.redis.xAdd(log, "*", { e: JSON.stringify(poison) });
    await runtime.redis.xAdd(log, "*", { e: "not JSON" });
    const id = await addShipment(runtime, "HEALTHY");
    await push(url, [event({ trackingNumber: "HEALTHY" })]);
    await eventually(async () => (await shipment(id)).state.keys.length === 1, "others go on");
    const letters = await eventually(async () => {
      const found = await runtime.redis.xRange(deadLetterKey(log), "-", "+");
      return found?.length === 2 ? found : null;
    }, "both are dead letters");
    expect(letters.map(({ message }) => message["reason"]).join(" ")).toContain("no shipment");
    expect((await readLedger(runtime.redis)).applied).toBeGreaterThan(0);
  }, 300_000);

  test("a log and its group that are gone are created again", async () => {
    const id = await addShipment(runtime, "HEALED");
    await runtime.redis.del(eventLogs());
    await runtime.redis.scriptFlush();
    await push(
      url,
      Array.from({ length: 50 }, () => event({ trackingNumber: "HEALED" })),
    );
    await eventually(async () => (await shipment(id)).state.keys.length === 50, "events applied");
  });

  test("entries that all groups have acknowledged are deleted, others stay", async () => {
    await settled();
    await eventually(async () => {
      const lengths = await Promise.all(eventLogs().map((key) => runtime.redis.xLen(key)));
      return lengths.every((length) => length === 0);
    }, "the event log is empty");
    const kept = await Promise.all(changeLogs().map((key) => runtime.redis.xLen(key)));
    expect(kept.reduce((sum, length) => sum + length, 0)).toBeGreaterThan(0);
  });
});
