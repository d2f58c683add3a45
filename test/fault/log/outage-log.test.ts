/** docs/operations/incidents.md, "When the store is unavailable": what the log says of work that is looked after at intervals. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import pino from "pino";
import { startDraining } from "#analytics/write/drain-counts.ts";
import { countRefused } from "#core/events/store/courier-counts.ts";
import { storeFailures } from "#core/platform/process/metrics.ts";
import { startRemaps } from "#processors/track/remap.ts";
import { startAlertMailer } from "#processors/webhooks/alert-mailer.ts";
import { startHealthClock } from "#processors/webhooks/health-clock.ts";
import { startReplayJobs } from "#processors/webhooks/replay-jobs.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { eventually } from "#test/support/eventually.ts";
import { openTestRuntime, type TestRuntime } from "#test/support/product/runtime.ts";
import { type RedisServer, startRedisServer } from "#test/support/servers/redis-server.ts";

const PARTS = ["courier counts", "remaps", "replays", "webhook alerts", "webhook health"];

interface Line {
  readonly msg: string;
  readonly part?: string;
  readonly reason?: string;
}

let server: RedisServer;
let runtime: TestRuntime;
let lines: Line[] = [];
const log = pino({}, { write: (line: string) => void lines.push(JSON.parse(line)) });

beforeAll(async () => {
  server = await startRedisServer();
  runtime = await openTestRuntime(testSetup(), {}, { address: server.url, stop: server.stop });
});

afterAll(() => runtime.end());

async function failures(): Promise<ReadonlyMap<unknown, number>> {
  const { values } = await storeFailures.get();
  const byPart = Map.groupBy(values, ({ labels }) => labels.part);
  return new Map(
    [...byPart].map(([part, all]) => [part, all.reduce((sum, { value }) => sum + value, 0)]),
  );
}

async function failTwice(parts: readonly string[]): Promise<void> {
  const before = await failures();
  await eventually(async () => {
    const now = await failures();
    return parts.every((part) => (now.get(part) ?? 0) >= (before.get(part) ?? 0) + 2);
  }, "each part has failed twice");
}

const partsThatSaid = (text: string) =>
  lines.flatMap(({ msg, part }) => (msg === text ? [part] : [])).sort();

test("each part says once that it waits, is counted, and says once that the store is back", async () => {
  lines = [];
  const deps = { ...runtime, log };
  const parts = [
    startDraining({ ...deps, clickhouse: () => Promise.reject(new Error("not reached")) }),
    startRemaps(deps),
    startReplayJobs(deps),
    startAlertMailer({
      ...deps,
      mailer: { send: async () => {}, remove: async () => {}, close: () => {} },
    }),
    startHealthClock(deps),
  ];
  try {
    await server.send("ACL", "SETUSER", "default", "-@all");
    await failTwice(PARTS);
    expect(lines.map(({ msg, part }) => [msg, part]).sort()).toEqual(
      PARTS.map((part) => ["waiting for a store", part]),
    );
    await server.send("ACL", "SETUSER", "default", "+@all");
    const isBack = "the store is available again";
    await eventually(() => partsThatSaid(isBack).length === PARTS.length, "all of them go on");
    expect(partsThatSaid(isBack)).toEqual(PARTS);
  } finally {
    await server.send("ACL", "SETUSER", "default", "+@all");
    for (const part of parts) await part.stop();
  }
});

test("courier counts say once that ClickHouse is unavailable, as no error of ours", async () => {
  lines = [];
  const refused = [{ outcome: "UNKNOWN_TRACKING" }];
  await countRefused(runtime.redis, "GLS_ITA", refused, runtime.live.now());
  const draining = startDraining({
    ...runtime,
    log,
    clickhouse: () => Promise.reject(new Error("connection refused")),
  });
  try {
    await failTwice(["courier counts"]);
    expect(lines.map(({ msg, reason }) => [msg, reason])).toEqual([
      ["waiting for a store", "ClickHouse: connection refused"],
    ]);
  } finally {
    await draining.stop();
  }
});
