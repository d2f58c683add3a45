/**
 * Who changed what in the control panel. An entry waits in a log until the analytics have inserted it into ClickHouse, where it is
 * kept; whoever reads joins both. Each tenant has room of its own in the log: one that fills it can change nothing more until
 * ClickHouse takes entries again, and nobody's entries make way for another's.
 */
import { type Redis, run, script } from "#core/platform/redis/client.ts";
import {
  AUDIT_LOG,
  AUDIT_TENANTS_KEY,
  logCountsKey,
  OLD_AUDIT_KEY,
} from "#core/platform/redis/keys.ts";
import { announce } from "#core/platform/redis/wake.ts";
import { limit } from "#core/platform/schema/limit.ts";
import appendSource from "./append-audit.lua" with { type: "text" };

const appendScript = script(appendSource);

/** Entries of the operators that wait for ClickHouse: 25 MB as a rule. */
export const OPERATOR_ENTRIES_WAITING = limit(
  50_000,
  "entries of the operators' audit log that wait for ClickHouse",
  "503 to the operators' changes until ClickHouse takes entries",
);
export const TENANT_ENTRIES_WAITING = limit(
  5_000,
  "entries of a company's or courier's audit log that wait for ClickHouse",
  "503 to the tenant's changes until ClickHouse takes entries",
);
/** Of the values before and after, each as JSON; longer ones are replaced by their length. */
const AUDIT_VALUE_BYTES = limit(4_096, "a value in the audit log", "its length instead");
const AUDIT_ENTRIES_SCANNED = limit(
  5_000,
  "waiting entries looked at for a page of the audit log",
  "the answer has a cursor",
);
const READ_AT_ONCE = 500;
/** Entries of the log before this one have sequence numbers of their own from here on. */
const OLD_SEQUENCE = 1_000_000;

export const OPERATORS = "operators";

export interface AuditEntry {
  /** When it was written, Redis clock, milliseconds, and a sequence number. */
  readonly id: string;
  /** `operators`, `company <code>` or `courier <code>`: those of whom the actor is one; empty of an old entry. */
  readonly tenant: string;
  readonly atMs: number;
  readonly actor: string;
  readonly action: string;
  readonly target: string;
  readonly before: unknown;
  readonly after: unknown;
}

export async function writeAudit(redis: Redis, entry: Omit<AuditEntry, "id">): Promise<void> {
  const { tenant, atMs, actor, action, target, before, after } = entry;
  const keys = [AUDIT_LOG, AUDIT_TENANTS_KEY, logCountsKey(AUDIT_LOG)];
  const fields = { at: String(atMs), actor, action, target };
  const values = { before: jsonOf(before), after: jsonOf(after) };
  const args = [tenant, ...Object.entries({ ...fields, ...values }).flat()];
  await run(redis, appendScript, keys, args);
  announce(redis, "audit");
}

function jsonOf(value: unknown): string {
  const text = JSON.stringify(value ?? null);
  const bytes = Buffer.byteLength(text);
  return bytes <= AUDIT_VALUE_BYTES ? text : JSON.stringify({ leftOutBytes: bytes });
}

/**
 * Asked before a change, since one that is made must be written down. Calls under way at that moment may exceed the limit.
 * @returns whether another entry of the tenant may wait
 */
export async function hasAuditCapacity(redis: Redis, tenant: string): Promise<boolean> {
  const fields = [`logged ${tenant}`, `taken ${tenant}`];
  const [logged, taken] = await redis.hmGet(AUDIT_TENANTS_KEY, fields);
  const limit = tenant === OPERATORS ? OPERATOR_ENTRIES_WAITING : TENANT_ENTRIES_WAITING;
  return Number(logged ?? 0) - Number(taken ?? 0) < limit;
}

/** Parts of the texts; null = any. */
export interface AuditFilter {
  readonly tenant: string | null;
  readonly actor: string | null;
  readonly target: string | null;
  readonly fromMs: number;
  readonly toMs: number;
}

export interface AuditQuery extends AuditFilter {
  /** Only entries older than this one; null = the newest entries. */
  readonly cursor: string | null;
  readonly limit: number;
}

/** An `AuditEntry`'s id. */
export const AUDIT_CURSOR = /^(\d{1,15})-(\d{1,15})$/;

export function auditPlace(id: string): { readonly ms: number; readonly sequence: number } {
  const [, ms = "0", sequence = "0"] = AUDIT_CURSOR.exec(id) ?? [];
  return { ms: Number(ms), sequence: Number(sequence) };
}

export function newestFirst(one: Pick<AuditEntry, "id">, other: Pick<AuditEntry, "id">): number {
  const [first, second] = [auditPlace(one.id), auditPlace(other.id)];
  return second.ms - first.ms || second.sequence - first.sequence;
}

export interface WaitingEntries {
  readonly items: readonly AuditEntry[];
  /** Down to which entry the log was looked through; null = all of it. */
  readonly lookedTo: string | null;
}

/** Entries that ClickHouse may not have yet, the newest first. */
export async function readWaitingAudit(redis: Redis, query: AuditQuery): Promise<WaitingEntries> {
  const logs = [
    { key: AUDIT_LOG, offset: 0 },
    { key: OLD_AUDIT_KEY, offset: OLD_SEQUENCE },
  ];
  const both = await Promise.all(logs.map((log) => readLog(redis, log, query)));
  const lookedTo = both
    .flatMap(({ lookedTo: id }) => (id === null ? [] : [{ id }]))
    .sort(newestFirst)[0];
  const items = both.flatMap((one) => one.items).sort(newestFirst);
  // What lies behind the place that both logs were looked through to comes with a later page.
  const complete = items.filter((one) => !lookedTo || newestFirst(one, lookedTo) <= 0);
  return { items: complete, lookedTo: lookedTo?.id ?? null };
}

interface StoredLog {
  readonly key: string;
  readonly offset: number;
}

async function readLog(
  redis: Redis,
  { key, offset }: StoredLog,
  { cursor, limit, ...filter }: AuditQuery,
): Promise<WaitingEntries> {
  const items: AuditEntry[] = [];
  let end = cursor === null ? "+" : endBefore(cursor, offset);
  let lookedTo: string | null = null;
  for (let scanned = 0; scanned < AUDIT_ENTRIES_SCANNED; scanned += READ_AT_ONCE) {
    const read = (await redis.xRevRange(key, end, "-", { COUNT: READ_AT_ONCE })) ?? [];
    for (const { id, message } of read) {
      const entry = auditEntryOf(id, message, offset);
      lookedTo = entry.id;
      if (isAsked(entry, filter)) items.push(entry);
      if (items.length === limit) return { items, lookedTo };
    }
    const last = read.at(-1);
    if (!last || read.length < READ_AT_ONCE) return { items, lookedTo: null };
    end = `(${last.id}`;
  }
  return { items, lookedTo };
}

/** Of a stream, the place before an entry of either. */
function endBefore(cursor: string, offset: number): string {
  const { ms, sequence } = auditPlace(cursor);
  const own = sequence - offset;
  return own > 0 ? `(${ms}-${own}` : `(${ms}-0`;
}

/** @param offset of the sequence numbers of its log */
export function auditEntryOf(
  id: string,
  fields: Readonly<Record<string, string>>,
  offset = 0,
): AuditEntry {
  const { tenant = "", at = "0", actor = "", action = "", target = "" } = fields;
  const { before = "null", after = "null" } = fields;
  const { ms, sequence } = auditPlace(id);
  return {
    id: `${ms}-${sequence + offset}`,
    tenant,
    atMs: Number(at),
    actor,
    action,
    target,
    before: JSON.parse(before),
    after: JSON.parse(after),
  };
}

function isAsked(entry: AuditEntry, filter: AuditFilter): boolean {
  const { tenant, actor, target, fromMs, toMs } = filter;
  return (
    entry.atMs >= fromMs &&
    entry.atMs <= toMs &&
    (tenant === null || entry.tenant.includes(tenant)) &&
    (actor === null || entry.actor.includes(actor)) &&
    (target === null || entry.target.includes(target))
  );
}

/** The oldest entries of the log before this one, which versions that still run may write. */
export async function readOldAudit(
  redis: Redis,
): Promise<readonly { readonly streamId: string; readonly entry: AuditEntry }[]> {
  const read = (await redis.xRange(OLD_AUDIT_KEY, "-", "+", { COUNT: READ_AT_ONCE })) ?? [];
  return read.map(({ id, message }) => ({
    streamId: id,
    entry: auditEntryOf(id, message, OLD_SEQUENCE),
  }));
}

/** Once ClickHouse has them. */
export async function forgetOldAudit(redis: Redis, streamIds: readonly string[]): Promise<void> {
  await redis.xDel(OLD_AUDIT_KEY, [...streamIds]);
}
