/** `waybill doctor` examines the settings of the stores; `waybill doctor courier` a sender of events (`ingest/doctor/courier-doctor.ts`). */

import { openBenchmarks } from "#analytics/benchmarks.ts";
import { readStoreConfig } from "#cli/store-config.ts";
import { examineStores, type Finding } from "#core/doctor/store-doctor.ts";
import type { Config } from "#core/platform/environment/config.ts";
import {
  command,
  JSON_OPTION,
  type Program,
  WrongUsage,
} from "#core/platform/process/command-line.ts";
import { commandLog } from "#core/platform/process/log.ts";
import { counted } from "#core/platform/schema/counted.ts";
import { openStore } from "#core/runtime/runtime.ts";
import { courierDoctor } from "#ingest/doctor/courier-doctor.ts";

async function examine(config: Config): Promise<Finding[]> {
  const store = await openStore(config, commandLog());
  try {
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

const storeDoctor = command({
  name: "waybill doctor",
  forms: ["[store] [--json]", "courier --help"],
  about: `Examines the settings of Redis, node by node, and of ClickHouse, and prints a line for each. Exit status 1: a setting
should be changed, or a store does not answer.`,
  options: { json: JSON_OPTION },
  operands: [0, 1],
  async run({ operands: [what = "store"], env, say, report }) {
    if (what !== "store") throw new WrongUsage(`Unexpected argument '${what}'.`);
    const findings = await examine(await readStoreConfig(env, say));
    const bad = findings.filter(({ ok }) => !ok).length;
    const sum = bad === 0 ? "Nothing to change." : `${counted(bad, "setting")} to change.`;
    report({ toChange: bad, findings }, [...findings.map(lineOf), sum].join("\n"));
    return bad > 0 ? 1 : 0;
  },
});

export const doctor: Program = (args, env) =>
  (args[0] === "courier" ? courierDoctor("waybill doctor") : storeDoctor)(args, env);
