/** The analytics role: change log and courier counts in, rows in ClickHouse out. */
import { startConsumer } from "#core/redis/consumer.ts";
import { type Running, type Runtime, runRoles } from "#core/runtime.ts";
import { applySchema } from "./apply-schema.ts";
import { type KeptClickhouse, keepClickhouse, openClickhouse } from "./clickhouse.ts";
import { startDraining } from "./drain-counts.ts";
import { benchmarkHandler } from "./write-batches.ts";

/** Entries read per partition at once: at most 8,000 rows of some 700 bytes in one batch. */
const BATCH = 500;
/** Quiet logs are read in steps, so that rows go in together instead of one by one: how stale a benchmark may be. */
const LINGER_MS = 200;

export async function startAnalytics(runtime: Runtime): Promise<Running> {
  const { redis, live, log, secrets } = runtime;
  const store = keepClickhouse(() => openWriter(runtime));
  await firstOpening(runtime, store);
  const consumer = startConsumer({
    redis,
    log,
    source: "change",
    group: "analytics",
    handler: benchmarkHandler({
      clickhouse: store.client,
      forget: store.forget,
      mac: secrets.vault.mac,
    }),
    batch: BATCH,
    lingerMs: LINGER_MS,
  });
  const stopDraining = startDraining({ redis, live, log, clickhouse: store.client });
  return {
    name: "analytics",
    url: null,
    async stop() {
      await Promise.all([consumer.stop(), stopDraining()]);
      await store.close();
    },
  };
}

/** A ClickHouse that is away does not stop the start: the rows wait in the change log. */
async function firstOpening({ config, log }: Runtime, store: KeptClickhouse): Promise<void> {
  if (config.clickhouseUrl === null) {
    log.info("opening the embedded ClickHouse; its first start may take some seconds");
  }
  try {
    await store.client();
    log.info("clickhouse is open");
  } catch (error) {
    log.error({ reason: (error as Error).message }, "clickhouse is away; rows wait for it");
  }
}

async function openWriter({ config }: Runtime) {
  const client = await openClickhouse(config, "write");
  try {
    await applySchema(client, config.eventRetentionMonths);
    return client;
  } catch (error) {
    await client.close();
    throw error;
  }
}

if (import.meta.main) await runRoles(process.env, [startAnalytics]);
