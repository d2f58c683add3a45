/**
 * The public address of a shipment's tracking page: `${PUBLIC_URL}/t/{id in base 36}-{random part}`. The id only finds
 * the shipment; the random part is what cannot be guessed.
 */
import { randomBytes, timingSafeEqual } from "node:crypto";

/** 128 bits. */
const RANDOM_BYTES = 16;
const FORM = /^([1-9a-z][0-9a-z]{0,7})-([A-Za-z0-9_-]{22})$/;

export interface TrackingLink {
  readonly shipmentId: number;
  readonly trackingToken: string;
}

export function newTrackingToken(): string {
  return randomBytes(RANDOM_BYTES).toString("base64url");
}

/** Null without a token. */
export function trackingUrl(
  publicUrl: string,
  shipmentId: number,
  trackingToken: string | null | undefined,
): string | null {
  return trackingToken ? `${publicUrl}/t/${shipmentId.toString(36)}-${trackingToken}` : null;
}

/** What the last part of the address says; null when it is none of ours. */
export function parseTrackingLink(text: string): TrackingLink | null {
  const [, id, trackingToken] = FORM.exec(text) ?? [];
  if (id === undefined || trackingToken === undefined) return null;
  const shipmentId = Number.parseInt(id, 36);
  return shipmentId < 1e12 ? { shipmentId, trackingToken } : null;
}

export function opens({ trackingToken }: TrackingLink, kept: string | undefined): boolean {
  if (kept === undefined || kept.length !== trackingToken.length) return false;
  return timingSafeEqual(Buffer.from(kept), Buffer.from(trackingToken));
}
