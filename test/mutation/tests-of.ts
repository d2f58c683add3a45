/** Which tests may kill the mutants of a file. */
import { dirname, join, normalize } from "node:path";

const IMPORT = /(?:from|import) "(#[^"]+|\.[^"]+)"/g;

export interface Tests {
  /** Run first. */
  readonly near: readonly string[];
  /** Run where the others pass. */
  readonly far: readonly string[];
}

/** Unit tests that import a file of `core/domain`: themselves, and through others. What is listed for it is run last. */
export async function testsOfRule(
  file: string,
): Promise<Tests & { readonly listed: readonly string[] }> {
  const tests = [...new Bun.Glob("test/unit/*.test.ts").scanSync(".")].toSorted();
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
  const tests = [...new Bun.Glob("test/contract/*.test.ts").scanSync(".")].toSorted();
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
  "core/redis/client/run-together.lua": contract("client-scripts"),
  "core/redis/shipments/commit.lua": contract("commits", "track", "search-columns", "mapping"),
  "core/redis/shipments/create.lua": contract("create-rows", "create-shipments", "api-create"),
  "core/redis/shipments/remove.lua": contract("archive-scripts"),
  "core/redis/shipments/restore.lua": contract("archive-scripts"),
  "core/redis/shipments/allocate-batches.lua": contract("archive-batch-scripts"),
  "core/redis/shipments/read-summary.lua": contract("archive-batch-scripts"),
  "core/redis/shipments/read-whole.lua": contract("archive-scripts"),
  "core/redis/shipments/retire-batches.lua": contract("archive-batch-scripts"),
  "core/redis/shipments/parts/company-clock.lua": contract("commit-script"),
  "core/redis/shipments/parts/exact-values.lua": contract("archive-scripts"),
  "core/redis/shipments/parts/row-log.lua": contract("archive-scripts"),
  "core/redis/shipments/parts/side-digest.lua": contract("archive-scripts"),
  "core/redis/shipments/parts/unmapped-codes.lua": contract("commit-script"),
  "core/redis/merchant/take-work.lua": contract("work-queue"),
  "core/redis/merchant/settle-work.lua": contract("work-queue"),
  "core/redis/merchant/accept-job.lua": contract("work-queue"),
  "core/redis/webhooks/alert.lua": contract("webhook-script-limits"),
  "core/redis/webhooks/drain.lua": contract("webhook-script-limits"),
  "core/redis/webhooks/resume.lua": contract("webhook-script-limits"),
  "core/redis/webhooks/decide.lua": contract(
    "webhooks-decided-twice",
    "webhook-script-limits",
    "webhooks-results",
  ),
  "core/redis/webhooks/lease.lua": contract("webhooks-leased-lanes", "webhook-script-limits"),
  "core/redis/webhooks/finish.lua": contract(
    "webhook-script-limits",
    "webhooks-results",
    "webhooks-leases",
  ),
  "core/redis/webhooks/reclaim.lua": contract("webhook-script-limits"),
  "core/redis/webhooks/renew.lua": contract("webhook-script-limits"),
  "core/redis/webhooks/replay.lua": contract("webhook-script-limits"),
};

/** Contract tests of rules whose answers come out at a port: what the unit tests do not notice is tried on them too. */
const TESTS_OF_RULES: Readonly<Record<string, readonly string[]>> = {
  "core/domain/accounts/account-mail.ts": contract("panel-accounts"),
  "core/domain/accounts/masked.ts": contract("panel-audit"),
  "core/domain/accounts/roles.ts": ["test/security/panel-roles.test.ts"],
  "core/domain/benchmarks/latency-buckets.ts": contract("webhooks-log"),
  "core/domain/courier-events/match-reference.ts": contract("matching"),
  "core/domain/labels/label-carrier.ts": contract("api-labels"),
  "core/domain/labels/label.ts": contract("api-labels"),
  "core/domain/labels/slip.ts": contract("api-confirm"),
  "core/domain/labels/stock-release.ts": contract("api-stock-release"),
  "core/domain/messages/compose-message.ts": contract("api-notifications", "notify-status"),
  "core/domain/messages/message-values.ts": contract("api-notifications", "notify-status"),
  "core/domain/messages/notification.ts": contract("api-notifications"),
  "core/domain/orders/address-check.ts": contract("api-addresses"),
  "core/domain/orders/measure.ts": contract("api-create"),
  "core/domain/orders/order-parcel.ts": contract("api-parcels"),
  "core/domain/orders/order.ts": contract("api-orders"),
  "core/domain/schema/fault.ts": contract("api-errors"),
  "core/domain/schema/path-id.ts": contract("api-detail"),
  "core/domain/schema/published-schema.ts": contract("published-schemas", "api-openapi"),
  "core/domain/schema/rejected-value.ts": contract("api-errors"),
  "core/domain/setup/merge-said.ts": contract("setup-file"),
  "core/domain/setup/setup.ts": contract("setup-file"),
  "core/domain/shipments/erase.ts": contract("erase-personal-data"),
  "core/domain/shipments/import-callback.ts": contract("api-import"),
  "core/domain/shipments/import-item.ts": contract("api-import"),
  "core/domain/shipments/import-result.ts": contract("api-import"),
  "core/domain/shipments/new-shipment.ts": contract("api-create"),
  "core/domain/shipments/refold.ts": contract("mapping", "history-limit"),
  "core/domain/shipments/shipment.ts": contract("api-create"),
  "core/domain/shipments/shipment-view.ts": contract("api-detail", "api-search"),
  "core/domain/shipments/tracking-link.ts": contract("api-create"),
  "core/domain/statuses/compare-catalogues.ts": contract("panel-catalogue-file"),
  "core/domain/statuses/map-status.ts": contract("mapping"),
  "core/domain/statuses/merge-catalogue.ts": contract("setup-file"),
  "core/domain/statuses/status-details.ts": contract("setup-file"),
  "core/domain/webhooks/alert-mail.ts": contract("webhooks-alert-mail"),
  "core/domain/webhooks/webhook-endpoint.ts": contract("webhooks-panel"),
  "core/domain/webhooks/webhook-request.ts": contract("webhooks-sent-request"),
  "core/domain/webhooks/webhook-v1.ts": contract("webhooks-v1"),
};
