/** Labels in the company's partition: claimed before the carrier is called, kept for a while, confirmed once. */
import { randomBytes } from "node:crypto";
import { type LabelRecord, labelDigest, labelDigestAsGiven } from "#core/merchants/rules/label.ts";
import { type Slip, type SlipHead, type SlipRow, slipRow } from "#core/merchants/rules/slip.ts";
import { type Redis, run, script } from "#core/platform/redis/client.ts";
import { digestOf } from "#core/platform/redis/digest.ts";
import { companyKeys, companyPartition } from "#core/platform/redis/keys.ts";
import { type Lock, type LockTerms, takeLock } from "#core/platform/redis/lock.ts";
import { idAt, idPartition, idStride } from "#core/platform/redis/partitions.ts";
import { readFields } from "#core/platform/redis/read-fields.ts";
import { swapField } from "#core/platform/redis/swap-field.ts";
import { limit } from "#core/platform/schema/limit.ts";
import { hashToken } from "#core/platform/secrets/secrets.ts";
import claimIdSource from "./claim-id.lua" with { type: "text" };
import claimSource from "./claim-label.lua" with { type: "text" };
import confirmSource from "./confirm-labels.lua" with { type: "text" };
import { ownRecord } from "./own-record.ts";
import settleSource from "./settle-label.lua" with { type: "text" };
import voidSource from "./void-label.lua" with { type: "text" };

const claimScript = script(claimSource);
const claimIdScript = script(claimIdSource);
const settleScript = script(settleSource);
const confirmScript = script(confirmSource);
const voidScript = script(voidSource);

/** Labels, transmissions and the memory of their references: past every claim a merchant has against a carrier. */
const KEPT_MS = 400 * 86_400_000;

export interface LabelOwner {
  readonly companyId: number;
  readonly channelId: number;
}

export interface LabelClaim {
  readonly kind: "new" | "made" | "busy" | "unsure";
  readonly id: number;
  readonly token: string;
  /** Key of the claim itself. */
  readonly claimKey: string;
}

/** @param goneAfterMs a claimant without an outcome counts as gone: longer than any call of a carrier takes */
export async function claimLabel(
  redis: Redis,
  { companyId, channelId }: LabelOwner,
  courier: string,
  reference: string,
  goneAfterMs: number,
): Promise<LabelClaim> {
  const partition = companyPartition(companyId);
  const keys = companyKeys(partition);
  const plain = keys.labelClaim(channelId, labelDigest(courier, reference));
  const asGiven = keys.labelClaim(channelId, labelDigestAsGiven(courier, reference));
  const token = randomBytes(12).toString("base64url");
  const isOlder =
    asGiven !== plain && !(await redis.exists(plain)) && (await redis.exists(asGiven)) === 1;
  const claimKey = isOlder ? asGiven : plain;
  const holder = await redis.get(claimKey);
  const id = holder === null ? idAt(await redis.incr(keys.labelIds), partition) : Number(holder);
  const isNew = holder === null ? "1" : "0";
  const kind = await run<LabelClaim["kind"] | "other">(
    redis,
    claimScript,
    [claimKey, keys.label(id)],
    [String(id), isNew, token, String(goneAfterMs), String(KEPT_MS)],
  );
  // It was claimed or released since it was read: the next read shows by whom.
  return { kind: kind === "other" ? "busy" : kind, id, token, claimKey };
}

/** What a claim ends with. "free": the carrier was surely not called; "unsure": it may have been. */
export type Settlement =
  | { readonly kind: "made"; readonly record: LabelRecord; readonly labels: readonly string[] }
  | { readonly kind: "free" }
  | { readonly kind: "unsure" };

export async function settleLabel(
  redis: Redis,
  { companyId, channelId }: LabelOwner,
  { id, token, claimKey }: LabelClaim,
  settlement: Settlement,
): Promise<void> {
  const keys = companyKeys(companyPartition(companyId));
  const made =
    settlement.kind === "made"
      ? [
          JSON.stringify(settlement.record),
          JSON.stringify(settlement.labels),
          ...[id, settlement.record.createdAtMs, KEPT_MS].map(String),
        ]
      : [];
  await run<number>(
    redis,
    settleScript,
    [claimKey, keys.label(id), keys.channelLabels(channelId)],
    [token, settlement.kind, ...made],
  );
}

export interface StoredLabel {
  readonly id: number;
  readonly record: LabelRecord;
  /** Null while the label is not confirmed. */
  readonly transmission: Transmission | null;
  readonly voidedAtMs: number | null;
}

export interface Transmission {
  readonly id: number;
  /** Secret part of the slip's address. */
  readonly slipToken: string;
}

/** Every label of the channel among the ids, in their order, without their contents. */
export async function readLabels(
  redis: Redis,
  { companyId, channelId }: LabelOwner,
  ids: readonly number[],
): Promise<StoredLabel[]> {
  const partition = companyPartition(companyId);
  const own = ids.filter((id) => idPartition(id) === partition);
  if (own.length === 0) return [];
  const names = own.map((id) => companyKeys(partition).label(id));
  const fields = ["d", "tx", "slip", "vd"];
  const rows = await readFields<(string | null)[]>(redis, names, fields);
  return own.flatMap((id, at) => {
    const [text, transmissionId, slipToken, voidedAt] = rows[at] ?? [];
    const record = ownRecord<LabelRecord>(text, channelId);
    if (!record) return [];
    const transmission =
      transmissionId && slipToken ? { id: Number(transmissionId), slipToken } : null;
    return [{ id, record, transmission, voidedAtMs: voidedAt ? Number(voidedAt) : null }];
  });
}

export async function readLabelContents(
  redis: Redis,
  { companyId }: LabelOwner,
  id: number,
): Promise<string[]> {
  const text = await redis.hGet(companyKeys(companyPartition(companyId)).label(id), "l");
  return text ? JSON.parse(text) : [];
}

/** Labels read in one step of a list. */
const LABELS_PER_STEP = 200;
/** Labels of one list that a filter leaves out. */
export const LABELS_PER_LIST = limit(
  1_000,
  "labels that a list with a filter reads",
  "the page is shorter, and its cursor goes on",
);

export interface LabelPage {
  readonly labels: readonly StoredLabel[];
  /** Where the next page goes on; null = this was the last one. */
  readonly nextId: number | null;
}

/**
 * The channel's labels, the latest first, without their contents.
 * @param afterId the label that the page before ended with; null = from the latest on
 */
export async function listLabels(
  redis: Redis,
  owner: LabelOwner,
  page: { readonly afterId: number | null; readonly limit: number },
  isWanted: (label: StoredLabel) => boolean,
): Promise<LabelPage> {
  const key = companyKeys(companyPartition(owner.companyId)).channelLabels(owner.channelId);
  const rank = page.afterId === null ? -1 : await redis.zRevRank(key, String(page.afterId));
  if (rank === null) return { labels: [], nextId: null };
  const labels: StoredLabel[] = [];
  for (let read = 0; read < LABELS_PER_LIST; read += LABELS_PER_STEP) {
    const from = rank + 1 + read;
    const names = await redis.zRange(key, from, from + LABELS_PER_STEP - 1, { REV: true });
    const ids = names.map(Number);
    for (const label of await readLabels(redis, owner, ids)) {
      if (isWanted(label)) labels.push(label);
      if (labels.length === page.limit) return { labels, nextId: label.id };
    }
    const last = ids.at(-1);
    if (last === undefined || ids.length < LABELS_PER_STEP) return { labels, nextId: null };
    if (read + LABELS_PER_STEP >= LABELS_PER_LIST) return { labels, nextId: last };
  }
  return { labels, nextId: null };
}

/** The carrier has voided it: its sheets go, and its reference can have another label. */
export function voidLabel(
  redis: Redis,
  { companyId, channelId }: LabelOwner,
  { id, record: { courier, reference } }: StoredLabel,
  nowMs: number,
): Promise<"voided" | "confirmed" | "missing"> {
  const keys = companyKeys(companyPartition(companyId));
  const digests = [labelDigest(courier, reference), labelDigestAsGiven(courier, reference)];
  const claims = [...new Set(digests)].map((digest) => keys.labelClaim(channelId, digest));
  return run(redis, voidScript, [keys.label(id), ...claims], [String(id), String(nowMs)]);
}

/**
 * Locks the labels of a carrier for one confirmation or voiding at a time.
 * @returns null if others hold the lock for the whole wait
 */
export function lockConfirmation(
  redis: Redis,
  { companyId, channelId }: LabelOwner,
  carrier: string,
  terms: LockTerms,
): Promise<Lock | null> {
  const key = companyKeys(companyPartition(companyId)).confirmLock(channelId, carrier);
  return takeLock(redis, key, terms);
}

/** The content of a confirmation request: while its outcome is unknown, an equal request is the same confirmation. */
export interface AskedConfirmation {
  readonly courier: string;
  readonly labelIds: readonly number[];
  readonly pickup: string | null;
}

/** @returns the id of the transmission that the confirmation will open */
export async function claimTransmission(
  redis: Redis,
  owner: LabelOwner,
  asked: AskedConfirmation,
): Promise<number> {
  const partition = companyPartition(owner.companyId);
  const { transmissionIds } = companyKeys(partition);
  return run<number>(
    redis,
    claimIdScript,
    [claimKeyOf(owner, asked), transmissionIds],
    [String(partition), String(idStride()), String(KEPT_MS)],
  );
}

/** The carrier has said that it did nothing: the next attempt is a new confirmation. */
export async function freeTransmission(
  redis: Redis,
  owner: LabelOwner,
  asked: AskedConfirmation,
): Promise<void> {
  await redis.del(claimKeyOf(owner, asked));
}

function claimKeyOf({ companyId, channelId }: LabelOwner, asked: AskedConfirmation): string {
  const { courier, labelIds, pickup } = asked;
  const ids = labelIds.toSorted((one, other) => one - other);
  const digest = digestOf(JSON.stringify([courier, pickup, ids])).toString("base64url", 0, 16);
  return companyKeys(companyPartition(companyId)).transmissionClaim(channelId, digest);
}

/**
 * Opens a transmission: its labels, the address of its slip and the content of the slip are stored atomically, and the
 * confirmation's claim is released with it.
 * @param confirmed requested labels that the carrier has not refused
 * @returns the labels that are in it; none if all of them are in another transmission already
 */
export async function openTransmission(
  redis: Redis,
  owner: LabelOwner,
  { id, slipToken }: Transmission,
  asked: AskedConfirmation,
  head: SlipHead,
  confirmed: readonly StoredLabel[],
): Promise<number[]> {
  const keys = companyKeys(companyPartition(owner.companyId));
  const marks = await run<number[]>(
    redis,
    confirmScript,
    [
      claimKeyOf(owner, asked),
      keys.slip(hashToken(slipToken)),
      keys.transmission(owner.channelId, id),
      ...confirmed.map((label) => keys.label(label.id)),
    ],
    [
      String(id),
      slipToken,
      String(KEPT_MS),
      JSON.stringify(head),
      ...confirmed.flatMap((label) => [String(label.id), JSON.stringify(slipRow(label.record))]),
    ],
  );
  return confirmed.flatMap((label, at) => (marks[at] === 1 ? [label.id] : []));
}

export interface OpenedTransmission extends Transmission {
  readonly head: SlipHead;
  readonly labelIds: readonly number[];
}

/** A transmission of the channel; null if there is none. */
export async function readTransmission(
  redis: Redis,
  { companyId, channelId }: LabelOwner,
  id: number,
): Promise<OpenedTransmission | null> {
  const key = companyKeys(companyPartition(companyId)).transmission(channelId, id);
  const [head, slipToken, labelIds] = await redis.hmGet(key, ["head", "slip", "labels"]);
  if (!head || !slipToken || !labelIds) return null;
  return { id, slipToken, head: JSON.parse(head), labelIds: JSON.parse(labelIds) };
}

const SLIP_BYTES = 32;
/** Of so many bytes in base64url. */
const SLIP_LENGTH = 43;

/** The partition comes first, in one or two digits, so that the address alone is enough to find the slip. */
export function newSlipToken({ companyId }: LabelOwner): string {
  const digits = companyPartition(companyId).toString(16);
  return `${digits}${randomBytes(SLIP_BYTES).toString("base64url")}`;
}

/** The slip behind a secret address; null when there is none. */
export async function readSlip(redis: Redis, slipToken: string): Promise<Slip | null> {
  if (!/^[0-9a-f]{1,2}[\w-]{43}$/.test(slipToken)) return null;
  const partition = Number.parseInt(slipToken.slice(0, -SLIP_LENGTH), 16);
  const key = companyKeys(partition).slip(hashToken(slipToken));
  const [head, rows] = await redis.hmGet(key, ["head", "rows"]);
  if (!head || !rows) return null;
  return { ...(JSON.parse(head) as SlipHead), rows: JSON.parse(rows) as SlipRow[] };
}

/** Labels looked at in one call. */
const LABELS_PER_READ = 500;

/** Forgets the recipients of these labels of the channel: their sheets, what is kept of the address, their rows of slips. */
export async function forgetLabels(
  redis: Redis,
  owner: LabelOwner,
  isWanted: (record: LabelRecord) => boolean,
): Promise<void> {
  const partition = companyPartition(owner.companyId);
  const keys = companyKeys(partition);
  const last = Number((await redis.get(keys.labelIds)) ?? 0);
  for (let from = 1; from <= last; from += LABELS_PER_READ) {
    const count = Math.min(LABELS_PER_READ, last - from + 1);
    const ids = Array.from({ length: count }, (_, at) => idAt(from + at, partition));
    const labels = await readLabels(redis, owner, ids);
    for (const label of labels) if (isWanted(label.record)) await forgetLabel(redis, owner, label);
  }
}

/** Each field is replaced only where it stands: a label that has expired is not made again. */
async function forgetLabel(
  redis: Redis,
  { companyId }: LabelOwner,
  { id, record, transmission }: StoredLabel,
): Promise<void> {
  const keys = companyKeys(companyPartition(companyId));
  const key = keys.label(id);
  const consignee = { name: "", city: "", postcode: "", country: record.consignee.country };
  const change = { from: JSON.stringify(record), to: JSON.stringify({ ...record, consignee }) };
  await swapField(redis, key, "d", change);
  const sheets = await redis.hGet(key, "l");
  if (sheets) await swapField(redis, key, "l", { from: sheets, to: "[]" });
  const slipToken = transmission?.slipToken ?? (await redis.hGet(key, "slip"));
  if (!slipToken) return;
  const slip = keys.slip(hashToken(slipToken));
  const number = record.trackingNumbers[0]?.number ?? "";
  const erase = (row: SlipRow): SlipRow =>
    row.trackingNumber === number && row.reference === record.reference
      ? { ...row, name: "", locality: "" }
      : row;
  for (;;) {
    const rows = await redis.hGet(slip, "rows");
    if (!rows) return;
    const to = JSON.stringify((JSON.parse(rows) as SlipRow[]).map(erase));
    if (await swapField(redis, slip, "rows", { from: rows, to })) return;
  }
}
