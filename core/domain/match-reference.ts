/** Which shipment an event means (document 2, "Data rules" 2; design: a mismatch or several matches is no guess). */
import type { CourierEvent } from "./event.ts";

/** One shipment a reference may mean. */
export interface Candidate {
  readonly shipmentId: number;
  readonly channelId: number;
  /** The number is a placeholder (`isRealTrackingNumber` false): an externalId may find it under another number. */
  readonly isPlaceholder: boolean;
  readonly orderReference: string | null;
}

export type Match =
  | { readonly kind: "found"; readonly candidate: Candidate }
  | { readonly kind: "none" }
  /** A mismatch, or more than one shipment. */
  | { readonly kind: "ambiguous" };

const NONE: Match = { kind: "none" };
const AMBIGUOUS: Match = { kind: "ambiguous" };

/**
 * @param byNumber candidates of the event's tracking number
 * @param byExternal candidates of its externalId under its sender account
 * @param accountsOf sender accounts of a channel at this courier
 */
export function matchReference(
  event: Pick<CourierEvent, "trackingNumber" | "externalId" | "senderAccount">,
  byNumber: readonly Candidate[],
  byExternal: readonly Candidate[],
  accountsOf: (channelId: number) => readonly string[],
): Match {
  if (event.trackingNumber === undefined) return only(byExternal);
  if (byNumber.length === 0) {
    if (byExternal.length === 0) return NONE;
    // The number is unknown: only a shipment that waits for its real number can be meant by it.
    return byExternal.every(({ isPlaceholder }) => isPlaceholder) ? only(byExternal) : AMBIGUOUS;
  }
  const agreeing = byNumber.filter((candidate) => agrees(candidate, event.externalId));
  return agreeing.length === 0
    ? AMBIGUOUS
    : only(narrowed(agreeing, event.senderAccount, accountsOf));
}

/** Tracking number and externalId both given must agree, where the shipment has an order reference at all. */
export function agrees(
  { orderReference }: Pick<Candidate, "orderReference">,
  externalId: string | undefined,
): boolean {
  return externalId === undefined || orderReference === null || orderReference === externalId;
}

/** The sender account narrows several candidates down; it never rejects the only one. */
function narrowed(
  candidates: readonly Candidate[],
  account: string | undefined,
  accountsOf: (channelId: number) => readonly string[],
): readonly Candidate[] {
  if (account === undefined || candidates.length === 1) return candidates;
  const own = candidates.filter(({ channelId }) => accountsOf(channelId).includes(account));
  return own.length > 0 ? own : candidates;
}

function only(candidates: readonly Candidate[]): Match {
  const [first, second] = candidates;
  if (first === undefined) return NONE;
  return second === undefined ? { kind: "found", candidate: first } : AMBIGUOUS;
}
