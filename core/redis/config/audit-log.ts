/** Who changed what in the control panel: a stream, the oldest entries of which go at its limit. */
import type { Redis } from "#core/redis/client/client.ts";
import { AUDIT_KEY } from "#core/redis/client/keys.ts";

/** Entries kept; the log output has every one of them without its values. */
const AUDIT_ENTRIES = 50_000;
/** Of the values before and after, each as JSON; longer ones are replaced by their length. */
const AUDIT_VALUE_BYTES = 4_096;
/** Entries looked at for one page. */
const AUDIT_ENTRIES_SCANNED = 5_000;
const READ_AT_ONCE = 500;

export interface AuditEntry {
  /** Of its entry in the stream. */
  readonly id: string;
  readonly atMs: number;
  readonly actor: string;
  readonly action: string;
  readonly target: string;
  readonly before: unknown;
  readonly after: unknown;
}

export async function writeAudit(redis: Redis, entry: Omit<AuditEntry, "id">): Promise<void> {
  const { atMs, actor, action, target, before, after } = entry;
  const fields = {
    ...{ at: String(atMs), actor, action, target },
    ...{ before: jsonOf(before), after: jsonOf(after) },
  };
  const TRIM = { strategy: "MAXLEN", threshold: AUDIT_ENTRIES } as const;
  await redis.xAdd(AUDIT_KEY, "*", fields, { TRIM });
}

function jsonOf(value: unknown): string {
  const text = JSON.stringify(value ?? null);
  const bytes = Buffer.byteLength(text);
  return bytes <= AUDIT_VALUE_BYTES ? text : JSON.stringify({ leftOutBytes: bytes });
}

export interface AuditQuery {
  /** Parts of the texts; null = any. */
  readonly actor: string | null;
  readonly target: string | null;
  readonly fromMs: number;
  readonly toMs: number;
  /** Of the page before; null = the newest entries. */
  readonly cursor: string | null;
  readonly limit: number;
}

/** Of `AUDIT_KEY`'s entries, as a cursor. */
export const AUDIT_CURSOR = /^\d{1,15}-\d{1,15}$/;

/** The newest first. A page may be empty and have a next one. */
export async function readAudit(
  redis: Redis,
  { cursor, limit, ...query }: AuditQuery,
): Promise<{ readonly items: AuditEntry[]; readonly nextCursor: string | null }> {
  const items: AuditEntry[] = [];
  let end = cursor === null ? "+" : `(${cursor}`;
  for (let scanned = 0; scanned < AUDIT_ENTRIES_SCANNED; scanned += READ_AT_ONCE) {
    const read = (await redis.xRevRange(AUDIT_KEY, end, "-", { COUNT: READ_AT_ONCE })) ?? [];
    for (const { id, message } of read) {
      const entry = entryOf(id, message);
      if (isAsked(entry, query)) items.push(entry);
      if (items.length === limit) return { items, nextCursor: id };
    }
    const last = read.at(-1);
    if (!last || read.length < READ_AT_ONCE) return { items, nextCursor: null };
    end = `(${last.id}`;
  }
  return { items, nextCursor: end.slice(1) };
}

function entryOf(id: string, fields: Readonly<Record<string, string>>): AuditEntry {
  const {
    at = "0",
    actor = "",
    action = "",
    target = "",
    before = "null",
    after = "null",
  } = fields;
  return {
    ...{ id, atMs: Number(at), actor, action, target },
    ...{ before: JSON.parse(before), after: JSON.parse(after) },
  };
}

function isAsked(
  entry: AuditEntry,
  { actor, target, fromMs, toMs }: Omit<AuditQuery, "cursor" | "limit">,
): boolean {
  return (
    entry.atMs >= fromMs &&
    entry.atMs <= toMs &&
    (actor === null || entry.actor.includes(actor)) &&
    (target === null || entry.target.includes(target))
  );
}
