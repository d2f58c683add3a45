/** A shipment's history has a limit, its state has none: what happens at 1,000 facts and past them. */
import { describe, expect, test } from "bun:test";
import type { CourierEvent } from "#core/events/rules/event.ts";
import { encodeLoggedEvent } from "#core/events/store/event-log.ts";
import { seenBucket } from "#core/events/store/seen.ts";
import type { LogItem } from "#core/platform/log/consumer.ts";
import { changeLogs, companyKeys, shipmentPartition } from "#core/platform/redis/keys.ts";
import { HISTORY_LIMIT } from "#core/shipments/rules/history-limit.ts";
import { refold } from "#core/shipments/rules/refold.ts";
import { decodeChangeEntry, splitChanges } from "#core/shipments/store/change-log.ts";
import { readHistory, readHotShipments } from "#core/shipments/store/shipments.ts";
import { readLedger } from "#core/webhooks/store/deliveries/ledger.ts";
import { trackHandler } from "#processors/track/track.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { addShipment } from "#test/support/data/shipments.ts";
import { forAll } from "#test/support/for-all.ts";
import { openTestApi } from "#test/support/product/api.ts";

const api = forAll(() => openTestApi(testSetup()));

const COURIER = "GLS_ITA";
const FIRST_MS = Date.parse("2026-11-01T00:00:00Z");
let entries = 0;

function eventAt(trackingNumber: string, n: number, code = "TRN"): CourierEvent {
  return {
    eventId: `${trackingNumber}-${n}`,
    trackingNumber,
    occurredAt: new Date(FIRST_MS + n * 60_000).toISOString(),
    status: { code, description: `text ${n}` },
  };
}

function entryOf(shipmentId: number, event: CourierEvent, receivedAtMs: number): LogItem {
  entries += 1;
  const { factKey } = seenBucket(COURIER, event.eventId);
  const logged = { shipmentId, courier: COURIER, factKey, receivedAtMs, messageIndex: 0, event };
  return { key: "{e0}:log", id: `${entries}-0`, fields: { e: encodeLoggedEvent(logged) } };
}

async function apply(shipmentId: number, events: readonly CourierEvent[]): Promise<void> {
  const { redis, live, config } = api.runtime;
  const handle = trackHandler({ redis, live, eventsPerDay: config.eventsPerDay });
  const failures = await handle(
    events.map((event, at) => entryOf(shipmentId, event, live.now() + at)),
  );
  expect(failures).toEqual([]);
}

async function hot(id: number) {
  const found = (await readHotShipments(api.runtime.redis, [id])).get(id);
  if (!found) throw new Error(`no shipment ${id}`);
  return found;
}

const appliedSoFar = async () => (await readLedger(api.runtime.redis)).applied;

const detailOf = async (id: number) => {
  const token = await api.token("key_acme_main");
  return (await api.call("GET", `/v2/shipments/${id}`, { token })).body;
};

async function filled(trackingNumber: string, codes: (n: number) => string = () => "TRN") {
  const id = await addShipment(api.runtime, trackingNumber);
  const events = Array.from({ length: HISTORY_LIMIT }, (_, n) =>
    eventAt(trackingNumber, n, codes(n)),
  );
  await apply(id, events);
  return { id, events };
}

describe(`at ${HISTORY_LIMIT} facts`, () => {
  test("the whole history stands there", async () => {
    const { id, events } = await filled("AT");
    const { state, base } = await hot(id);
    const history = await readHistory(api.runtime.redis, id);
    expect(history.map(({ event }) => event)).toEqual(events);
    expect([state.keys.length, state.dropped, base]).toEqual([HISTORY_LIMIT, 0, null]);
    const body = await detailOf(id);
    expect(body.history.length).toBe(HISTORY_LIMIT);
    expect(body).not.toHaveProperty("historyOmitted");
  });
});

describe(`at ${HISTORY_LIMIT + 1} facts`, () => {
  test("the last one counts like any other, the history keeps its beginning and its end", async () => {
    const { id, events } = await filled("OVER", (n) => (n === 300 ? "HLD" : "TRN"));
    const before = await appliedSoFar();
    const last = eventAt("OVER", HISTORY_LIMIT, "DLV");
    await apply(id, [last]);
    expect((await appliedSoFar()) - before).toBe(1);
    const { state } = await hot(id);
    expect([state.pair.status, state.exceptions]).toEqual(["DELIVERED", 1]);
    const history = await readHistory(api.runtime.redis, id);
    expect(history.map(({ event }) => event)).toEqual([
      ...events.slice(0, 100),
      ...events.slice(HISTORY_LIMIT - 649),
      last,
    ]);
    expect(state.keys.length + state.dropped).toBe(HISTORY_LIMIT + 1);
    const body = await detailOf(id);
    expect([body.history[0].statusCode, body.history.length]).toEqual(["DELIVERED", 750]);
    expect(body.historyOmitted).toBe(251);
  });

  test("the change log and its analytics rows tell of every fact", async () => {
    const { id } = await filled("TOLD");
    const log = changeLogs()[shipmentPartition(id)] ?? "";
    const [newest] = (await api.runtime.redis.xRevRange(log, "+", "-", { COUNT: 1 })) ?? [];
    await apply(id, [eventAt("TOLD", HISTORY_LIMIT, "DLV")]);
    const reported = (await api.runtime.redis.xRange(log, `(${newest?.id}`, "+")) ?? [];
    expect(reported.length).toBe(1);
    const changes = splitChanges(reported[0]?.message ?? {});
    expect(changes.length).toBe(1);
    const entry = decodeChangeEntry(changes[0] ?? {});
    if (entry.type === "created") throw new Error("no change is reported");
    const { change, readRows } = entry;
    expect([change.fact.status, change.changed]).toEqual(["DELIVERED", true]);
    expect(readRows().events?.length).toBe(1);
  });

  test("an entry that is delivered again is known, also when its fact has left the history", async () => {
    const { id, events } = await filled("AGAIN", (n) => (n === 300 ? "HLD" : "TRN"));
    await apply(id, [eventAt("AGAIN", HISTORY_LIMIT, "HLD")]);
    const [before, applied] = [await hot(id), await appliedSoFar()];
    await apply(
      id,
      [events[300], events[5], events[900]].flatMap((one) => one ?? []),
    );
    expect([await hot(id), await appliedSoFar()]).toEqual([before, applied]);
    expect(before.state.exceptions).toBe(2);
  });

  test("a re-fold keeps what the facts said that have left", async () => {
    const { id } = await filled("REFOLD", (n) => ["HLD", "XYZ", "TRN"][n % 3] ?? "TRN");
    await apply(id, [eventAt("REFOLD", HISTORY_LIMIT, "OUT")]);
    const { state, base } = await hot(id);
    const history = await readHistory(api.runtime.redis, id);
    expect(refold(state, history, base).state).toEqual(state);
    expect(state.unmapped).toBe(333);
  });

  test("thousands of facts, one after the other, keep all of that true", async () => {
    const id = await addShipment(api.runtime, "MANY");
    const count = 3_100;
    for (let from = 0; from < count; from += 97) {
      const length = Math.min(97, count - from);
      const some = Array.from({ length }, (_, at) =>
        eventAt("MANY", from + at, (from + at) % 10 === 0 ? "HLD" : "TRN"),
      );
      await apply(id, some);
    }
    const { state, base } = await hot(id);
    const history = await readHistory(api.runtime.redis, id);
    expect(history.length).toBeLessThanOrEqual(HISTORY_LIMIT);
    expect(history.map(({ key }) => key).sort()).toEqual([...state.keys]);
    expect(state.keys.length + state.dropped).toBe(count);
    expect(state.exceptions).toBe(count / 10);
    expect(history.at(-1)?.event.eventId).toBe(`MANY-${count - 1}`);
    expect(refold(state, history, base).state).toEqual(state);
    const fields = await api.runtime.redis.hKeys(companyKeys(shipmentPartition(id)).shipment(id));
    expect(fields.length).toBeLessThanOrEqual(6 + Math.ceil(HISTORY_LIMIT / 32));
  });
});
