/** Invariant 10: the ledger balances. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { advanceClock } from "#core/configuration/store/live.ts";
import { encodeLoggedEvent } from "#core/events/store/event-log.ts";
import { GENERATION_DAYS, seenBucket } from "#core/events/store/seen.ts";
import { type Consumer, startConsumer } from "#core/platform/log/consumer.ts";
import { readLags } from "#core/platform/log/streams.ts";
import { deadLetterKey, eventLogs, webhookKeys } from "#core/platform/redis/keys.ts";
import type { Running } from "#core/runtime/runtime.ts";
import { readHistory } from "#core/shipments/store/shipments.ts";
import { readBalance } from "#core/webhooks/store/deliveries/ledger.ts";
import { endpointPartition } from "#core/webhooks/store/endpoints.ts";
import { startIngest } from "#ingest/main.ts";
import { trackHandler } from "#processors/track/track.ts";
import { decideHandler } from "#processors/webhooks/decide.ts";
import { event, push } from "#test/support/clients/courier.ts";
import { addShipment } from "#test/support/data/shipments.ts";
import { eventually } from "#test/support/eventually.ts";
import { openTestPanel, type TestPanel } from "#test/support/product/panel.ts";
import type { TestRuntime } from "#test/support/product/runtime.ts";
import { openWebhookRuntime } from "#test/support/product/webhooks.ts";

const ENDPOINTS = 2;
const AT_REST = { received: 0, applied: 0, webhooks: 0 };

let runtime: TestRuntime;
let panel: TestPanel;
let ingest: Running;
let url: string;
const consumers: Consumer[] = [];

beforeAll(async () => {
  runtime = await openWebhookRuntime([
    { code: "change", url: "https://m.example/change" },
    { code: "every", url: "https://m.example/every", trigger: "every_event" },
  ]);
  panel = await openTestPanel(runtime);
  ingest = await startIngest(runtime);
  url = ingest.url ?? "";
  const { redis, log, live, config } = runtime;
  const common = { redis, log, batch: 100 } as const;
  const track = trackHandler({ redis, live, eventsPerDay: config.eventsPerDay });
  consumers.push(
    startConsumer({ ...common, source: "event", group: "track", handler: track }),
    startConsumer({
      ...common,
      source: "change",
      group: "webhooks",
      handler: decideHandler({ redis, live }),
    }),
  );
});

afterAll(async () => {
  for (const consumer of consumers) await consumer.stop();
  await ingest.stop();
  await panel.end();
  await runtime.end();
});

async function atRest() {
  await eventually(async () => {
    const lags = await readLags(runtime.redis);
    return lags.every(
      ({ group, entries }) => !["track", "webhooks"].includes(group) || entries === 0,
    );
  }, "all is applied and decided");
  return readBalance(runtime.redis, runtime.live.configuration());
}

const status = (code: string) => ({ code, description: code });

test("received = accepted + duplicate + unknown + invalid, by courier and in all", async () => {
  await addShipment(runtime, "BOOKS");
  const one = event({ trackingNumber: "BOOKS" });
  await push(url, [one, one, event({ trackingNumber: "NOBODY" }), { eventId: "bad" }]);
  await push(url, [one, event({ trackingNumber: "BOOKS", status: status("XYZ") })]);
  await push(url, [event({ trackingNumber: "NOBODY" })], {
    token: "tok_brt_1",
    courier: "BRT_ITA",
  });
  const balance = await atRest();
  expect(balance.couriers).toEqual([
    { courier: "BRT_ITA", received: 1, accepted: 0, duplicate: 0, unknown: 1, invalid: 0 },
    { courier: "GLS_ITA", received: 6, accepted: 2, duplicate: 2, unknown: 1, invalid: 1 },
  ]);
  expect(balance).toMatchObject({ received: 7, accepted: 2, duplicate: 2, unknown: 2, invalid: 1 });
  expect(balance.difference).toEqual(AT_REST);
});

test("applied x endpoints = delivered + not sent, with reason, + pending + failed", async () => {
  const { applied, sent, notSent, pending, delivered, failed } = await atRest();
  const reasons = Object.values(notSent).reduce((sum, count) => sum + count, 0);
  expect([applied, sent, notSent.unmapped]).toEqual([2, 2, 2]);
  expect(applied * ENDPOINTS).toBe(delivered + reasons + pending + failed);
});

test("what was parked and applied later is counted apart", async () => {
  await push(url, [event({ trackingNumber: "LATER", occurredAt: "2026-11-10T08:00:00Z" })]);
  await addShipment(runtime, "LATER");
  const before = await atRest();
  await push(url, [event({ trackingNumber: "LATER" })]);
  const balance = await atRest();
  expect([balance.applied - before.applied, balance.released - before.released]).toEqual([1, 1]);
  expect(balance.difference).toEqual(AT_REST);
});

test("an event that is accepted in full after its parked copy was applied takes its place", async () => {
  const full = event({ trackingNumber: "RACED", delivery: { signedBy: "Mario Rossi" } });
  await push(url, [full]);
  const id = await addShipment(runtime, "RACED");
  const before = await atRest();
  await push(url, [event({ trackingNumber: "RACED", occurredAt: "2026-11-10T08:00:00Z" })]);
  await atRest();
  // Accepted before the release took its id, and read from the log after it.
  const seen = seenBucket("GLS_ITA", full.eventId);
  const logged = {
    shipmentId: id,
    courier: "GLS_ITA",
    receivedAtMs: 1,
    messageIndex: 0,
    event: full,
  };
  const entry = encodeLoggedEvent({ ...logged, factKey: seen.factKey });
  await runtime.redis.hIncrBy("{e0}:ledger", "received:GLS_ITA", 1);
  await runtime.redis.hIncrBy("{e0}:ledger", "accepted:GLS_ITA", 1);
  for (let twice = 0; twice < 2; twice += 1) {
    await runtime.redis.xAdd(eventLogs()[0] ?? "", "*", { e: entry });
    const balance = await atRest();
    expect([balance.applied - before.applied, balance.released - before.released]).toEqual([2, 0]);
    expect(balance.difference).toEqual(AT_REST);
  }
  const history = await readHistory(runtime.redis, id);
  expect(history.length).toBe(2);
  expect(history.find(({ key }) => key === seen.factKey)?.event).toEqual(full);
});

test("a dead letter of track is waiting, and no longer once it is driven again", async () => {
  const before = await atRest();
  const id = await addShipment(runtime, "DEAD");
  const one = event({ trackingNumber: "DEAD" });
  const { factKey } = seenBucket("GLS_ITA", one.eventId);
  const logged = { shipmentId: id, courier: "GLS_ITA", factKey, receivedAtMs: 1, messageIndex: 0 };
  const log = eventLogs()[0] ?? "";
  await runtime.redis.hIncrBy("{e0}:ledger", "received:GLS_ITA", 1);
  await runtime.redis.hIncrBy("{e0}:ledger", "accepted:GLS_ITA", 1);
  const letter = await runtime.redis.xAdd(deadLetterKey(log), "*", {
    log,
    group: "track",
    id: "1-1",
    reason: "a bug",
    entry: JSON.stringify({ e: encodeLoggedEvent({ ...logged, event: one }) }),
  });
  const parked = await atRest();
  expect([parked.waiting, parked.difference]).toEqual([1, AT_REST]);
  const redriven = await panel.call("POST", `/panel/api/dead-letters/e0-${letter}/redrive`);
  expect(redriven.status).toBe(200);
  await eventually(async () => (await readHistory(runtime.redis, id)).length === 1, "applied");
  const after = await eventually(async () => {
    const balance = await atRest();
    return balance.waiting === 0 ? balance : null;
  }, "nothing waits");
  expect([after.applied - before.applied, after.difference]).toEqual([1, AT_REST]);
});

test("the overview and /metrics tell the ledger", async () => {
  const balance = await atRest();
  const { body } = await panel.call("GET", "/panel/api/overview");
  expect(body.ledger).toEqual(JSON.parse(JSON.stringify(balance)));
  const metrics = await (await fetch(`${url}/metrics`)).text();
  expect(metrics).toContain(`waybill_ledger{entry="received"} ${balance.received}`);
  expect(metrics).toContain(
    `waybill_ledger{entry="not_sent_unmapped"} ${balance.notSent.unmapped}`,
  );
});

test("a replay past the memory of ids is accepted again, changes nothing, and the ledger stays at zero", async () => {
  const id = await addShipment(runtime, "REPLAY");
  const sent = [
    event({ trackingNumber: "REPLAY" }),
    event({ trackingNumber: "REPLAY", occurredAt: "2026-11-11T08:00:00Z" }),
  ];
  await push(url, sent);
  const before = await atRest();
  const history = await readHistory(runtime.redis, id);
  await advanceClock(runtime.redis, (3 * GENERATION_DAYS + 1) * 86_400);
  await runtime.live.refresh();
  for (const times of [1, 2]) {
    const { body } = await push(url, sent);
    expect(body.accepted).toBe(times === 1 ? 2 : 0);
  }
  const after = await atRest();
  expect([after.accepted - before.accepted, after.duplicate - before.duplicate]).toEqual([2, 2]);
  expect([after.applied - before.applied, after.difference]).toEqual([2, AT_REST]);
  expect([after.sent, after.notSent]).toEqual([before.sent, before.notSent]);
  // The same entry once more, as after a crash: it has been counted.
  const [first = sent[0]] = sent;
  const { factKey } = seenBucket("GLS_ITA", first?.eventId ?? "");
  const now = await readHistory(runtime.redis, id);
  expect(now.map(({ againMs: _, ...fact }) => fact)).toEqual(history);
  const receivedAtMs = now.find(({ key }) => key === factKey)?.againMs ?? 0;
  expect(receivedAtMs).toBeGreaterThan(0);
  if (!first) throw new Error("no event");
  const logged = {
    shipmentId: id,
    courier: "GLS_ITA",
    factKey,
    receivedAtMs,
    messageIndex: 0,
    event: first,
  };
  const track = trackHandler({
    redis: runtime.redis,
    live: runtime.live,
    eventsPerDay: runtime.config.eventsPerDay,
  });
  const entry = { key: eventLogs()[0] ?? "", id: "1-1", fields: { e: encodeLoggedEvent(logged) } };
  expect(await track([entry])).toEqual([]);
  expect((await atRest()).applied).toBe(after.applied);
});

test("what moves while the ledger is read is no difference", async () => {
  await addShipment(runtime, "MOVES");
  let isOver = false;
  const sending = (async () => {
    while (!isOver) {
      const events = Array.from({ length: 5 }, () => event({ trackingNumber: "MOVES" }));
      expect((await push(url, events)).status).toBe(200);
    }
  })();
  const sent: number[] = [];
  while (sent.length < 100 || new Set(sent).size <= 10) {
    const balance = await readBalance(runtime.redis, runtime.live.configuration());
    sent.push(balance.sent);
    expect(balance.difference.webhooks).toBe(0);
  }
  isOver = true;
  await sending;
  expect((await atRest()).difference).toEqual(AT_REST);
});

/** Moves all that stands in one of two keys to the other: first attempts (list) and leases (sorted set). */
const LEASE_OR_RETURN = `
  local waiting = redis.call('LRANGE', KEYS[1], 0, -1)
  local leased = redis.call('ZRANGE', KEYS[2], 0, -1)
  redis.call('DEL', KEYS[1], KEYS[2])
  for _, one in ipairs(waiting) do redis.call('ZADD', KEYS[2], 1, one) end
  for _, one in ipairs(leased) do redis.call('RPUSH', KEYS[1], one) end`;

test("a delivery that moves between its queue and a lease while the ledger is read counts as pending once", async () => {
  const { redis, live } = runtime;
  const { pending } = await readBalance(redis, live.configuration());
  const [endpointId = ""] = live.configuration().endpoints.keys();
  const { queue, leases } = webhookKeys(endpointPartition(live.configuration(), endpointId) ?? 0);
  expect(await redis.lLen(queue(endpointId))).toBeGreaterThan(0);
  let isOver = false;
  const moving = (async () => {
    let moves = 0;
    for (; !isOver || moves % 2 === 1; moves += 1) {
      await redis.eval(LEASE_OR_RETURN, { keys: [queue(endpointId), leases] });
    }
  })();
  const read: number[] = [];
  for (let times = 0; times < 50; times += 1) {
    read.push((await readBalance(redis, live.configuration())).pending);
  }
  isOver = true;
  await moving;
  expect([...new Set(read)]).toEqual([pending]);
});
