/** How far ClickHouse has taken over each tenant's entries of the audit log, so that they make room for others. */
import { type Redis, run, script } from "#core/redis/client/client.ts";
import { AUDIT_TENANTS_KEY } from "#core/redis/client/keys.ts";
import type { LogItem } from "./consumer.ts";
import raiseSource from "./raise-field.lua" with { type: "text" };

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
