/** Backpressure, a store that goes away, messages that fail half-way, and several ingest processes (document 2, Errors). */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createLive } from "#core/configuration/store/live.ts";
import { decodeLoggedEvent, splitEvents } from "#core/events/store/event-log.ts";
import { seenBucket } from "#core/events/store/seen.ts";
import { trimLog } from "#core/platform/log/streams.ts";
import { createLog } from "#core/platform/process/log.ts";
import { connectRedis } from "#core/platform/redis/client.ts";
import { changeLogs, eventLogs, logCountsKey } from "#core/platform/redis/keys.ts";
import { applySetupFile, type Running } from "#core/runtime/runtime.ts";
import { readLedger, readQueueDepths } from "#core/webhooks/store/deliveries/ledger.ts";
import { startIngest } from "#ingest/main.ts";
import { event, push } from "#test/support/clients/courier.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { addShipment } from "#test/support/data/shipments.ts";
import { eventually } from "#test/support/eventually.ts";
import { openTestRuntime, type TestRuntime } from "#test/support/product/runtime.ts";
import { type RestartableRedis, startRestartableRedis } from "#test/support/servers/servers.ts";

const HIGH_WATER = 1_000;
/** Events one log takes. */
const PARTITIONS = 16;
const SHARE = Math.ceil(HIGH_WATER / PARTITIONS);

let server: RestartableRedis;
let runtime: TestRuntime;
let ingest: Running;
let url: string;

beforeAll(async () => {
  server = await startRestartableRedis();
  runtime = await openTestRuntime(
    testSetup(),
    { LOG_HIGH_WATER: String(HIGH_WATER), STORE_PARTITIONS: String(PARTITIONS) },
    server,
  );
  ingest = await startIngest(runtime);
  url = ingest.url ?? "";
  await addShipment(runtime, "TN1");
});

afterAll(async () => {
  await ingest.stop();
  await runtime.end();
});

/** An event whose id falls into this partition. */
function eventOf(partition: number) {
  for (;;) {
    const candidate = event();
    if (seenBucket("GLS_ITA", candidate.eventId).partition === partition) return candidate;
  }
}

const eventsOf = (partition: number, count: number) =>
  Array.from({ length: count }, () => eventOf(partition));

/** What track does, at once. */
async function drain(): Promise<void> {
  for (const log of eventLogs()) {
    await runtime.redis.xTrim(log, "MAXLEN", 0);
    await trimLog(runtime.redis, "event", log);
  }
}

/** As commits append changes: many in an entry. */
async function fill(log: string, changes: number): Promise<void> {
  await runtime.redis.hIncrBy(logCountsKey(log), "logged", changes);
  await runtime.redis.xAdd(log, "*", { s: "0 ".repeat(changes).trim() });
}

describe("the change log at its high-water mark", () => {
  test("holds events back until its readers have caught up", async () => {
    await drain();
    const log = changeLogs()[0] ?? "";
    const { changeLog } = await readQueueDepths(runtime.redis);
    await fill(log, HIGH_WATER - 1 - changeLog);
    expect((await push(url, eventsOf(1, 1))).status).toBe(200);
    await fill(log, 1);
    const full = await eventually(async () => {
      const answer = await push(url, eventsOf(1, 1));
      return answer.status === 503 ? answer : null;
    }, "ingest sees the full change log");
    expect(full.body.code).toBe("LOG_FULL");
    await runtime.redis.xTrim(log, "MAXLEN", 0);
    await eventually(
      async () => (await push(url, eventsOf(1, 1))).status === 200,
      "events are accepted again",
    );
    await drain();
  });
});

describe("the event log at its high-water mark", () => {
  test("takes its share, and one more is 503 with Retry-After", async () => {
    await drain();
    expect((await push(url, eventsOf(3, SHARE - 1))).body.accepted).toBe(SHARE - 1);
    expect((await push(url, eventsOf(3, 1))).body.accepted).toBe(1);
    const late = eventsOf(3, 1);
    const answer = await push(url, late);
    expect([answer.status, answer.body.code]).toEqual([503, "LOG_FULL"]);
    expect(answer.headers.get("content-type")).toBe("application/problem+json");
    expect(Number(answer.headers.get("retry-after"))).toBeGreaterThan(0);
    expect(answer.headers.get("x-ratelimit-remaining")).toMatch(/^\d+$/);
    expect((await readQueueDepths(runtime.redis)).eventLog).toBe(SHARE);
    await drain();
    expect((await push(url, late)).body.accepted).toBe(1);
  });

  test("a message that fails half-way is completed by its retry, nothing twice", async () => {
    await drain();
    await push(url, eventsOf(5, SHARE));
    const before = (await readLedger(runtime.redis)).accepted;
    const both = [eventOf(5), eventOf(6)];
    expect((await push(url, both)).status).toBe(503);
    await drain();
    const { status, body } = await push(url, both);
    const outcomes = body.results.map(({ outcome }: { outcome: string }) => outcome);
    expect([status, outcomes]).toEqual([200, ["ACCEPTED", "DUPLICATE"]]);
    expect((await readLedger(runtime.redis)).accepted).toBe(before + 2);
  });

  test("validate and ping go on while it is full", async () => {
    await drain();
    await push(url, eventsOf(7, SHARE));
    expect((await push(url, [eventOf(7)])).status).toBe(503);
    const path = "/v1/events/validate";
    expect((await push(url, [eventOf(7)], { path })).body.accepted).toBe(1);
    const headers = { authorization: "Bearer tok_gls_1" };
    expect((await fetch(`${url}/v1/ping`, { headers })).status).toBe(200);
    await drain();
  });
});

describe("Redis down", () => {
  test("503 at once with Retry-After and rate headers, then recovery by itself, nothing lost or doubled", async () => {
    const before = event();
    expect((await push(url, [before])).body.accepted).toBe(1);
    await server.kill();
    const startedMs = performance.now();
    const lost = event();
    const answers = [
      await push(url, [lost]),
      await push(url, [lost], { path: "/v1/events/validate" }),
    ];
    // A message that had to wait would be answered after 5 s.
    expect(performance.now() - startedMs).toBeLessThan(4_500);
    for (const { status, headers, body } of answers) {
      expect([status, body.code]).toEqual([503, "STORE_UNAVAILABLE"]);
      expect(Number(headers.get("retry-after"))).toBeGreaterThan(0);
      expect(headers.get("x-ratelimit-limit")).toMatch(/^\d+$/);
    }
    expect((await fetch(`${url}/readyz`)).status).toBe(503);
    expect((await fetch(`${url}/healthz`)).status).toBe(200);
    await server.restart();
    await eventually(async () => (await fetch(`${url}/readyz`)).status === 200, "ready again");
    const { body } = await push(url, [before, lost]);
    const outcomes = body.results.map(({ outcome }: { outcome: string }) => outcome);
    expect(outcomes).toEqual(["DUPLICATE", "ACCEPTED"]);
  });

  test("killed under load: what was answered ACCEPTED is there, what was not is completed by a retry", async () => {
    await drain();
    const messages = Array.from({ length: 60 }, () => [event(), event()]);
    const before = messages.slice(0, 30).map((events) => push(url, events));
    await Promise.race(before);
    const killed = server.kill();
    const after = messages.slice(30).map((events) => push(url, events));
    await killed;
    const answers = await Promise.all([...before, ...after]);
    await server.restart();
    await eventually(async () => (await fetch(`${url}/readyz`)).status === 200, "ready again");
    expect(answers.some(({ status }) => status === 503)).toBe(true);
    expect(answers.every(({ status }) => status === 200 || status === 503)).toBe(true);
    const retries = await Promise.all(messages.map((events) => push(url, events)));
    for (const [at, { body }] of retries.entries()) {
      const known = answers[at]?.status === 200 ? 2 : body.duplicate;
      expect([body.duplicate, body.accepted + body.duplicate]).toEqual([known, 2]);
    }
    const entries = await Promise.all(
      eventLogs().map((key) => runtime.redis.xRange(key, "-", "+")),
    );
    const logged = entries
      .flatMap((own) => own ?? [])
      .flatMap(({ message }) => splitEvents(message));
    const ids = logged.map(({ e = "" }) => decodeLoggedEvent(e).event.eventId);
    expect(ids.length).toBe(120);
    expect(new Set(ids).size).toBe(120);
  }, 300_000);
});

describe("two ingest processes", () => {
  let other: Running;
  let end: () => Promise<void>;

  beforeAll(async () => {
    const redis = await connectRedis(server.address, createLog("silent"));
    const live = await createLive(redis, true);
    other = await startIngest({ ...runtime, redis, live });
    end = () => redis.close();
  });

  afterAll(async () => {
    await other.stop();
    await end();
  });

  test("one event sent to both at once is accepted once", async () => {
    await drain();
    const shared = Array.from({ length: 40 }, () => event());
    const answers = await Promise.all(
      Array.from({ length: 10 }, (_, at) => push((at % 2 ? other.url : url) ?? "", shared)),
    );
    const sum = (name: string) => answers.reduce((total, { body }) => total + body[name], 0);
    expect([sum("accepted"), sum("duplicate")]).toEqual([40, 360]);
  });

  test("they share the rate of a courier", async () => {
    const slow = { code: "SLOW", tokens: ["tok_slow"], rateLimit: { perSecond: 0.001, burst: 6 } };
    await applySetupFile(runtime, { couriers: [slow] });
    // A process learns of a new courier by a request; until then it counts for the address.
    await fetch(`${other.url}/v1/ping`, { headers: { authorization: "Bearer tok_gls_1" } });
    const to = { token: "tok_slow", courier: "SLOW", path: "/v1/events/validate" };
    const answers = await Promise.all(
      Array.from({ length: 10 }, (_, at) => push((at % 2 ? other.url : url) ?? "", [event()], to)),
    );
    expect(answers.filter(({ status }) => status === 200).length).toBe(6);
    expect((await push(url, [event()], to)).status).toBe(429);
    expect((await push(other.url ?? "", [event()], to)).status).toBe(429);
  });
});
