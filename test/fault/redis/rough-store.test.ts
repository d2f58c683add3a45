/**
 * A bad day without an outage: Redis answers 200 ms late and connections are reset in the middle of its answers, ClickHouse is
 * away all day, a process is stopped for longer than its leases, and the append-only file ends in the middle of a command. When
 * ClickHouse comes back, in a measured run, it gets every event of the day, once.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { CourierEvent } from "#core/events/rules/event.ts";
import { createShipments, startEventStream } from "#test/support/clients/event-stream.ts";
import { analysedEvents } from "#test/support/data/analysed-events.ts";
import { expectExactlyOnce } from "#test/support/data/oracle.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { eventually } from "#test/support/eventually.ts";
import { IS_MEASURED, RUN_MS, startMeasuring } from "#test/support/measured.ts";
import { type Product, startProduct } from "#test/support/product/product.ts";
import {
  type ClickhouseServer,
  startClickhouseHttp,
} from "#test/support/servers/clickhouse-http.ts";
import { type RedisProxy, startRedisProxy } from "#test/support/servers/redis-proxy.ts";
import { type RedisServer, startRedisServer } from "#test/support/servers/redis-server.ts";

/** In a measured run of some minutes they stay below the limit of a history. */
const SHIPMENTS = 200;
const EVENTS_BETWEEN = 40;
const LATE_MS = 200;
/** Longer than the lease of a delivery (6 s) and the heartbeat of a consumer. */
const STOPPED_MS = 8_000;
const TEARS = 3;
const LIMIT_MS = 60_000;
/** Both processes have them. */
const SECRETS = {
  ENCRYPTION_KEY: "encryption-key-of-the-tests",
  JWT_SECRET: "jwt-secret-of-the-tests-0123456789",
};
let server: RedisServer;
let proxy: RedisProxy;
let clickhouse: ClickhouseServer;
let first: Product;
let second: Product;

beforeAll(async () => {
  server = await startRedisServer();
  proxy = await startRedisProxy({ port: server.port });
  clickhouse = await startClickhouseHttp();
  await clickhouse.kill();
  const start = async (url: string) => {
    const env = {
      ...SECRETS,
      REDIS_URL: url,
      CLICKHOUSE_URL: clickhouse.address,
      CLICKHOUSE_READ_URL: clickhouse.address,
    };
    const product = await startProduct(testSetup(), env);
    return product;
  };
  first = await start(proxy.url);
  second = await start(server.url);
}, 300_000);

afterAll(async () => {
  await Promise.all([first.end(), second.end()]);
  await proxy.stop();
  await server.stop();
  await clickhouse.stop();
}, 300_000);

/** @returns what it got, and how soon */
async function clickhouseReturns(
  ids: readonly number[],
  accepted: ReadonlyMap<string, CourierEvent>,
): Promise<Record<string, number>> {
  const backAtMs = performance.now();
  await clickhouse.restart();
  await expectExactlyOnce(second, "ROUGH", ids, accepted);
  const caughtUpMs = performance.now() - backAtMs;
  const analysed = await analysedEvents({ CLICKHOUSE_URL: clickhouse.address });
  expect(analysed).toBe(accepted.size);
  return {
    "events in ClickHouse": analysed,
    "seconds from ClickHouse's return until it had them": Math.round(caughtUpMs / 100) / 10,
  };
}

test("late and torn answers, a stopped process and a half-written file lose nothing and double nothing", async () => {
  const ids = await createShipments(second, "ROUGH", SHIPMENTS);
  const urls = { ingest: first.ingest, otherIngest: second.ingest, state: first.state };
  const stream = startEventStream(urls, "ROUGH", SHIPMENTS);
  const name = "Redis 200 ms late, answers torn, SIGSTOP, torn file, ClickHouse away";
  const measuring = startMeasuring("Hurt everything", name);
  /** Until the process behind the proxy answers again. */
  const recovers = async (since: number) => {
    const answered = () => stream.answered.get(first.ingest) ?? 0;
    const before = answered();
    const what = async () =>
      `${first.ingest} accepts events again; silent: ${stream.unanswered}; ${await first.state()}`;
    await eventually(() => answered() > before, what, LIMIT_MS);
    measuring.recovered(since);
    await flows();
  };
  const flows = () => stream.grows("they flow", EVENTS_BETWEEN);
  const until = Date.now() + RUN_MS;
  let faults = 0;
  do {
    await flows();
    proxy.delay(LATE_MS);
    await recovers(performance.now());
    for (let tears = 0; tears < TEARS; tears += 1, faults += 1) {
      await proxy.tear();
      await recovers(performance.now());
    }
    proxy.delay(0);
    process.kill(first.pid(), "SIGSTOP");
    const stoppedUntil = performance.now() + STOPPED_MS;
    const size = stream.accepted.size;
    await eventually(() => performance.now() > stoppedUntil, "the leases are over");
    expect(stream.accepted.size).toBeGreaterThan(size);
    process.kill(first.pid(), "SIGCONT");
    await recovers(performance.now());
    await server.kill();
    await server.tearFile();
    const killedAtMs = performance.now();
    await server.start();
    await recovers(killedAtMs);
    faults += 3;
  } while (Date.now() < until);
  await stream.stop();
  expect(stream.unanswered).toEqual([]);
  for (const { output } of [first, second]) expect(output()).not.toContain("dead letter");
  const counted = await expectExactlyOnce(second, "ROUGH", ids, stream.accepted, {
    away: ["analytics"],
  });
  // It takes four seconds, and once in ten runs it took more than the minute that is waited for.
  const further = IS_MEASURED ? await clickhouseReturns(ids, stream.accepted) : {};
  await measuring.done({ faults, ...counted, further });
}, 3_600_000);
