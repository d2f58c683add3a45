/** `GET /panel/api/events`: what became of an event or a message, whatever its outcome (document 2, "first-day comparison"). */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import pino from "pino";
import { advanceClock } from "#core/configuration/store/live.ts";
import { keepInInbox, readInbox } from "#core/events/store/courier-inbox.ts";
import {
  DUPLICATES_BYTES,
  findOutcomes,
  outcomeKeeper,
  TEXT_BYTES,
} from "#core/events/store/event-outcomes.ts";
import type { Running } from "#core/runtime/runtime.ts";
import { readHistory } from "#core/shipments/store/shipments.ts";
import { startIngest } from "#ingest/main.ts";
import { EVENTS_PER_ANSWER } from "#panel/server/shipments/events.ts";
import { event, push, pushBytes } from "#test/support/clients/courier.ts";
import { makeAccount } from "#test/support/data/accounts.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { addShipment } from "#test/support/data/shipments.ts";
import { eventually } from "#test/support/eventually.ts";
import { openTestAnalytics, type TestAnalytics } from "#test/support/product/analytics.ts";
import { openTestPanel } from "#test/support/product/panel.ts";
import { openTestRuntime } from "#test/support/product/runtime.ts";

interface Item {
  readonly messageId: string | null;
  readonly eventId: string | null;
  readonly place: number;
  readonly outcome: string;
  readonly reasons: readonly string[];
  readonly shipmentIds: readonly number[];
}

let product: TestAnalytics;
/** Another ingest process, with a log that is read. */
let logging: Running;
const logged: string[] = [];

beforeAll(async () => {
  product = await openTestAnalytics(testSetup());
  const log = pino({ level: "info" }, { write: (line) => void logged.push(line) });
  logging = await startIngest({ ...product.runtime, log });
});
afterAll(async () => {
  await logging?.stop();
  await product?.end();
});

let messages = 0;

async function send(events: readonly unknown[], messageId = "") {
  messages += 1;
  const id = messageId || `lookup-${messages}-${crypto.randomUUID()}`;
  const { body } = await push(product.ingest, events, { envelope: { messageId: id } });
  return { messageId: id, results: body.results };
}

async function find(query: Readonly<Record<string, string>>) {
  const text = new URLSearchParams({ courier: "GLS_ITA", ...query }).toString();
  const { status, body } = await product.call("GET", `/panel/api/events?${text}`);
  expect(status).toBe(200);
  return body as {
    items: Item[];
    nextCursor: string | null;
    isKnown: boolean | null;
    isComplete: boolean;
  };
}

/** Once there are so many: refused events are kept, and accepted ones applied, behind the answer. */
function found(query: Readonly<Record<string, string>>, count: number) {
  return eventually(
    async () => {
      const answer = await find(query);
      return answer.items.length >= count ? answer : null;
    },
    `${count} events of ${JSON.stringify(query)}`,
  );
}

const brief = ({ eventId, outcome, reasons }: Item) => [eventId, outcome, ...reasons].join(" ");

interface InboxItem {
  readonly receivedAt: string;
  readonly eventId: string | null;
  readonly trackingNumber: string | null;
  readonly outcome: string;
  readonly errors: readonly { readonly code: string; readonly path: string }[];
  readonly event: unknown;
}

async function inbox(query: string, courier = "GLS_ITA") {
  const path = `/panel/api/couriers/${courier}/events?${query}`;
  const { status, body } = await product.call("GET", path);
  expect(status).toBe(200);
  return body as { readonly items: readonly InboxItem[]; readonly nextCursor: string | null };
}

describe("a courier's inbox", () => {
  test("has what was refused, unknown and a duplicate, newest first, as it was sent", async () => {
    await addShipment(product.runtime, "INBOX-1");
    const ok = event({ trackingNumber: "INBOX-1" });
    const unknown = event({ trackingNumber: "INBOX-NOBODY" });
    const invalid = {
      ...event({ trackingNumber: "INBOX-1" }),
      delivery: { podUrl: "Mario Rossi", attemptNumber: 2 },
      phone: "333 1234567",
    };
    const { messageId } = await send([ok, unknown, ok, invalid]);
    const mine = () =>
      inbox("").then(({ items }) =>
        items.filter((one) => "messageId" in one && one.messageId === messageId),
      );
    const items = await eventually(async () => {
      const found = await mine();
      return found.length === 3 ? found : null;
    }, "the inbox has them");
    expect(items.map(({ outcome, eventId }) => [outcome, eventId])).toEqual([
      ["INVALID", invalid.eventId],
      ["DUPLICATE", ok.eventId],
      ["UNKNOWN_TRACKING", unknown.eventId],
    ]);
    expect(items[0]?.errors).toContainEqual(
      expect.objectContaining({ code: "BAD_FORMAT", path: "delivery" }),
    );
    expect(items[0]?.event).toMatchObject({
      trackingNumber: "INBOX-1",
      delivery: { podUrl: "(not kept)", attemptNumber: 2 },
      phone: "(not kept)",
    });
    expect(JSON.stringify(items)).not.toContain("Mario");
    expect(items[2]).toMatchObject({ trackingNumber: "INBOX-NOBODY", event: unknown });
  });

  test("is filtered, comes in pages, and is its courier's alone", async () => {
    const page = await inbox("limit=1");
    const next = await inbox(`limit=1&cursor=${page.nextCursor}`);
    expect(next.items[0]?.receivedAt).not.toBeUndefined();
    expect(next.items[0]).not.toEqual(page.items[0]);
    const unknown = await inbox("outcome=UNKNOWN_TRACKING");
    expect(new Set(unknown.items.map(({ outcome }) => outcome))).toEqual(
      new Set(["UNKNOWN_TRACKING"]),
    );
    expect((await inbox("from=2099-01-01T00:00:00Z")).items).toEqual([]);
    expect((await inbox("", "BRT_ITA")).items).toEqual([]);
    const owner = await makeAccount(product.runtime, "courier", "owner", {
      courierCode: "BRT_ITA",
    });
    const ask = (code: string) =>
      fetch(`${product.panel}/panel/api/couriers/${code}/events`, {
        headers: { cookie: owner.cookie },
      });
    expect((await ask("BRT_ITA")).status).toBe(200);
    expect((await ask("GLS_ITA")).status).toBe(404);
    const wrong = await product.call("GET", "/panel/api/couriers/GLS_ITA/events?outcome=ACCEPTED");
    expect(wrong.status).toBe(422);
  });

  test("keeps its latest events, and of one message so many", async () => {
    const { redis, live } = product.runtime;
    const message = (name: string, count: number) => ({
      courier: "RING",
      messageId: name,
      receivedAtMs: live.now(),
      outcomes: Array.from({ length: count }, (_, messageIndex) => {
        return { eventId: name, messageIndex, outcome: "INVALID", reasons: [], event: {} } as const;
      }),
    });
    const read = () => readInbox(redis, "RING", ["INVALID"], live.now());
    await keepInInbox(redis, message("first", 101));
    expect((await read()).length).toBe(100);
    for (let at = 0; at < 10; at += 1) await keepInInbox(redis, message(`later-${at}`, 100));
    const kept = await read();
    expect([kept.length, kept.some(({ messageId }) => messageId === "first")]).toEqual([
      1_000,
      false,
    ]);
  });
});

describe("a message", () => {
  test("is found with every event's outcome and reason, in send order", async () => {
    const id = await addShipment(product.runtime, "FIND-1", { orderReference: "O-1" });
    const ok = event({ trackingNumber: "FIND-1" });
    const unknown = event({ trackingNumber: "FIND-NOBODY" });
    const mismatch = event({ trackingNumber: "FIND-1", externalId: "O-2", senderAccount: "ACC-1" });
    const invalid = { ...event({ trackingNumber: "FIND-1" }), delivery: { podUrl: "Mario Rossi" } };
    const { messageId, results } = await send([ok, unknown, ok, mismatch, invalid, { x: 1 }]);
    const { items, nextCursor, isKnown, isComplete } = await found({ messageId }, 6);
    expect(items.map(({ outcome }) => outcome)).toEqual(
      results.map(({ outcome }: { outcome: string }) => outcome),
    );
    expect(items.map(brief)).toEqual([
      `${ok.eventId} ACCEPTED`,
      `${unknown.eventId} UNKNOWN_TRACKING not_tracked`,
      `${ok.eventId} DUPLICATE`,
      `${mismatch.eventId} UNKNOWN_TRACKING mismatch`,
      `${invalid.eventId} INVALID BAD_FORMAT delivery`,
      expect.stringMatching(/^ INVALID REQUIRED eventId/),
    ]);
    expect(items.map(({ place }) => place)).toEqual([0, 1, 2, 3, 4, 5]);
    expect(items[0]?.shipmentIds).toEqual([id]);
    expect([nextCursor, isKnown, isComplete]).toEqual([null, null, true]);
    expect(JSON.stringify(items)).not.toContain("Mario");
  });

  test("an accepted event and its message lead to the shipment in the panel's search box", async () => {
    const id = await addShipment(product.runtime, "FIND-BOX");
    const accepted = event({ trackingNumber: "FIND-BOX" });
    const { messageId } = await send([accepted]);
    await found({ messageId }, 1);
    for (const [q, matched] of [
      [accepted.eventId, "eventId"],
      [messageId, "messageId"],
    ] as const) {
      const path = `/panel/api/shipments?q=${encodeURIComponent(q)}`;
      const { body } = await product.call("GET", path);
      expect(body).toMatchObject({ matched, items: [{ id, trackingNumber: "FIND-BOX" }] });
    }
  });

  test("an ambiguous event tells so", async () => {
    for (const number of ["FIND-A", "FIND-B"]) {
      await addShipment(product.runtime, number, { orderReference: "O-TWO" });
    }
    const { trackingNumber: _, ...rest } = event();
    const ambiguous = { ...rest, externalId: "O-TWO", senderAccount: "ACC-1" };
    const { messageId } = await send([ambiguous]);
    const { items } = await found({ messageId }, 1);
    expect(items.map(brief)).toEqual([`${rest.eventId} UNKNOWN_TRACKING ambiguous`]);
  });

  test("an event that cannot be read is found by its id too", async () => {
    const bad = event();
    const text = JSON.stringify(bad).replace(/\}$/, ',"attributes":{"a":"1","a":"2"}}');
    const envelope = `{"schemaVersion":"1.0","messageId":"unreadable-1","sentAt":"2026-11-20T10:00:00+01:00","courier":"GLS_ITA","events":[${text}]}`;
    await pushBytes(product.ingest, Buffer.from(envelope));
    const { items } = await found({ eventId: bad.eventId }, 1);
    expect([items[0]?.messageId, items.map(brief)]).toEqual([
      "unreadable-1",
      [`${bad.eventId} INVALID BAD_FORMAT attributes`],
    ]);
  });

  test("of more events than an answer has is reported in pages, each event once", async () => {
    await addShipment(product.runtime, "FIND-PAGES");
    const events = Array.from({ length: 250 }, (_, at) =>
      event({ trackingNumber: at % 2 === 0 ? "FIND-PAGES" : "FIND-NOBODY" }),
    );
    const { messageId } = await send(events);
    await product.settled();
    const pages = await eventually(async () => {
      const all: Item[][] = [];
      let cursor: string | null = "";
      while (cursor !== null) {
        const page = await find({ messageId, ...(cursor !== "" && { cursor }) });
        all.push(page.items);
        cursor = page.nextCursor;
      }
      return all.flat().length === events.length && all;
    }, "all events are found");
    expect(pages.map(({ length }) => length)).toEqual([EVENTS_PER_ANSWER, EVENTS_PER_ANSWER, 50]);
    expect(pages.flat().map(({ eventId }) => eventId)).toEqual(
      events.map(({ eventId }) => eventId),
    );
  });
});

describe("an event", () => {
  test("is found with every message that brought it, and whether its id is known", async () => {
    await addShipment(product.runtime, "FIND-2");
    const one = event({ trackingNumber: "FIND-LATER" });
    const first = await send([one]);
    const known = event({ trackingNumber: "FIND-2" });
    const [second, third] = [await send([known]), await send([known])];
    const unknown = await found({ eventId: one.eventId }, 1);
    expect([unknown.isKnown, unknown.items.map(({ messageId }) => messageId)]).toEqual([
      false,
      [first.messageId],
    ]);
    const both = await found({ eventId: known.eventId }, 2);
    expect(both.isKnown).toBe(true);
    expect(both.items.map(({ messageId, outcome }) => `${messageId} ${outcome}`)).toEqual([
      `${second.messageId} ACCEPTED`,
      `${third.messageId} DUPLICATE`,
    ]);
    const narrowed = await found({ eventId: known.eventId, messageId: third.messageId }, 1);
    expect(narrowed.items.map(({ outcome }) => outcome)).toEqual(["DUPLICATE"]);
  });

  test("that was parked tells when it is released", async () => {
    const one = event({ trackingNumber: "FIND-RELEASED", occurredAt: "2026-11-10T08:00:00Z" });
    await send([one]);
    const id = await addShipment(product.runtime, "FIND-RELEASED");
    await send([event({ trackingNumber: "FIND-RELEASED" })]);
    const { items } = await found({ eventId: one.eventId }, 2);
    expect(items.map(brief).sort()).toEqual([
      `${one.eventId} UNKNOWN_TRACKING not_tracked`,
      `${one.eventId} UNKNOWN_TRACKING released`,
    ]);
    expect(items.flatMap(({ shipmentIds }) => shipmentIds)).toEqual([id]);
  });

  test("of another courier is not found", async () => {
    const one = event({ trackingNumber: "FIND-NOBODY" });
    const { messageId } = await send([one]);
    await found({ messageId }, 1);
    const other = { courier: "BRT_ITA", eventId: one.eventId };
    expect((await find(other)).items).toEqual([]);
    expect((await find({ courier: "BRT_ITA", messageId })).items).toEqual([]);
  });
});

test("messageId stands in the log line of the message, in the history, the trace and the analytics", async () => {
  const id = await addShipment(product.runtime, "FIND-KEPT");
  const one = event({ trackingNumber: "FIND-KEPT" });
  const messageId = "kept-message-1";
  await push(logging.url ?? "", [one, one], { envelope: { messageId } });
  await product.settled();
  const line = logged
    .map((text) => JSON.parse(text))
    .find((entry) => entry.messageId === messageId);
  expect(line).toMatchObject({ courier: "GLS_ITA", ACCEPTED: 1, DUPLICATE: 1, INVALID: 0 });
  const [fact] = await readHistory(product.runtime.redis, id);
  expect(fact?.messageId).toBe(messageId);
  const { body } = await product.call("GET", `/panel/api/shipments/${id}/trace`);
  expect(body.events[0].messageId).toBe(messageId);
  const rows = await product.sql(`SELECT message_id FROM events WHERE shipment_id = ${id}`);
  expect(rows).toEqual([{ message_id: messageId }]);
});

test("courier and one of the ids are needed, and a cursor that was given", async () => {
  for (const query of [
    "",
    "courier=GLS_ITA",
    "eventId=x",
    "courier=GLS_ITA&eventId=",
    `courier=GLS_ITA&eventId=${"x".repeat(300)}`,
    "courier=GLS_ITA&eventId=x&cursor=nonsense",
  ]) {
    const { status, body } = await product.call("GET", `/panel/api/events?${query}`);
    expect([query, status, body.code]).toEqual([query, 422, "INVALID_QUERY"]);
  }
});

test("a courier that does not exist is 404, not an event that never came", async () => {
  const path = "/panel/api/events?courier=GLS_IT&eventId=x";
  const { status, body } = await product.call("GET", path);
  expect([status, body.code]).toEqual([404, "COURIER_NOT_FOUND"]);
});

describe("what is kept in Redis", () => {
  test("a Redis that is gone fails each of its commands, and no failure is left unhandled, which would end the process", async () => {
    const runtime = await openTestRuntime(testSetup());
    const keep = outcomeKeeper(runtime.redis);
    const receivedAtMs = runtime.live.now();
    await runtime.end();
    const unhandled: unknown[] = [];
    const note = (error: unknown) => void unhandled.push(error);
    process.on("unhandledRejection", note);
    const outcomes = [
      { eventId: "e", messageIndex: 0, outcome: "INVALID", reasons: [], event: {} },
    ] as const;
    const kept = keep({ courier: "GLS_ITA", messageId: "gone", receivedAtMs, outcomes });
    expect(await kept.catch((error: unknown) => error)).toBeInstanceOf(Error);
    // Rejections are reported as unhandled once the turn is over.
    await new Promise((resolve) => setImmediate(resolve));
    process.off("unhandledRejection", note);
    expect(unhandled).toEqual([]);
  });

  test("is bounded: a text takes up to 64 KiB, resends half of it, and what is left out is reported", async () => {
    const runtime = await openTestRuntime(testSetup());
    const keep = outcomeKeeper(runtime.redis);
    const nowMs = runtime.live.now();
    const lines = async (outcome: "DUPLICATE" | "INVALID", count: number) => {
      const outcomes = Array.from({ length: count }, (_, messageIndex) => ({
        eventId: null,
        messageIndex,
        outcome,
        reasons: [],
        event: {},
      }));
      return keep({ courier: "GLS_ITA", messageId: "bounded", receivedAtMs: nowMs, outcomes });
    };
    const query = { courier: "GLS_ITA", eventId: null, messageId: "bounded" };
    const size = async () => {
      const [key = ""] = await runtime.redis.keys("*:om:*");
      return runtime.redis.strLen(key);
    };
    const left = await lines("DUPLICATE", 5_000);
    const kept = (await findOutcomes(runtime.redis, query, nowMs)).length;
    expect(left + kept).toBe(5_000);
    expect(await lines("DUPLICATE", 100)).toBeGreaterThan(95);
    expect(await size()).toBeLessThanOrEqual(DUPLICATES_BYTES);
    expect(await lines("INVALID", 5_000)).toBeGreaterThan(0);
    expect(await size()).toBeLessThanOrEqual(TEXT_BYTES);
    expect(await size()).toBeGreaterThan(TEXT_BYTES - 100);
    const [key = ""] = await runtime.redis.keys("*:om:*");
    expect(await runtime.redis.ttl(key)).toBeGreaterThan(7 * 86_400);
    await runtime.end();
  });

  test("is reported for 7 days", async () => {
    const runtime = await openTestRuntime(testSetup());
    const ingest = await startIngest(runtime);
    const panel = await openTestPanel(runtime);
    const one = event({ trackingNumber: "FIND-NOBODY" });
    await push(ingest.url ?? "", [one]);
    const path = `/panel/api/events?courier=GLS_ITA&eventId=${one.eventId}`;
    const shown = async () => (await panel.call("GET", path)).body;
    await eventually(async () => (await shown()).items.length === 1, "the event is found");
    // Without its analytics the panel tells that accepted events may be missing.
    expect((await shown()).isComplete).toBe(false);
    await advanceClock(runtime.redis, 7 * 86_400 - 60);
    await runtime.live.refresh();
    expect((await shown()).items.length).toBe(1);
    await advanceClock(runtime.redis, 61);
    await runtime.live.refresh();
    expect((await shown()).items).toEqual([]);
    await panel.end();
    await ingest.stop();
    await runtime.end();
  });
});
