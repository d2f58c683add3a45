/** Which tests may kill the mutants of a file. */
import { dirname, join, normalize } from "node:path";

const IMPORT = /(?:from|import) "(#[^"]+|\.[^"]+)"/g;

export interface Tests {
  /** Run first. */
  readonly near: readonly string[];
  /** Run where the others pass. */
  readonly far: readonly string[];
}

/** Unit tests that import a file of rules: themselves, and through others. What is listed for it is run last. */
export async function testsOfRule(
  file: string,
): Promise<Tests & { readonly listed: readonly string[] }> {
  const tests = [...new Bun.Glob("test/unit/**/*.test.ts").scanSync(".")].toSorted();
  const near: string[] = [];
  const far: string[] = [];
  for (const test of tests) {
    if ((await Bun.file(test).text()).includes(`"#${file}"`)) near.push(test);
    else if ((await importsOf(test)).has(file)) far.push(test);
  }
  return { near, far, listed: TESTS_OF_RULES[file] ?? [] };
}

const known = new Map<string, Promise<Set<string>>>();

export function importsOf(file: string, above: readonly string[] = []): Promise<Set<string>> {
  const before = known.get(file);
  if (before) return before;
  const reading = readImports(file, [...above, file]);
  known.set(file, reading);
  return reading;
}

async function readImports(file: string, above: readonly string[]): Promise<Set<string>> {
  const text = await Bun.file(file)
    .text()
    .catch(() => "");
  const direct = [...text.matchAll(IMPORT)].map(([, name = ""]) =>
    name.startsWith("#") ? name.slice(1) : normalize(join(dirname(file), name)),
  );
  const all = new Set(direct);
  for (const one of direct) {
    if (!one.endsWith(".ts") || above.includes(one)) continue;
    for (const further of await importsOf(one, above)) all.add(further);
  }
  return all;
}

/** Contract tests that call a script or a part of one themselves, and those that are listed for it. */
export async function testsOfScript(file: string): Promise<readonly string[]> {
  const tests = [...new Bun.Glob("test/contract/**/*.test.ts").scanSync(".")].toSorted();
  const calling: string[] = [];
  for (const test of tests) {
    if ((await Bun.file(test).text()).includes(`"#${file}"`)) calling.push(test);
  }
  return [...new Set([...calling, ...(TESTS_OF_SCRIPTS[file] ?? [])])];
}

const contract = (...names: readonly string[]) =>
  names.map((name) => `test/contract/${name}.test.ts`);

/** Contract tests of what a script does, besides those that call it themselves. */
const TESTS_OF_SCRIPTS: Readonly<Record<string, readonly string[]>> = {
  "core/platform/redis/run-together.lua": contract("accounts/client-scripts"),
  "core/shipments/store/commit.lua": contract(
    "shipments/commits",
    "shipments/track",
    "search/search-columns",
    "statuses/mapping",
  ),
  "core/shipments/store/create.lua": contract(
    "shipments/create-rows",
    "shipments/create-shipments",
    "shipments/api-create",
  ),
  "core/archive/store/remove.lua": contract("archive/archive-scripts"),
  "core/archive/store/restore.lua": contract("archive/archive-scripts"),
  "core/archive/store/allocate-batches.lua": contract("archive/archive-batch-scripts"),
  "core/shipments/store/read-summary.lua": contract("archive/archive-batch-scripts"),
  "core/shipments/store/read-whole.lua": contract("archive/archive-scripts"),
  "core/archive/store/retire-batches.lua": contract("archive/archive-batch-scripts"),
  "core/shipments/store/parts/company-clock.lua": contract("shipments/commit-script"),
  "core/shipments/store/parts/exact-values.lua": contract("archive/archive-scripts"),
  "core/shipments/store/parts/row-log.lua": contract("archive/archive-scripts"),
  "core/shipments/store/parts/side-digest.lua": contract("archive/archive-scripts"),
  "core/shipments/store/parts/unmapped-codes.lua": contract("shipments/commit-script"),
  "core/merchants/store/jobs/take-work.lua": contract("log/work-queue"),
  "core/merchants/store/jobs/settle-work.lua": contract("log/work-queue"),
  "core/merchants/store/jobs/accept-job.lua": contract("log/work-queue"),
  "core/webhooks/store/alert.lua": contract("webhooks/webhook-script-limits"),
  "core/webhooks/store/deliveries/drain.lua": contract("webhooks/webhook-script-limits"),
  "core/webhooks/store/deliveries/resume.lua": contract("webhooks/webhook-script-limits"),
  "core/webhooks/store/deliveries/decide.lua": contract(
    "webhooks/webhooks-decided-twice",
    "webhooks/webhook-script-limits",
    "webhooks/webhooks-results",
  ),
  "core/webhooks/store/deliveries/lease.lua": contract(
    "webhooks/webhooks-leased-queues",
    "webhooks/webhook-script-limits",
  ),
  "core/webhooks/store/deliveries/finish.lua": contract(
    "webhooks/webhook-script-limits",
    "webhooks/webhooks-results",
    "webhooks/webhooks-leases",
  ),
  "core/webhooks/store/deliveries/reclaim.lua": contract("webhooks/webhook-script-limits"),
  "core/webhooks/store/deliveries/renew.lua": contract("webhooks/webhook-script-limits"),
  "core/webhooks/store/deliveries/replay.lua": contract("webhooks/webhook-script-limits"),
};

/** Contract tests of rules whose answers come out at a port: what the unit tests do not notice is tried on them too. */
const TESTS_OF_RULES: Readonly<Record<string, readonly string[]>> = {
  "core/accounts/rules/account-mail.ts": contract("accounts/panel-accounts"),
  "core/accounts/rules/masked.ts": contract("accounts/panel-audit"),
  "core/accounts/rules/roles.ts": ["test/security/accounts/panel-roles.test.ts"],
  "core/benchmarks/rules/latency-buckets.ts": contract("webhooks/webhooks-log"),
  "core/events/rules/match-reference.ts": contract("events/matching"),
  "core/merchants/rules/label-carrier.ts": contract("merchants/api-labels"),
  "core/merchants/rules/label.ts": contract("merchants/api-labels"),
  "core/merchants/rules/slip.ts": contract("merchants/api-confirm"),
  "core/merchants/rules/stock-release.ts": contract("merchants/api-stock-release"),
  "core/merchants/rules/compose-message.ts": contract(
    "shipments/api-notifications",
    "shipments/notify-status",
  ),
  "core/merchants/rules/message-values.ts": contract(
    "shipments/api-notifications",
    "shipments/notify-status",
  ),
  "core/merchants/rules/notification.ts": contract("shipments/api-notifications"),
  "core/merchants/rules/address-check.ts": contract("merchants/api-addresses"),
  "core/merchants/rules/measure.ts": contract("shipments/api-create"),
  "core/merchants/rules/order-parcel.ts": contract("merchants/api-parcels"),
  "core/merchants/rules/order.ts": contract("merchants/api-orders"),
  "core/platform/schema/fault.ts": contract("http/api-errors"),
  "core/platform/schema/path-id.ts": contract("shipments/api-detail"),
  "core/platform/schema/published-schema.ts": contract(
    "http/published-schemas",
    "http/api-openapi",
  ),
  "core/platform/schema/rejected-value.ts": contract("http/api-errors"),
  "core/setup/rules/merge-said.ts": contract("setup/setup-file"),
  "core/setup/rules/setup.ts": contract("setup/setup-file"),
  "core/shipments/rules/erase.ts": contract("shipments/erase-personal-data"),
  "core/shipments/rules/import-callback.ts": contract("shipments/api-import"),
  "core/shipments/rules/import-item.ts": contract("shipments/api-import"),
  "core/shipments/rules/import-result.ts": contract("shipments/api-import"),
  "core/shipments/rules/new-shipment.ts": contract("shipments/api-create"),
  "core/shipments/rules/refold.ts": contract("statuses/mapping", "shipments/history-limit"),
  "core/shipments/rules/shipment.ts": contract("shipments/api-create"),
  "core/shipments/rules/shipment-view.ts": contract("shipments/api-detail", "search/api-search"),
  "core/shipments/rules/tracking-link.ts": contract("shipments/api-create"),
  "core/statuses/rules/compare-catalogues.ts": contract("statuses/panel-catalogue-file"),
  "core/statuses/rules/map-status.ts": contract("statuses/mapping"),
  "core/statuses/rules/merge-catalogue.ts": contract("setup/setup-file"),
  "core/statuses/rules/status-details.ts": contract("setup/setup-file"),
  "core/webhooks/rules/alert-mail.ts": contract("webhooks/webhooks-alert-mail"),
  "core/webhooks/rules/webhook-endpoint.ts": contract("panel/webhooks-panel"),
  "core/webhooks/rules/webhook-request.ts": contract("webhooks/webhooks-sent-request"),
  "core/webhooks/rules/webhook-v1.ts": contract("webhooks/webhooks-v1"),
};
