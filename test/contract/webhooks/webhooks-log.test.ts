/** setup-file.md, The panel's HTTP API: delivery log, replays, statistics. Document 3, Delivery, Limits. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { quantileOf } from "#core/benchmarks/rules/latency-buckets.ts";
import { readNotifications } from "#core/merchants/store/notifications.ts";
import { companyPartition, webhookKeys } from "#core/platform/redis/keys.ts";
import { romeDateTime } from "#core/platform/time/rome-time.ts";
import type { Running } from "#core/runtime/runtime.ts";
import { START_CONCURRENCY } from "#core/webhooks/rules/concurrency.ts";
import {
  latestReplays,
  REPLAYS_LISTED,
  readReplay,
  startReplay,
  stepReplay,
} from "#core/webhooks/store/deliveries/replays.ts";
import { readMoment } from "#core/webhooks/store/shipment-moment.ts";
import { startWebhooks } from "#processors/webhooks/start.ts";
import { addShipment } from "#test/support/data/shipments.ts";
import { eventually } from "#test/support/eventually.ts";
import { forAll } from "#test/support/for-all.ts";
import { openTestPanel, type TestPanel } from "#test/support/product/panel.ts";
import type { TestRuntime } from "#test/support/product/runtime.ts";
import {
  applyEvents,
  beginHour,
  endpointOf,
  openWebhookRuntime,
  passTime,
  STATUS,
} from "#test/support/product/webhooks.ts";
import { startReceiver } from "#test/support/servers/receiver.ts";

let runtime: TestRuntime;
let panel: TestPanel;
let webhooks: Running;
let shipments = 0;

interface Item {
  readonly deliveryId: string;
  readonly eventId: string;
  readonly shipmentId: number;
  readonly state: string;
  readonly generation: number;
  readonly createdAt: string;
  readonly attempts: readonly Record<string, unknown>[];
}

const receiver = forAll(startReceiver);

beforeEach(async () => {
  receiver.requests.length = 0;
  receiver.behave(200);
});

/** A runtime of its own for each group, so that logs hold only what the group has made. */
function useRuntime() {
  beforeAll(async () => {
    runtime = await openWebhookRuntime([{ url: receiver.url, trigger: "every_event" }]);
    panel = await openTestPanel(runtime);
    webhooks = await startWebhooks(runtime);
  });
  afterAll(async () => {
    await webhooks.stop();
    await panel.end();
    await runtime.end();
  });
}

const id = () => endpointOf(runtime, "main").id;
const get = async (query = "") =>
  (await panel.call("GET", `/panel/api/webhooks/${id()}/deliveries${query}`)).body;
const items = async (query = ""): Promise<Item[]> => (await get(query)).items;

/** So many events of a new shipment; settles once each has its first attempt recorded. */
async function deliver(events: number, orderReference?: string): Promise<string> {
  shipments += 1;
  const trackingNumber = `LOG-${shipments}`;
  const shipmentId = await addShipment(runtime, trackingNumber, {
    ...(orderReference !== undefined && { orderReference }),
  });
  for (let n = 0; n < events; n += 1) {
    const occurredAt = new Date(Date.UTC(2026, 10, 10, 8, n)).toISOString();
    await applyEvents(runtime, shipmentId, [{ status: STATUS.inTransit, occurredAt }]);
    await eventually(async () => {
      const own = await items(`?trackingNumber=${trackingNumber}`);
      return own.length === n + 1 && own.every(({ attempts }) => attempts.length > 0);
    }, "the event has its first attempt");
    // Which of two is the newer needs two moments.
    await passTime(runtime, 1);
  }
  return trackingNumber;
}

/** An endpoint that fails would be disabled after three days. */
async function work(): Promise<void> {
  receiver.behave(200);
  await deliver(1);
}

describe("the delivery log", () => {
  useRuntime();
  let first: string;
  let second: string;
  let secondAt: string;

  beforeAll(async () => {
    // What follows belongs to one hour, and what comes after it to the next.
    await beginHour(runtime);
    first = await deliver(3, "ORDER-1");
    await passTime(runtime, 3_600);
    secondAt = new Date(runtime.live.now()).toISOString();
    const headers = { "X-Reason": "unknown sender", "Set-Cookie": "session=of-the-receiver" };
    receiver.behave((_, response) => void response.writeHead(400, headers).end("who are you?"));
    second = await deliver(2, "ORDER-2");
    receiver.behave(503);
    await deliver(1);
  });

  test("an entry tells its attempts with times, answers and snippets", async () => {
    const [item] = await items(`?trackingNumber=${second}`);
    const one = await panel.call("GET", `/panel/api/deliveries/${item?.deliveryId}`);
    expect(one.body).toMatchObject(item ?? {});
    expect(item).toMatchObject({
      deliveryId: expect.stringMatching(/^dlv_/),
      eventId: expect.stringMatching(/^evt_/),
      endpointId: id(),
      state: "failed",
      reason: "status 400",
      nextAttemptAt: null,
      generation: 1,
      attempts: [
        {
          attempt: 1,
          httpStatus: 400,
          durationMs: expect.any(Number),
          error: "status 400",
          responseSnippet: "who are you?",
          responseHeaders: expect.objectContaining({
            "X-Reason": "unknown sender",
            "Set-Cookie": "***",
          }),
          at: expect.stringMatching(/^\d{4}-.*Z$/),
        },
      ],
    });
  });

  test("says what was missed, and the merchants' call that tells the same", async () => {
    const missed = async (query = "") =>
      (await panel.call("GET", `/panel/api/webhooks/${id()}/missed${query}`)).body;
    const failed = await items("?state=failed");
    const found = await missed();
    expect(found).toMatchObject({
      deliveries: failed.length,
      shipments: 1,
      shipmentsBehind: 1,
      isComplete: true,
    });
    expect(found.from).toBe(failed.at(-1)?.createdAt);
    expect(found.to).toBe(failed[0]?.createdAt);
    const asked = new URLSearchParams(found.pullCall.split("?")[1]);
    expect(found.pullCall).toStartWith("GET /v2/shipments?");
    const changedMs = Date.parse(found.from) - 60_000;
    expect(asked.get("updatedAfter")).toBe(romeDateTime(changedMs));
    const later = new Date(Date.parse(found.to) + 1).toISOString();
    expect(await missed(`?since=${later}`)).toMatchObject({ deliveries: 0, pullCall: null });
    expect((await panel.call("GET", `/panel/api/webhooks/${id()}/missed?since=x`)).status).toBe(
      422,
    );
  });

  test("by state", async () => {
    const states = async (state: string) => (await items(`?state=${state}`)).length;
    expect(await Promise.all(["delivered", "failed", "waiting", "queued"].map(states))).toEqual([
      3, 2, 1, 0,
    ]);
    const [waiting] = await items("?state=waiting");
    expect(waiting).toHaveProperty("nextAttemptAt", expect.stringMatching(/Z$/));
  });

  test("by time, newest first; an unescaped plus is understood", async () => {
    expect(await items(`?from=${secondAt}`)).toHaveLength(3);
    expect(await items(`?to=${secondAt}`)).toHaveLength(3);
    const inRome = new Date(Date.parse(secondAt) + 3_600_000).toISOString().replace("Z", "+01:00");
    expect(await items(`?from=${inRome}`)).toHaveLength(3);
    expect(await items(`?from=${inRome.replace("+01:00", "+01")}`)).toHaveLength(3);
    const times = (await items()).map(({ createdAt }) => createdAt);
    expect(times).toEqual([...times].sort().reverse());
  });

  test("by tracking number, order reference and event id, together with the others", async () => {
    const [one] = await items(`?trackingNumber=${first}`);
    expect(await items("?orderReference=ORDER-1")).toHaveLength(3);
    expect(await items(`?eventId=${one?.eventId}`)).toEqual(one ? [one] : []);
    for (const q of [one?.eventId, one?.deliveryId]) {
      const { body } = await panel.call("GET", `/panel/api/shipments?q=${q}`);
      expect(body.items).toHaveLength(1);
    }
    expect(await items(`?orderReference=ORDER-2&eventId=${one?.eventId}`)).toEqual([]);
    expect(await items(`?orderReference=ORDER-1&trackingNumber=${second}`)).toEqual([]);
    expect(await items(`?trackingNumber=${second}&state=delivered`)).toEqual([]);
    expect(await items("?trackingNumber=unknown")).toEqual([]);
  });

  test.each(["", "&state=delivered", "&orderReference=ORDER-1"])(
    "pages with a cursor show each delivery once%s",
    async (filter) => {
      const all = await items(`?limit=200${filter}`);
      const seen: Item[] = [];
      let cursor: string | null = "";
      while (cursor !== null) {
        const from: string = cursor === "" ? "" : `&cursor=${cursor}`;
        const page: { items: Item[]; nextCursor: string | null } = await get(
          `?limit=1${filter}${from}`,
        );
        seen.push(...page.items);
        cursor = page.nextCursor;
      }
      expect(seen).toEqual(all);
      expect(seen.length).toBeGreaterThan(2);
    },
  );

  test.each([
    "",
    "&orderReference=ORDER-1&to=2026-11-01",
    "&orderReference=ORDER-1&state=delivered",
    "&orderReference=ORDER-2",
  ])("422 of a cursor with other filters than those of its page: %s", async (filters) => {
    const first = await get("?limit=1&orderReference=ORDER-1");
    const path = `/panel/api/webhooks/${id()}/deliveries?limit=1&cursor=${first.cursor}${filters}`;
    const { status, body } = await panel.call("GET", path);
    expect([status, body.code]).toEqual([422, "INVALID_QUERY"]);
    expect(body.detail).toContain("filters");
  });

  test.each([
    "state=lost",
    "from=yesterday",
    "from=2026-11-10&to=2026-11-09",
    "limit=0",
    "limit=201",
    "cursor=zzz",
  ])("422: %s", async (query) => {
    const { status, body } = await panel.call(
      "GET",
      `/panel/api/webhooks/${id()}/deliveries?${query}`,
    );
    expect({ status, code: body.code }).toEqual({ status: 422, code: "INVALID_QUERY" });
  });

  test("422 of the statistics names the query too", async () => {
    const { status, body } = await panel.call(
      "GET",
      `/panel/api/webhooks/${id()}/stats?from=yesterday`,
    );
    expect({ status, code: body.code }).toEqual({ status: 422, code: "INVALID_QUERY" });
  });

  test("counts and latency by hour", async () => {
    const { body } = await panel.call("GET", `/panel/api/webhooks/${id()}/stats`);
    expect(body.total).toMatchObject({ attempts: 6, succeeded: 3, failed: 3, successRate: 0.5 });
    expect(body.hours.map((one: Record<string, unknown>) => one["succeeded"])).toEqual([3, 0]);
    expect(body.hours.map((one: Record<string, unknown>) => one["failed"])).toEqual([0, 3]);
    expect(body.total.p50Ms).toBeLessThanOrEqual(body.total.p95Ms);
    const byCode = body.codes.map(({ code, attempts }: Record<string, unknown>) => [
      code,
      attempts,
    ]);
    expect(byCode.reduce((sum: number, [, count]: [string, number]) => sum + count, 0)).toBe(6);
    expect(byCode).toContainEqual(["200", 3]);
    for (const { p50Ms, p95Ms } of body.codes) expect(p50Ms).toBeLessThanOrEqual(p95Ms);
    expect(body.now).toEqual({
      queued: 0,
      waiting: 1,
      inFlight: 0,
      concurrency: START_CONCURRENCY,
      pausedUntil: null,
    });
    const day = "from=2026-11-01&to=2026-11-02";
    const past = await panel.call("GET", `/panel/api/webhooks/${id()}/stats?${day}`);
    expect(past.body.total).toMatchObject({ attempts: 0, successRate: null, p50Ms: null });
  });
});

describe("document 1, Shipment detail: notifications", () => {
  useRuntime();

  test("name the URL that a webhook was sent to, also after the endpoint has changed it", async () => {
    const [sent] = await items(`?trackingNumber=${await deliver(1)}`);
    const url = receiver.url.replace("/hook", "/other");
    const { status } = await panel.call("PATCH", `/panel/api/webhooks/${id()}`, { url });
    expect(status).toBe(200);
    const { redis, live } = runtime;
    const channelIds = [...live.configuration().channels.keys()];
    const moment = await readMoment(redis, sent?.shipmentId ?? 0, channelIds);
    if (!moment) throw new Error("no shipment");
    const reported = await readNotifications(redis, moment, await live.refresh(), live.now());
    expect(reported.map(({ recipient }) => recipient)).toEqual([receiver.url]);
  });
});

test("a quantile is reported to within 10 percent", () => {
  for (const ms of [1, 3, 10, 47, 230, 999, 5_000, 9_999]) {
    const bucket = `b${1 + Math.floor(Math.log(ms) / Math.log(1.2))}`;
    expect(Math.abs((quantileOf({ [bucket]: 1 }, 0.5) ?? 0) / ms - 1)).toBeLessThan(0.101);
  }
  expect(quantileOf({ b1: 94, b20: 6 }, 0.5)).toBeLessThan(2);
  expect(quantileOf({ b1: 94, b20: 6 }, 0.95)).toBeGreaterThan(30);
  expect(quantileOf({ success: 3 }, 0.5)).toBeNull();
});

describe("document 3, Delivery: replaying one", () => {
  useRuntime();
  const replay = (deliveryId: string | undefined) =>
    panel.call("POST", `/panel/api/deliveries/${deliveryId}/replay`);

  const isDelivered = (number: string, generation: number) =>
    eventually(async () => {
      const [one] = await items(`?trackingNumber=${number}`);
      return one?.state === "delivered" && one.generation === generation;
    }, "it is delivered");

  test("a failed delivery is sent as new", async () => {
    receiver.behave(400);
    const number = await deliver(1);
    receiver.behave(200);
    const [failed] = await items(`?trackingNumber=${number}`);
    const answer = await replay(failed?.deliveryId);
    expect(answer).toMatchObject({
      status: 200,
      body: { generation: 2, eventId: failed?.eventId },
    });
    await isDelivered(number, 2);
    expect(receiver.requests.at(-1)?.headers["x-service-delivery-attempt"]).toBe("1");
    expect(receiver.requests.at(-1)?.body.id).toBe(failed?.eventId);
  });

  test("so is a delivered one, and the books count it once", async () => {
    const counts = async () => {
      const { channels } = runtime.live.configuration();
      const companyId = channels.get(endpointOf(runtime, "main").channelId)?.companyId ?? 0;
      const { ledger } = webhookKeys(companyPartition(companyId));
      return runtime.redis.hmGet(ledger, ["webhook:delivered", "webhook:failed"]);
    };
    const number = await deliver(1);
    const [delivered] = await items(`?trackingNumber=${number}`);
    const before = await counts();
    const answer = await replay(delivered?.deliveryId);
    expect(answer).toMatchObject({ status: 200, body: { state: "queued", generation: 2 } });
    await isDelivered(number, 2);
    const [first, second] = receiver.requests.slice(-2);
    expect(second?.body.id).toBe(first?.body.id);
    expect(second?.headers["x-service-delivery-attempt"]).toBe("1");
    expect(await counts()).toEqual(before);
    receiver.behave(400);
    await replay(delivered?.deliveryId);
    await eventually(
      async () => (await items(`?trackingNumber=${number}&state=failed`)).length === 1,
      "it fails and can be found as failed",
    );
    const [deliveredCount, failedCount] = before.map(Number);
    expect((await counts()).map(Number)).toEqual([
      (deliveredCount ?? 0) - 1,
      (failedCount ?? 0) + 1,
    ]);
  });

  test("one that is pending is refused, and of replays at the same moment one counts", async () => {
    receiver.behave(503);
    const [waiting] = await items(`?trackingNumber=${await deliver(1)}`);
    expect(await replay(waiting?.deliveryId)).toMatchObject({
      status: 409,
      body: { code: "DELIVERY_PENDING" },
    });
    receiver.behave(200);
    const number = await deliver(1);
    const [delivered] = await items(`?trackingNumber=${number}`);
    const answered = Promise.withResolvers<void>();
    receiver.behave((_, response) => void answered.promise.then(() => response.end()));
    const answers = await Promise.all([1, 2, 3].map(() => replay(delivered?.deliveryId)));
    answered.resolve();
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409, 409]);
    await isDelivered(number, 2);
  });

  test("not to a disabled endpoint, and not without a delivery", async () => {
    receiver.behave(400);
    const [failed] = await items(`?trackingNumber=${await deliver(1)}`);
    await panel.call("POST", `/panel/api/webhooks/${id()}/disable`);
    expect(await replay(failed?.deliveryId)).toMatchObject({ body: { code: "ENDPOINT_DISABLED" } });
    await panel.call("POST", `/panel/api/webhooks/${id()}/enable`);
    for (const none of ["nothing", `dlv_00${"0".repeat(32)}`, `dlv_ff${"0".repeat(32)}`]) {
      expect(await replay(none)).toMatchObject({
        status: 404,
        body: { code: "DELIVERY_NOT_FOUND" },
      });
    }
  });

  test("within 30 days of its creation, and with all attempts even on its last day", async () => {
    receiver.behave(400);
    const [early, late] = await items(`?trackingNumber=${await deliver(2)}`);
    await work();
    await passTime(runtime, 30 * 86_400 - 60);
    receiver.behave(503);
    expect((await replay(early?.deliveryId)).status).toBe(200);
    const lives = await runtime.redis.keys(`*:d:${early?.deliveryId}`);
    expect(await runtime.redis.pTTL(lives[0] ?? "")).toBeGreaterThan(23 * 3_600_000);
    await passTime(runtime, 61);
    expect(await replay(late?.deliveryId)).toMatchObject({ status: 404 });
  });

  test("a replay at the end of the 30 days stays in the log until its last attempt", async () => {
    receiver.behave(400);
    const number = await deliver(1);
    const { deliveryId } = await eventually(
      async () => (await items(`?trackingNumber=${number}&state=failed`))[0],
      "it has failed",
    );
    await work();
    const byId = () => panel.call("GET", `/panel/api/deliveries/${deliveryId}`);
    const listed = async (query: string) =>
      (await items(query)).find((one) => one.deliveryId === deliveryId);
    await passTime(runtime, 30 * 86_400 - 60);
    receiver.behave(503);
    expect((await replay(deliveryId)).status).toBe(200);
    const hasMade = (attempts: number) =>
      eventually(
        async () => (await byId()).body.attempts?.length === attempts,
        `${attempts} attempts are made`,
      );
    for (const attempts of [2, 3, 4]) {
      await hasMade(attempts);
      await passTime(runtime, 7_200);
    }
    await hasMade(5);
    receiver.behave(400);
    for (const query of ["", "?state=waiting", `?trackingNumber=${number}`, "?limit=1"]) {
      expect(await listed(query)).toMatchObject({ state: "waiting", generation: 2 });
    }
    await passTime(runtime, 7_200);
    await eventually(async () => (await byId()).body.state === "failed", "its last attempt");
    expect(await listed("?state=failed")).toMatchObject({ generation: 2 });
    const again = await replay(deliveryId);
    expect(again).toMatchObject({ status: 409, body: { code: "REPLAY_WINDOW_OVER" } });
    await passTime(runtime, 7 * 86_400);
    expect(await byId()).toMatchObject({ status: 404 });
    expect(await listed("")).toBeUndefined();
  });
});

describe("replaying a window", () => {
  useRuntime();
  const replay = (body: Record<string, unknown>) =>
    panel.call("POST", `/panel/api/webhooks/${id()}/replay`, body);
  const everything = { from: "2026-01-01", to: "2099-01-01" };

  async function ended(replayId: string) {
    return eventually(async () => {
      const answer = await panel.call("GET", `/panel/api/webhooks/${id()}/replays/${replayId}`);
      return answer.body.state === "running" ? null : answer.body;
    }, "the replay ends");
  }

  test("as each: every failed delivery of the window, and no other", async () => {
    receiver.behave(400);
    await deliver(2);
    await passTime(runtime, 3_600);
    const from = new Date(runtime.live.now()).toISOString();
    const numbers = [await deliver(3), await deliver(1)];
    const to = new Date(runtime.live.now()).toISOString();
    await passTime(runtime, 3_600);
    await deliver(1);
    receiver.behave(200);
    const before = receiver.requests.length;
    const started = await replay({ from, to, mode: "each" });
    expect(started).toMatchObject({ status: 202, body: { mode: "each", endpointId: id() } });
    expect(await ended(started.body.replayId)).toMatchObject({ state: "done", queued: 4 });
    await eventually(() => receiver.requests.length === before + 4, "all four arrive");
    for (const number of numbers) {
      for (const item of await items(`?trackingNumber=${number}`)) expect(item.generation).toBe(2);
    }
    expect(await items("?state=failed")).toHaveLength(3);
  });

  test("groups what was given up by its error, and names the deliveries and their numbers", async () => {
    const failures = async (query = "") =>
      (await panel.call("GET", `/panel/api/webhooks/${id()}/failures${query}`)).body;
    const failed = await items("?state=failed");
    const { groups, isComplete } = await failures();
    expect(isComplete).toBe(true);
    expect(groups).toMatchObject([{ error: "status 400", deliveries: failed.length }]);
    expect(new Set(groups[0].deliveryIds)).toEqual(
      new Set(failed.map(({ deliveryId }) => deliveryId)),
    );
    expect((await failures("?to=2020-01-01")).groups).toEqual([]);
    const { items: logged } = await get("?state=failed");
    expect(logged[0].trackingNumber).toMatch(/^LOG-\d+$/);
  });

  test("as latest_per_shipment: one delivery a shipment, its newest, with the shipment as it is", async () => {
    const older = await items("?state=failed");
    receiver.behave(400);
    const number = await deliver(3);
    receiver.behave(200);
    receiver.requests.length = 0;
    const window = { ...everything, mode: "latest_per_shipment" };
    const path = `/panel/api/webhooks/${id()}/replay?preview=true`;
    const counted = await panel.call("POST", path, window);
    expect(receiver.requests).toEqual([]);
    const { body } = await replay(window);
    const shipmentIds = new Set(
      [...older, ...(await items(`?trackingNumber=${number}`))].map(({ shipmentId }) => shipmentId),
    );
    expect(await ended(body.replayId)).toMatchObject({
      state: "done",
      queued: shipmentIds.size,
      passedOver: older.length + 3 - shipmentIds.size,
      passedOverBecause: { older: older.length + 3 - shipmentIds.size, notFailed: 0 },
    });
    expect(counted).toMatchObject({
      status: 200,
      body: {
        preview: {
          deliveries: older.length + 3,
          shipments: shipmentIds.size,
          isComplete: true,
        },
      },
    });
    await eventually(() => receiver.requests.length === shipmentIds.size, "one each");
    const own = await items(`?trackingNumber=${number}`);
    expect(own.map(({ generation }) => generation)).toEqual([2, 1, 1]);
    // The receiver knows how each stands; what was passed over can still be sent.
    const { body: missed } = await panel.call("GET", `/panel/api/webhooks/${id()}/missed`);
    expect(missed).toMatchObject({ shipmentsBehind: 0, isComplete: true });
    expect(missed.deliveries).toBeGreaterThan(0);
  });

  test("a step that was taken twice, by two processes or after a crash, counts once", async () => {
    receiver.behave(400);
    await panel.call("POST", `/panel/api/webhooks/${id()}/disable`);
    await panel.call("POST", `/panel/api/webhooks/${id()}/enable`);
    await deliver(5);
    await webhooks.stop();
    const { channels } = runtime.live.configuration();
    const companyId = channels.get(endpointOf(runtime, "main").channelId)?.companyId ?? 0;
    const window = { fromMs: 0, toMs: Number.MAX_SAFE_INTEGER, mode: "each" as const };
    const replayId = await startReplay(runtime.redis, companyPartition(companyId), {
      ...window,
      endpointId: id(),
      startedAtMs: runtime.live.now(),
    });
    // Whoever has left the page finds it again.
    const listed = async () =>
      (await panel.call("GET", `/panel/api/webhooks/${id()}/replays`)).body.items;
    expect((await listed())[0]).toMatchObject({ replayId, state: "running", queued: 0 });
    const before = (await items("?state=failed")).length;
    const job = await readReplay(runtime.redis, replayId ?? "");
    if (!job) throw new Error("no replay");
    const step = () => stepReplay(runtime.redis, job, 2, 0, runtime.live.now());
    const queued = await Promise.all([step(), step(), step()]);
    expect(queued.sort()).toEqual([0, 0, 2]);
    expect(await items("?state=failed")).toHaveLength(before - 2);
    webhooks = await startWebhooks(runtime);
    expect(await ended(replayId ?? "")).toMatchObject({ state: "done", queued: before });
    expect((await listed())[0]).toMatchObject({ replayId, state: "done", queued: before });
  });

  test("can be stopped: a step that was under way queues nothing more, and what was queued is sent", async () => {
    receiver.behave(400);
    await deliver(5);
    await webhooks.stop();
    const failed = (await items("?state=failed")).length;
    const { body } = await replay({ ...everything, mode: "each" });
    const job = await readReplay(runtime.redis, body.replayId);
    if (!job) throw new Error("no replay");
    const path = `/panel/api/webhooks/${id()}/replays/${body.replayId}`;
    expect((await panel.call("DELETE", path)).body).toMatchObject({ state: "stopped" });
    expect(await stepReplay(runtime.redis, job, 2, 0, runtime.live.now())).toBe(0);
    expect((await panel.call("DELETE", path)).status).toBe(200);
    expect(await items("?state=failed")).toHaveLength(failed);
    const unknown = `/panel/api/webhooks/${id()}/replays/rpl_00${"0".repeat(24)}`;
    expect((await panel.call("DELETE", unknown)).status).toBe(404);
    webhooks = await startWebhooks(runtime);
  });

  test(`the latest ${REPLAYS_LISTED} are listed, the newest first, and those of no other endpoint`, async () => {
    const window = { endpointId: "ep_listed", fromMs: 0, toMs: 1, mode: "each" as const };
    const begun: (string | null)[] = [];
    for (let startedAtMs = 0; startedAtMs <= REPLAYS_LISTED; startedAtMs += 1) {
      begun.push(await startReplay(runtime.redis, 3, { ...window, startedAtMs }));
    }
    const found = await latestReplays(runtime.redis, 3, "ep_listed");
    expect(found.map(({ replayId }) => replayId)).toEqual(begun.slice(1).reverse() as string[]);
    expect(await latestReplays(runtime.redis, 3, "ep_other")).toEqual([]);
  });

  test("a bounded number a second", async () => {
    receiver.behave(400);
    const numbers = await Promise.all(Array.from({ length: 6 }, () => deliver(20)));
    expect(numbers).toHaveLength(6);
    const failed = (await countFailed()) ?? 0;
    expect(failed).toBeGreaterThanOrEqual(120);
    receiver.behave(200);
    const startMs = performance.now();
    const { body } = await replay({ ...everything, mode: "each" });
    expect(await ended(body.replayId)).toMatchObject({ queued: failed });
    // 50 a second: three steps at least, two whole seconds between them.
    expect(performance.now() - startMs).toBeGreaterThan(2_000);
  }, 300_000);

  async function countFailed(): Promise<number> {
    let count = 0;
    let cursor: string | null = "";
    while (cursor !== null) {
      const from: string = cursor === "" ? "" : `&cursor=${cursor}`;
      const page: { items: Item[]; cursor: string | null } = await get(
        `?state=failed&limit=200${from}`,
      );
      count += page.items.length;
      cursor = page.cursor;
    }
    return count;
  }

  test("it stops when its endpoint is switched off, and does not start for one that is", async () => {
    receiver.behave(400);
    await Promise.all(Array.from({ length: 6 }, () => deliver(20)));
    const { body } = await replay({ ...everything, mode: "each" });
    await panel.call("POST", `/panel/api/webhooks/${id()}/disable`);
    expect((await ended(body.replayId)).state).toBe("stopped");
    const refused = await replay({ ...everything, mode: "each" });
    expect(refused).toMatchObject({ status: 409, body: { code: "ENDPOINT_DISABLED" } });
    await panel.call("POST", `/panel/api/webhooks/${id()}/enable`);
  });

  test.each([
    { from: "2026-01-01", to: "2026-01-02" },
    { from: "2026-01-01", to: "2026-01-02", mode: "all" },
    { from: "soon", to: "2026-01-02", mode: "each" },
    { from: "2026-01-03", to: "2026-01-02", mode: "each" },
  ])("422: %j", async (body) => {
    expect((await replay(body)).status).toBe(422);
  });
});
