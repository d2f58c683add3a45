/** Writes the audit log to ClickHouse; outages, redelivery and refused rows are met as in `write-batches.ts`. */

import {
  type AuditEntry,
  auditEntryOf,
  forgetOldAudit,
  readOldAudit,
} from "#core/accounts/store/audit-log.ts";
import { markAuditTaken } from "#core/accounts/store/audit-taken.ts";
import type { Failure, Handler, LogItem } from "#core/platform/log/consumer.ts";
import type { Log } from "#core/platform/process/log.ts";
import type { Ticking } from "#core/platform/process/tick.ts";
import { startTickingThroughOutages } from "#core/platform/redis/outage.ts";
import type { Pending } from "./insert-rows.ts";
import { AUDIT, auditTableRow } from "./rows.ts";
import { type InsertDeps, insertOrWait } from "./write-attempts.ts";

/** How often entries that an earlier version has written, or still writes, are looked for. */
const OLD_LOG_EVERY_MS = 5_000;

export function auditHandler(deps: InsertDeps): Handler {
  return (entries) => {
    const pending: Pending[] = [];
    const failures: Failure[] = [];
    for (const entry of entries) {
      try {
        pending.push({ entry, row: auditTableRow(auditEntryOf(entry.id, entry.fields)) });
      } catch (error) {
        failures.push({ entry, reason: String(error) });
      }
    }
    return insertOrWait(deps, AUDIT, { pending, failures }, () =>
      markAuditTaken(deps.redis, entries),
    );
  };
}

/** Moves the entries of the previous version's audit log to ClickHouse. A row that is written twice counts once. */
export function startMovingOldAudit(deps: InsertDeps, log: Log): Ticking {
  return startTickingThroughOutages(log, "old audit log", OLD_LOG_EVERY_MS, async () => {
    const old = await readOldAudit(deps.redis);
    if (old.length === 0) return;
    const pending = old.map(({ streamId, entry }) => pendingOf(streamId, entry));
    const refused = await insertOrWait(deps, AUDIT, { pending, failures: [] }, async () => {});
    for (const { entry, reason } of refused) {
      log.error({ entry: entry.id, reason }, "an entry of the old audit log cannot be kept");
    }
    await forgetOldAudit(
      deps.redis,
      old.map(({ streamId }) => streamId),
    );
  });
}

function pendingOf(id: string, entry: AuditEntry): Pending {
  const item: LogItem = { key: "", id, fields: {} };
  return { entry: item, row: auditTableRow(entry) };
}
