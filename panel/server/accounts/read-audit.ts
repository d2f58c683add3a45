/** A page of the audit log: what waits in Redis and what ClickHouse has, each entry once. */
import type { Insights } from "#analytics/insights.ts";
import {
  type AuditEntry,
  type AuditQuery,
  newestFirst,
  readWaitingAudit,
} from "#core/accounts/store/audit-log.ts";
import { Problem } from "#core/platform/errors/problem.ts";
import type { Redis } from "#core/platform/redis/client.ts";

export interface AuditPage {
  readonly items: readonly AuditEntry[];
  readonly nextCursor: string | null;
  /** What ClickHouse has is not among them, since it does not answer. */
  readonly isPartial: boolean;
}

/**
 * Redis is read first: what leaves it meanwhile has been inserted before.
 * @param insights undefined where the process has no analytics
 */
export async function readAudit(
  redis: Redis,
  insights: Pick<Insights, "audit"> | undefined,
  query: AuditQuery,
): Promise<AuditPage> {
  const { items, lookedTo } = await readWaitingAudit(redis, query);
  const kept = await insights?.audit(query, lookedTo).catch((error) => {
    if (error instanceof Problem) return undefined;
    throw error;
  });
  const byId = new Map([...items, ...(kept ?? [])].map((entry) => [entry.id, entry]));
  const all = [...byId.values()].sort(newestFirst);
  const page = all.slice(0, query.limit);
  const isFull = page.length === query.limit;
  const nextCursor = isFull ? (page.at(-1)?.id ?? null) : lookedTo;
  return { items: page, nextCursor, isPartial: kept === undefined };
}
