/** Labels in the company's partition: claimed before the carrier is called, kept for a while, confirmed once. */
import { randomBytes } from "node:crypto";
import { type LabelRecord, labelDigest } from "#core/domain/label.ts";
import { hashToken } from "#core/secrets.ts";
import { type Redis, run, script } from "./client.ts";
import { companyKeys, companyPartition, companyTag, idPartition, PARTITIONS } from "./keys.ts";
import { type Lock, type LockTerms, takeLock } from "./lock.ts";
import claimSource from "./scripts/claim-label.lua" with { type: "text" };
import confirmSource from "./scripts/confirm-labels.lua" with { type: "text" };
import readFieldsSource from "./scripts/read-fields.lua" with { type: "text" };
import settleSource from "./scripts/settle-label.lua" with { type: "text" };

const claimScript = script(claimSource);
const settleScript = script(settleSource);
const confirmScript = script(confirmSource);
const readFieldsScript = script(readFieldsSource);

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
  const token = randomBytes(12).toString("base64url");
  const [kind, id] = await run<[LabelClaim["kind"], number]>(
    redis,
    claimScript,
    [keys.labelClaim(channelId, labelDigest(courier, reference)), keys.labelIds],
    [
      companyTag(partition),
      String(partition),
      String(PARTITIONS),
      token,
      String(goneAfterMs),
      String(KEPT_MS),
    ],
  );
  return { kind, id, token };
}

/** What a claim ends with. "free": the carrier was surely not called; "unsure": it may have been. */
export type Settlement =
  | { readonly kind: "made"; readonly record: LabelRecord; readonly labels: readonly string[] }
  | { readonly kind: "free" }
  | { readonly kind: "unsure" };

export async function settleLabel(
  redis: Redis,
  { companyId, channelId }: LabelOwner,
  { courier, reference }: { readonly courier: string; readonly reference: string },
  { id, token }: LabelClaim,
  settlement: Settlement,
): Promise<void> {
  const keys = companyKeys(companyPartition(companyId));
  const made =
    settlement.kind === "made"
      ? [JSON.stringify(settlement.record), JSON.stringify(settlement.labels)]
      : [];
  await run<number>(
    redis,
    settleScript,
    [keys.labelClaim(channelId, labelDigest(courier, reference)), keys.label(id)],
    [token, settlement.kind, ...made],
  );
}

export interface StoredLabel {
  readonly id: number;
  readonly record: LabelRecord;
  readonly transmissionId: number | null;
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
  const rows = await run<[string | null, string | null][]>(redis, readFieldsScript, names, [
    "d",
    "tx",
  ]);
  return own.flatMap((id, at) => {
    const [text, transmission] = rows[at] ?? [];
    const record: LabelRecord | null = text ? JSON.parse(text) : null;
    if (record?.channelId !== channelId) return [];
    return [{ id, record, transmissionId: transmission ? Number(transmission) : null }];
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

/** Labels of a carrier are confirmed by one caller at a time. @returns null when others are at it for the whole wait */
export function lockConfirmation(
  redis: Redis,
  { companyId, channelId }: LabelOwner,
  carrier: string,
  terms: LockTerms,
): Promise<Lock | null> {
  const key = companyKeys(companyPartition(companyId)).confirmLock(channelId, carrier);
  return takeLock(redis, key, terms);
}

export interface Transmission {
  readonly id: number;
  /** Labels that stand in it. */
  readonly labelIds: readonly number[];
  /** Secret part of the slip's address. */
  readonly slipToken: string;
}

/** @returns null when every label stands in another transmission already */
export async function openTransmission(
  redis: Redis,
  { companyId }: LabelOwner,
  labelIds: readonly number[],
): Promise<Transmission | null> {
  const partition = companyPartition(companyId);
  const keys = companyKeys(partition);
  // The partition stands in front, so that the token alone finds the slip.
  const slipToken = `${partition.toString(PARTITIONS)}${randomBytes(32).toString("base64url")}`;
  const [id = 0, ...marks] = await run<number[]>(
    redis,
    confirmScript,
    [
      keys.transmissionIds,
      keys.slip(hashToken(slipToken)),
      ...labelIds.map((label) => keys.label(label)),
    ],
    [String(partition), String(PARTITIONS), String(KEPT_MS)],
  );
  if (id === 0) return null;
  return { id, slipToken, labelIds: labelIds.filter((_, at) => marks[at] === 1) };
}

/** Keeps the slip of a transmission, PDF. */
export async function saveSlip(redis: Redis, slipToken: string, pdf: Uint8Array): Promise<void> {
  const key = slipKey(slipToken);
  if (key) await redis.hSet(key, "pdf", Buffer.from(pdf).toString("base64"));
}

/** The slip behind a secret address; null when there is none. */
export async function readSlip(redis: Redis, slipToken: string): Promise<Uint8Array | null> {
  const key = slipKey(slipToken);
  const text = key && (await redis.hGet(key, "pdf"));
  return text ? Buffer.from(text, "base64") : null;
}

function slipKey(slipToken: string): string | null {
  if (!/^[0-9a-f][\w-]{43}$/.test(slipToken)) return null;
  const partition = Number.parseInt(slipToken.slice(0, 1), PARTITIONS);
  return companyKeys(partition).slip(hashToken(slipToken));
}
