/** `GET /healthz`, `/readyz` and `/metrics`, the same on every port. */
import { publicRoutes } from "#core/http/access.ts";
import { attemptLog, groupLag, groupLagSeconds, ledgerEntries, registry } from "#core/metrics.ts";
import { readAttemptCounts } from "#core/redis/attempt-log.ts";
import type { Redis } from "#core/redis/client.ts";
import { readLedger } from "#core/redis/ledger.ts";
import { readLags } from "#core/redis/streams.ts";

export function ops(redis: Redis) {
  return publicRoutes("ops")
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

/** Null when the role can serve. Without ClickHouse only benchmarks are away, and their answers say so. */
async function reasonNotReady(redis: Redis): Promise<string | null> {
  try {
    await redis.ping();
    return null;
  } catch {
    return "Redis is away";
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
