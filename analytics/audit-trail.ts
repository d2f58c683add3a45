/** What ClickHouse has of the audit log. Nothing but the panel asks for it; SQL access does not reach it. */
import { type AuditEntry, type AuditQuery, auditPlace } from "#core/accounts/store/audit-log.ts";
import readAuditSql from "./queries/read-audit.sql" with { type: "text" };

type Rows = <T>(query: string, params: Record<string, unknown>) => Promise<T[]>;

interface AuditRow extends Omit<AuditEntry, "id" | "before" | "after"> {
  readonly ms: number;
  readonly sequence: number;
  readonly before: string;
  readonly after: string;
}

/** Beyond every instant that a `DateTime64(3)` holds. */
const END_MS = Date.UTC(2299, 0, 1);

/** The newest first. @param fromId the oldest entry that is wanted; null = all of them */
export async function readKeptAudit(
  rows: Rows,
  { cursor, limit, tenant, actor, target, fromMs, toMs }: AuditQuery,
  fromId: string | null,
): Promise<AuditEntry[]> {
  const end = cursor === null ? { ms: END_MS, sequence: 0 } : auditPlace(cursor);
  const from = auditPlace(fromId ?? "0-0");
  const found = await rows<AuditRow>(readAuditSql, {
    ms: Math.min(end.ms, END_MS),
    sequence: end.sequence,
    fromMs: from.ms,
    fromSequence: from.sequence,
    limit,
    tenant: tenant ?? "",
    actor: actor ?? "",
    target: target ?? "",
    atFrom: fromMs,
    atTo: toMs,
  });
  return found.map(({ ms, sequence, before, after, ...row }) => ({
    ...row,
    id: `${ms}-${sequence}`,
    atMs: Number(row.atMs),
    before: JSON.parse(before),
    after: JSON.parse(after),
  }));
}
