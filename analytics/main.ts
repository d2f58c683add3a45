/** The analytics role: change log and courier counts in, rows in ClickHouse out. */

import { startArchiving } from "#analytics/archive/start-archiving.ts";
import { applySchema } from "#analytics/clickhouse/apply-schema.ts";
import {
  type KeptClickhouse,
  keepClickhouse,
  openClickhouse,
} from "#analytics/clickhouse/clickhouse.ts";
import { openProbe } from "#analytics/clickhouse/clickhouse-probe.ts";
import { schemaTurn } from "#analytics/clickhouse/schema-turn.ts";
import { startDraining } from "#analytics/write/drain-counts.ts";
import { attemptsHandler } from "#analytics/write/write-attempts.ts";
import { auditHandler, startMovingOldAudit } from "#analytics/write/write-audit.ts";
import { benchmarkHandler } from "#analytics/write/write-batches.ts";
import type { Config } from "#core/platform/environment/config.ts";
import type { Listener } from "#core/platform/http/listener.ts";
import { startConsumer } from "#core/platform/log/consumer.ts";
import type { Log } from "#core/platform/process/log.ts";
import { STORE_NEEDS } from "#core/platform/redis/store-needs.ts";
import { bindRoleListener, openOpsPort } from "#core/runtime/ops-port.ts";
import { type Role, type Running, type Runtime, runRoles } from "#core/runtime/runtime.ts";
import { answerBackups } from "./backup/answer-backups.ts";
import { checkClickhouse } from "./check-clickhouse.ts";
import { startCountingStays } from "./expected/count-stays.ts";
import { startExport } from "./export/start.ts";
import { SQL_PORT } from "./sql-port.ts";

/** Changes in one batch, of about 300 bytes. */
const BATCH = 32_000;
/**
 * Logs are read in steps, so that rows go in together: an insert costs ClickHouse about 15 files of a part, whether it
 * brings one row or thousands. How stale a benchmark may be.
 */
const LINGER_MS = 750;
/** How long the first changes after a rest wait for others. */
const GATHER_MS = 200;
/** Entries of attempts in one batch: at most 80,000 rows of about 150 bytes. */
const ATTEMPT_BATCH = 800;
/** Attempts are looked at for health by the hour: they may gather. */
const ATTEMPT_LINGER_MS = 500;
/** Entries of the audit log: at most about 8 MB in one batch. */
const AUDIT_BATCH = 1_000;
/** Port of health and metrics when the role runs alone. */
const ALONE_PORT = 8084;

/** @param usual null = only the port named by the environment */
function bindAnalytics({ host, ports }: Config, log: Log, usual: number | null): Listener | null {
  const port = { variable: "ANALYTICS_PORT", configured: ports.analytics, usual } as const;
  return bindRoleListener({ host }, port, log);
}

export async function startAnalytics(runtime: Runtime): Promise<Running> {
  const listener =
    runtime.listeners.get("analytics") ?? bindAnalytics(runtime.config, runtime.log, null);
  const store = keepClickhouse(() => openWriter(runtime));
  const stopping = new AbortController();
  await firstOpening(runtime, store);
  const stopWriting = keepWriting(runtime, store);
  const probe = await openProbe(runtime.config, store);
  const reasonNotReady = () =>
    stopping.signal.aborted ? Promise.resolve("stopping") : probe.reasonNotReady();
  const port =
    listener &&
    openOpsPort(runtime, "analytics", listener, {
      needs: STORE_NEEDS.analytics,
      reasonNotReady,
    });
  return {
    name: "analytics",
    url: port?.url ?? null,
    async stop() {
      stopping.abort();
      await stopWriting();
      await port?.stop();
      await Promise.all([probe.close(), store.close()]);
    },
  };
}

/** Writes, except while a backup fixes a moment of both stores. @returns ends it */
function keepWriting(runtime: Runtime, store: KeptClickhouse): () => Promise<void> {
  let stopWriting = startWriting(runtime, store);
  const backups = answerBackups(runtime, store, async (work) => {
    await stopWriting();
    try {
      return await work();
    } finally {
      stopWriting = startWriting(runtime, store);
    }
  });
  return async () => {
    await backups?.stop();
    await stopWriting();
  };
}

/** @returns ends the writing */
function startWriting(runtime: Runtime, store: KeptClickhouse): () => Promise<void> {
  const { redis, live, log, secrets } = runtime;
  const counting = startCountingStays(runtime);
  const consumer = startConsumer({
    redis,
    log,
    source: "change",
    group: "analytics",
    handler: benchmarkHandler({
      clickhouse: store.client,
      forget: store.forget,
      mac: secrets.vault.mac,
      delivered: counting.changed,
    }),
    batch: BATCH,
    lingerMs: LINGER_MS,
    gatherMs: GATHER_MS,
  });
  const attempts = startConsumer({
    redis,
    log,
    source: "attempt",
    group: "attempts",
    handler: attemptsHandler({
      redis,
      live,
      clickhouse: store.client,
      forget: store.forget,
      mac: secrets.vault.mac,
    }),
    batch: ATTEMPT_BATCH,
    lingerMs: ATTEMPT_LINGER_MS,
    gatherMs: ATTEMPT_LINGER_MS,
  });
  const inserting = { redis, clickhouse: store.client, forget: store.forget };
  const audit = startConsumer({
    redis,
    log,
    source: "audit",
    group: "audit",
    handler: auditHandler(inserting),
    batch: AUDIT_BATCH,
    lingerMs: ATTEMPT_LINGER_MS,
    gatherMs: ATTEMPT_LINGER_MS,
  });
  const movingOldAudit = startMovingOldAudit(inserting, log);
  const draining = startDraining({ redis, live, log, clickhouse: store.client });
  const exporting = startExport(runtime);
  const archiving = startArchiving({ runtime, clickhouse: store.client });
  const all = [consumer, attempts, audit, movingOldAudit, draining, exporting, archiving, counting];
  return async () => {
    await Promise.all(all.map((one) => one?.stop()));
  };
}

/** A ClickHouse that is unavailable does not stop the start: the rows wait in the change log. */
async function firstOpening({ config, log }: Runtime, store: KeptClickhouse): Promise<void> {
  if (config.clickhouseUrl === null) {
    log.info("opening the embedded ClickHouse; its first start may take some seconds");
  }
  try {
    await store.client();
  } catch (error) {
    log.error({ reason: (error as Error).message }, "ClickHouse is unavailable; retrying");
  }
}

async function openWriter({ config, log, redis }: Runtime) {
  const client = await openClickhouse(config, "write");
  try {
    await applySchema(client, config, schemaTurn(redis, config), (reason) =>
      log.warn(
        { reason },
        "a server of the ClickHouse cluster lacks tables (docs/analytics.md); the others go on",
      ),
    );
    log.info("clickhouse is open");
    return client;
  } catch (error) {
    await client.close();
    throw error;
  }
}

const analytics = (usual: number | null): Role => ({
  name: "analytics",
  bind: (config, log) => bindAnalytics(config, log, usual),
  check: checkClickhouse,
  start: startAnalytics,
});

export const ANALYTICS: Role = analytics(null);

if (import.meta.main) await runRoles(process.env, [analytics(ALONE_PORT), SQL_PORT]);
