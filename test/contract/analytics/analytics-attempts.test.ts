/** Webhook attempts in ClickHouse: each one row in effect, nothing personal, dropped and counted rather than held against deliveries. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { ClickHouseClient } from "@clickhouse/client";
import { applySchema } from "#analytics/clickhouse/apply-schema.ts";
import { openClickhouse } from "#analytics/clickhouse/clickhouse.ts";
import { startAnalytics } from "#analytics/main.ts";
import { attemptsHandler } from "#analytics/write/write-attempts.ts";
import type { LogItem } from "#core/platform/log/consumer.ts";
import { readLags } from "#core/platform/log/streams.ts";
import { attemptLogs, companyPartition, deadLetterKey } from "#core/platform/redis/keys.ts";
import type { Running } from "#core/runtime/runtime.ts";
import { readAttemptCounts } from "#core/webhooks/store/attempt-log.ts";
import type { Delivery } from "#core/webhooks/store/deliveries/deliveries.ts";
import type { Finished } from "#core/webhooks/store/deliveries/finish-deliveries.ts";
import type { Leased } from "#core/webhooks/store/deliveries/leases.ts";
import { eventually } from "#test/support/eventually.ts";
import type { TestRuntime } from "#test/support/product/runtime.ts";
import {
  applyEvents,
  deliveriesOf,
  endpointOf,
  leaseRound,
  newShipment,
  openWebhookRuntime,
  passTime,
  recordResults,
  STATUS,
  sendDeps,
  startPipeline,
} from "#test/support/product/webhooks.ts";
import { type Receiver, startReceiver } from "#test/support/servers/receiver.ts";

const EVENTS = 12;
const CODES = ["main", "second", "third"] as const;
/** Nothing listens there. */
const AWAY = "https://localhost:1/private-path?token=hidden-token";
/** A receiver's answer that names somebody. */
const BODY = "Mario Rossi, mario@client.test, +39 333 1234567";

let receivers: Receiver[];
let runtime: TestRuntime;
let analytics: Running | null = null;
let writer: ClickHouseClient;
/** Everything the log held, before it was taken over. */
const entries: LogItem[] = [];

beforeAll(async () => {
  receivers = [await startReceiver(), await startReceiver()];
  const urls = [...receivers.map(({ url }) => url), AWAY];
  runtime = await openWebhookRuntime(urls.map((url) => ({ url, trigger: "every_event" })));
  receivers[1]?.behave((_, response) => {
    response.statusCode = 503;
    response.end(BODY);
  });
});

afterAll(async () => {
  await writer?.close();
  await analytics?.stop();
  for (const receiver of receivers) await receiver.stop();
  await runtime.end();
});

async function queue(count: number): Promise<void> {
  const events = Array.from({ length: count }, (_, n) => ({
    status: STATUS.inTransit,
    occurredAt: new Date(Date.UTC(2026, 10, 10, 8, n)).toISOString(),
  }));
  await applyEvents(runtime, await newShipment(runtime), events);
}

const logOf = async () =>
  new Map<string, Delivery[]>(
    await Promise.all(
      CODES.map(async (code) => {
        const endpoint = endpointOf(runtime, code);
        return [endpoint.id, await deliveriesOf(runtime, endpoint)] as const;
      }),
    ),
  );

/** First attempts and one retry of each delivery that has not succeeded. */
async function send(): Promise<void> {
  const pipeline = startPipeline(runtime, sendDeps(runtime));
  const attempted = (least: number) =>
    eventually(async () => {
      const all = [...(await logOf()).values()];
      return all.every(
        (own) =>
          own.length >= EVENTS &&
          own.every(({ state, attempts }) => state === "delivered" || attempts.length >= least),
      );
    }, `${least} attempts`);
  await attempted(1);
  await passTime(runtime, 120);
  await attempted(2);
  await pipeline.stop();
}

async function collect(): Promise<void> {
  for (const key of attemptLogs()) {
    const found = await runtime.redis.xRange(key, "-", "+");
    entries.push(...(found ?? []).map(({ id, message }) => ({ key, id, fields: message })));
  }
}

const isTakenOver = async () =>
  (await readLags(runtime.redis)).every(
    ({ log, entries: behind }) => log !== "attempt" || behind === 0,
  );

// biome-ignore lint/suspicious/noExplicitAny: tests look into whatever was selected
async function select(query: string): Promise<any[]> {
  return (await writer.query({ query, format: "JSONEachRow" })).json();
}

const ROWS = `SELECT endpoint_id, delivery_id, event_id, generation, attempt, http_status, error, outcome,
  toUnixTimestamp64Milli(at) AS at_ms, latency_ms FROM attempts FINAL
  ORDER BY endpoint_id, delivery_id, generation, attempt`;

const ERRORS: Readonly<Record<string, string>> = { "connection: ECONNREFUSED": "connection" };

describe("one row for each attempt", () => {
  test("one log entry for all attempts that are recorded together, and the log is bounded by attempts", async () => {
    await queue(EVENTS);
    await send();
    await collect();
    const { logged, waiting, dropped } = await readAttemptCounts(runtime.redis);
    const attempts = [...(await logOf()).values()].flat().flatMap((one) => one.attempts).length;
    expect(attempts).toBeGreaterThanOrEqual(EVENTS * 5);
    expect({ logged, waiting, dropped }).toEqual({
      logged: attempts,
      waiting: attempts,
      dropped: 0,
    });
    expect(entries.length).toBeLessThan(attempts);
  });

  test("ids, numbers, times, status or kind of error, latency and outcome agree with the delivery log", async () => {
    analytics = await startAnalytics(runtime);
    await eventually(isTakenOver, "the attempts are in ClickHouse");
    writer = await openClickhouse(runtime.config, "write");
    const expected = [...(await logOf())]
      .flatMap(([endpointId, deliveries]) =>
        deliveries.flatMap(({ deliveryId, eventId, attempts, state }) =>
          attempts.map((one, at) => ({
            endpoint_id: endpointId,
            delivery_id: deliveryId,
            event_id: eventId,
            generation: one.generation,
            attempt: one.attempt,
            http_status: one.httpStatus ?? 0,
            error: ERRORS[one.error ?? ""] ?? "",
            outcome: state === "delivered" && at === attempts.length - 1 ? "DELIVERED" : "WAITING",
            at_ms: one.atMs,
            latency_ms: one.durationMs,
          })),
        ),
      )
      .sort(
        (one, other) =>
          compare(one.endpoint_id, other.endpoint_id) ||
          compare(one.delivery_id, other.delivery_id) ||
          one.attempt - other.attempt,
      );
    expect(await select(ROWS)).toEqual(expected);
    const { waiting } = await readAttemptCounts(runtime.redis);
    expect(waiting).toBe(0);
    await eventually(async () => {
      const left = await Promise.all(attemptLogs().map((key) => runtime.redis.xLen(key)));
      return left.every((length) => length === 0);
    }, "the log is trimmed");
  });

  test("invariant 8: no name, URL, secret or word of a receiver; the channel only as the keyed hash of the other tables", async () => {
    const text = JSON.stringify([await select("SELECT * FROM attempts"), entries]);
    expect(text).not.toMatch(
      /Rossi|client\.test|333 1234567|https?:|localhost|private|hidden|whsec|acme/,
    );
    const { channelId } = endpointOf(runtime, "main");
    const { mac } = runtime.secrets.vault;
    expect(await select("SELECT DISTINCT channel FROM attempts")).toEqual([
      { channel: mac(`channel ${channelId}`) },
    ]);
  });

  test("every entry again, twice, reversed and cut otherwise, changes no figure", async () => {
    const figures = async () =>
      JSON.stringify([
        await select(ROWS),
        await select("SELECT * FROM endpoint_health ORDER BY ALL"),
      ]);
    const before = await figures();
    const handle = attemptsHandler({
      redis: runtime.redis,
      live: runtime.live,
      clickhouse: async () => writer,
      forget: async () => {},
      mac: runtime.secrets.vault.mac,
    });
    for (const batch of [entries, entries.toReversed(), entries]) {
      for (let from = 0; from < batch.length; from += 3) {
        expect(await handle(batch.slice(from, from + 3))).toEqual([]);
      }
    }
    expect(await figures()).toBe(before);
  });

  test("an entry that is none fails alone and is reported as a dead letter of its log", async () => {
    const key = attemptLogs()[0] ?? "";
    const handle = attemptsHandler({
      redis: runtime.redis,
      live: runtime.live,
      clickhouse: async () => writer,
      forget: async () => {},
      mac: runtime.secrets.vault.mac,
    });
    const wrong: LogItem = { key, id: "1-1", fields: { n: "0", a: "[" } };
    const failures = await handle([wrong, ...entries.slice(0, 2)]);
    expect(failures.map(({ entry }) => entry)).toEqual([wrong]);
    expect(deadLetterKey(key)).toBe("{k0}:attempts:dead");
  });
});

function compare(one: string, other: string): number {
  if (one === other) return 0;
  return one < other ? -1 : 1;
}

describe("endpoint_health", () => {
  test("by endpoint and hour, agrees with a recomputation from the rows", async () => {
    const rows = await select(
      `SELECT *, toUnixTimestamp(toStartOfHour(at)) AS hour_s FROM attempts FINAL`,
    );
    const health = await select(
      "SELECT *, toUnixTimestamp(hour) AS hour_s FROM endpoint_health ORDER BY endpoint_id, hour",
    );
    const groups = Map.groupBy(rows, (row) => `${row.endpoint_id} ${row.hour_s}`);
    expect(health).toHaveLength(groups.size);
    for (const found of health) {
      const own = groups.get(`${found.endpoint_id} ${found.hour_s}`) ?? [];
      const count = (is: (row: (typeof own)[number]) => boolean) => own.filter(is).length;
      const latencies = own.map((row) => row.latency_ms).sort((one, other) => one - other);
      const delivered = count((row) => row.outcome === "DELIVERED");
      const firsts = count((row) => row.attempt === 1);
      expect(found).toMatchObject({
        channel: own[0]?.channel,
        attempts: own.length,
        delivered,
        waiting: count((row) => row.outcome === "WAITING"),
        failed: 0,
        success_share: Number((delivered / own.length).toFixed(4)),
        first_attempt_share: firsts > 0 && delivered > 0 ? 1 : 0,
        status_5xx: count((row) => row.http_status >= 500),
        unreachable: count((row) => row.error === "connection"),
        timeouts: 0,
      });
      expect([found.latency_p50_ms, found.latency_p95_ms]).toEqual(
        [0.5, 0.95].map((share) => latencies[Math.ceil(share * latencies.length) - 1]),
      );
    }
  });
});

describe("retention", () => {
  test("attempts go when they are older than the configured days, 90 by default", async () => {
    const { config } = runtime;
    const ttl = async () => {
      const [row] = await select(
        "SELECT create_table_query AS text FROM system.tables WHERE name = 'attempts'",
      );
      return /TTL [^\n]*?Day\(\d+\)/.exec(row.text)?.[0];
    };
    expect(await ttl()).toBe("TTL toDateTime(at) + toIntervalDay(90)");
    await writer.command({
      query: `INSERT INTO attempts SELECT * REPLACE ('old' AS delivery_id, now64() - INTERVAL 5 DAY AS at)
              FROM attempts LIMIT 1`,
    });
    await applySchema(writer, { ...config, attemptRetentionDays: 3 });
    expect(await ttl()).toBe("TTL toDateTime(at) + toIntervalDay(3)");
    await writer.command({ query: "OPTIMIZE TABLE attempts FINAL" });
    expect(await select("SELECT * FROM attempts WHERE delivery_id = 'old'")).toEqual([]);
    expect((await select("SELECT count() AS n FROM attempts FINAL"))[0].n).toBeGreaterThan(0);
  });
});

describe("at the mark", () => {
  const acme = () => {
    const { channels } = runtime.live.configuration();
    return companyPartition(channels.get(endpointOf(runtime, "main").channelId)?.companyId ?? 0);
  };

  function lease(): Promise<readonly Leased[]> {
    const share = { partition: acme(), wanted: 100, wantedFailing: 100 };
    const limits = { leaseMs: 30_000, perEndpoint: 100, perFailingEndpoint: 100 };
    return leaseRound(runtime, [share], { ...limits, retries: "none" });
  }

  function delivered(of: Leased): Finished {
    const attempt = { generation: of.generation, attempt: 1, atMs: runtime.live.now() };
    const reported = {
      httpStatus: 200,
      durationMs: 7,
      error: null,
      responseSnippet: null,
      responseHeaders: null,
      request: null,
    };
    return {
      of,
      state: "delivered",
      attempt: { ...attempt, ...reported },
      nextAttemptAtMs: null,
      reason: null,
    };
  }

  test("attempts are dropped and counted, deliveries are recorded all the same, and what was recorded twice is logged once", async () => {
    await analytics?.stop();
    analytics = null;
    await queue(4);
    const deciding = startPipeline(runtime, sendDeps(runtime), { inFlight: 0 });
    const leased = await eventually(async () => {
      const found = await lease();
      return found.length >= 8 ? found : null;
    }, "deliveries are handed out");
    await deciding.stop();
    const before = await readAttemptCounts(runtime.redis);
    const finish = (results: readonly Finished[], waiting?: number) =>
      recordResults(runtime, results, waiting);

    const [first, second, ...others] = leased.map(delivered);
    if (!first || !second) throw new Error("nothing was leased");
    await finish([first]);
    await finish([first]);
    expect(await readAttemptCounts(runtime.redis)).toEqual({
      ...before,
      logged: before.logged + 1,
      waiting: 1,
    });

    await finish([second, ...others], 2);
    expect(await readAttemptCounts(runtime.redis)).toEqual({
      logged: before.logged + 1,
      waiting: 1,
      dropped: others.length + 1,
    });
    const states = [...(await logOf()).values()].flat();
    for (const { deliveryId } of leased) {
      const found = states.find((one) => one.deliveryId === deliveryId);
      expect(found?.state).toBe("delivered");
    }

    analytics = await startAnalytics(runtime);
    await eventually(isTakenOver, "what waited is taken over");
    expect((await readAttemptCounts(runtime.redis)).waiting).toBe(0);
  });
});
