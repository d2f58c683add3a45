/** `GET /healthz`, `/readyz` and `/metrics`, the same on every port. */
import { Elysia } from "elysia";
import { attemptLog, groupLag, groupLagSeconds, ledgerEntries, registry } from "#core/metrics.ts";
import { readAttemptCounts } from "#core/redis/attempt-log.ts";
import type { Redis } from "#core/redis/client.ts";
import { SYSTEM_KEY } from "#core/redis/keys.ts";
import { readLedger } from "#core/redis/ledger.ts";
import { probeWrites } from "#core/redis/probe.ts";
import { describeFailure } from "#core/redis/store-unavailable.ts";
import { readLags } from "#core/redis/streams.ts";

export function ops(redis: Redis) {
  return new Elysia({ name: "ops" })
    .get("/healthz", () => ({ status: "ok" }))
    .get("/readyz", async ({ set }) => {
      const reason = await reasonNotReady(redis);
      if (reason === null) return { status: "ready" };
      set.status = 503;
      return { status: "not ready", reason };
    })
    .get("/metrics", async () => {
      await Promise.all([measureLags(redis), measureLedger(redis), measureAttemptLog(redis)]);
      const body = await registry.metrics();
      return new Response(body, { headers: { "content-type": registry.contentType } });
    });
}

/** Null when the role can serve: Redis takes writes. Without ClickHouse only benchmarks are away, and their answers say so. */
async function reasonNotReady(redis: Redis): Promise<string | null> {
  try {
    await probeWrites(redis, [SYSTEM_KEY]);
    return null;
  } catch (error) {
    return describeFailure(error);
  }
}

/** While Redis is away the last figures stand, and the process' own metrics are still told. */
async function measureLags(redis: Redis): Promise<void> {
  const lags = await readLags(redis).catch(() => []);
  for (const { log, group, entries, seconds } of lags) {
    groupLag.set({ log, group }, entries);
    groupLagSeconds.set({ log, group }, seconds);
  }
}

async function measureAttemptLog(redis: Redis): Promise<void> {
  const counts = await readAttemptCounts(redis).catch(() => ({}));
  for (const [entry, count] of Object.entries(counts)) attemptLog.set({ entry }, count);
}

async function measureLedger(redis: Redis): Promise<void> {
  const ledger = await readLedger(redis).catch(() => null);
  if (!ledger) return;
  const { couriers: _, notSent, ...entries } = ledger;
  for (const [entry, count] of Object.entries(entries)) ledgerEntries.set({ entry }, count);
  for (const [reason, count] of Object.entries(notSent)) {
    ledgerEntries.set({ entry: `not_sent_${reason}` }, count);
  }
}
