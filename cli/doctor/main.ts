/**
 * `bun run doctor courier …` checks a sender of events (`ingest/doctor/main.ts`). `bun run doctor store` examines the settings of
 * the stores: exit status 0 = all as Waybill relies on, 1 = something to change, or a store does not answer.
 */
import { openBenchmarks } from "#analytics/benchmarks.ts";
import { examineStores, type Finding } from "#core/doctor/store-doctor.ts";
import { type Config, readConfig } from "#core/platform/environment/config.ts";
import { createLog } from "#core/platform/process/log.ts";
import { counted } from "#core/platform/schema/counted.ts";
import { guarded, openStore, Refused } from "#core/runtime/runtime.ts";

const USAGE = "usage: bun run doctor store, or bun run doctor courier --help";

async function examine(config: Config): Promise<Finding[]> {
  const store = await openStore(config, createLog("warn"));
  try {
    // The embedded ClickHouse answers only to the process of the analytics: the panel's doctor asks it there.
    if (config.clickhouseUrl === null) return await examineStores(store.redis, null);
    const benchmarks = await openBenchmarks(config);
    return await examineStores(store.redis, benchmarks.facts).finally(benchmarks.close);
  } finally {
    await store.close();
  }
}

function lineOf({ check, ok, found, wanted, advice }: Finding): string {
  const head = `${ok ? "ok " : "BAD"}  ${check}: ${found}`;
  return ok ? head : `${head}, wanted ${wanted}\n     ${advice}`;
}

if (process.argv[2] === "store") {
  await guarded(async () => {
    if (process.argv.length > 3) throw new Refused(USAGE);
    const findings = await examine(readConfig(process.env));
    const bad = findings.filter(({ ok }) => !ok).length;
    const sum = bad === 0 ? "Nothing to change." : `${counted(bad, "setting")} to change.`;
    process.stdout.write(`${[...findings.map(lineOf), sum].join("\n")}\n`);
    if (bad > 0) process.exitCode = 1;
  });
} else {
  await import("#ingest/doctor/main.ts");
}
