/** Which shipments an event means (document 2, "Data rules" 2; design, "Reference matching"). Pure; the index is in the store. */
import { hash } from "node:crypto";
import { limit } from "#core/platform/schema/limit.ts";
import type { CourierEvent } from "./event.ts";
import { plainReference } from "./reference.ts";

/** One shipment that a reference finds. */
export interface Candidate {
  readonly shipmentId: number;
  readonly companyId: number;
  readonly channelId: number;
  /** The number is a placeholder (`isRealTrackingNumber` false): an externalId may find it under another number. */
  readonly isPlaceholder: boolean;
  readonly orderReference: string | null;
  /** Days since 1970. A shipment does not end before it. */
  readonly shipDay: number;
  /** What its reference says of a shipment that was archived; absent = it never was. */
  readonly archived?: ArchivedCandidate;
}

/** Enough to judge an event without reading the shipment. */
export interface ArchivedCandidate {
  /** UTC milliseconds, the whole hour after it; null = it had not ended. */
  readonly endedAtMs: number | null;
  /** The reference is a tracking number that it has taken on its channel. */
  readonly ownsNumber: boolean;
  /** `orderHash` of its order reference; null = it has none. */
  readonly orderHash: number | null;
}

/** 24 bits of an order reference, never 0. */
export function orderHash(orderReference: string): number {
  return hashOf(plainReference(orderReference));
}

function hashOf(text: string): number {
  return hash("sha256", text, "buffer").readUIntBE(0, 3) || 1;
}

export type Match =
  | { readonly kind: "found"; readonly candidates: readonly Candidate[] }
  | { readonly kind: "none" }
  /** The references that the event names belong to different shipments. */
  | { readonly kind: "mismatch" }
  /** An externalId without a tracking number that several shipments have. */
  | { readonly kind: "ambiguous" };

/** When each shipment ended, by id, UTC milliseconds; null = it has not. Shipments that were not read are absent. */
export type Ends = ReadonlyMap<number, number | null>;

const NONE: Match = { kind: "none" };
const MISMATCH: Match = { kind: "mismatch" };
const AMBIGUOUS: Match = { kind: "ambiguous" };

const DAY_MS = 86_400_000;
/** Couriers use numbers again: after this time the number of a shipment that has ended is another parcel's. */
export const NUMBER_REUSE_MS = limit(
  90 * DAY_MS,
  "age of a shipment's end at which another one has its number alone",
  "events no longer reach it",
);

type References = Pick<CourierEvent, "trackingNumber" | "externalId" | "senderAccount">;

/**
 * A tracking number names one parcel: the event goes to every shipment that has it. An externalId without one must find a
 * single shipment.
 * @param byNumber candidates of the event's tracking number
 * @param byExternal candidates of its externalId under its sender account
 * @param accountsOf sender accounts of a channel at this courier
 */
export function matchReference(
  event: References,
  byNumber: readonly Candidate[],
  byExternal: readonly Candidate[],
  accountsOf: (channelId: number) => readonly string[],
): Match {
  if (event.trackingNumber === undefined) return matchExternal(byExternal);
  const waiting = waitingFor(byNumber, byExternal);
  const all = waiting === null ? byNumber : [...byNumber, waiting];
  if (all.length === 0) return byExternal.length === 0 ? NONE : MISMATCH;
  const own = narrowed(all, event.senderAccount, accountsOf);
  const candidates = own.filter((candidate) => agrees(candidate, event.externalId));
  return candidates.length === 0 ? MISMATCH : { kind: "found", candidates };
}

function matchExternal(candidates: readonly Candidate[]): Match {
  if (candidates.length > 1) return AMBIGUOUS;
  return candidates.length === 0 ? NONE : { kind: "found", candidates };
}

/** The shipment that waits for its real number, which this event brings: the only one that its externalId finds. */
function waitingFor(
  byNumber: readonly Candidate[],
  byExternal: readonly Candidate[],
): Candidate | null {
  const [only, second] = byExternal;
  if (only === undefined || second !== undefined || !only.isPlaceholder) return null;
  return byNumber.some(({ shipmentId }) => shipmentId === only.shipmentId) ? null : only;
}

/** An externalId must agree with the order reference, where the shipment has one. */
function agrees({ orderReference, archived }: Candidate, externalId: string | undefined): boolean {
  if (externalId === undefined) return true;
  const wanted = plainReference(externalId);
  if (orderReference !== null) return plainReference(orderReference) === wanted;
  const hash = archived?.orderHash ?? null;
  // 0.1.0 took the hash of the text as it was given.
  return hash === null || hash === orderHash(wanted) || hash === hashOf(externalId);
}

/** A sender account that none of the channels has is a gap in the configuration and excludes nobody. */
function narrowed(
  candidates: readonly Candidate[],
  account: string | undefined,
  accountsOf: (channelId: number) => readonly string[],
): readonly Candidate[] {
  if (account === undefined) return candidates;
  const wanted = plainReference(account);
  const isOwn = (one: string) => plainReference(one) === wanted;
  const own = candidates.filter(({ channelId }) => accountsOf(channelId).some(isOwn));
  return own.length > 0 ? own : candidates;
}

/**
 * Candidates that may have ended so long before that the number is another parcel's by now. Only where there are several does
 * it matter, and only for those that were shipped so long before: their ends have to be known for `withoutEnded`.
 */
export function mayHaveEnded(
  candidates: readonly Candidate[],
  occurredAtMs: number,
): readonly Candidate[] {
  if (candidates.length < 2) return [];
  return candidates.filter(({ shipDay }) => occurredAtMs - shipDay * DAY_MS > NUMBER_REUSE_MS);
}

/** The candidates without those that ended more than 90 days before the event happened; all of them where all did. */
export function withoutEnded(
  candidates: readonly Candidate[],
  occurredAtMs: number,
  ends: Ends,
): readonly Candidate[] {
  const ended = mayHaveEnded(candidates, occurredAtMs).filter(({ shipmentId }) => {
    const endedAtMs = ends.get(shipmentId) ?? null;
    return endedAtMs !== null && occurredAtMs - endedAtMs > NUMBER_REUSE_MS;
  });
  if (ended.length === 0 || ended.length === candidates.length) return candidates;
  return candidates.filter((candidate) => !ended.includes(candidate));
}

/** Personal data of an event reaches several shipments only within one company. */
export function areOfOneCompany(candidates: readonly Candidate[]): boolean {
  return candidates.every(({ companyId }) => companyId === candidates[0]?.companyId);
}
