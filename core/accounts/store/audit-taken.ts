/** How far ClickHouse has taken over each tenant's entries of the audit log, so that they make room for others. */

import type { LogItem } from "#core/platform/log/consumer.ts";
import raiseSource from "#core/platform/log/raise-field.lua" with { type: "text" };
import { type Redis, run, script } from "#core/platform/redis/client.ts";
import { AUDIT_TENANTS_KEY } from "#core/platform/redis/keys.ts";

const raiseScript = script(raiseSource);

/** Entries taken again, dead letters of long ago too, change nothing. */
export async function markAuditTaken(redis: Redis, entries: readonly LogItem[]): Promise<void> {
  const furthest = new Map<string, number>();
  for (const { fields } of entries) {
    const tenant = fields["tenant"] ?? "";
    furthest.set(tenant, Math.max(furthest.get(tenant) ?? 0, Number(fields["n"] ?? 0)));
  }
  await Promise.all(
    [...furthest].map(([tenant, n]) =>
      run(redis, raiseScript, [AUDIT_TENANTS_KEY], [`taken ${tenant}`, String(n)]),
    ),
  );
}
