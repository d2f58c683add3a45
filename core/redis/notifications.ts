/** Notifications sent about a shipment (document 1, "Shipment detail"). */
import type { Redis } from "./client.ts";

export interface SentNotification {
  readonly type: "email" | "sms" | "webhook";
  readonly result: "OK" | "KO";
  readonly sentAtMs: number;
  /** Address, phone or URL. */
  readonly recipient: string;
  /** Status of the shipment at the time. */
  readonly shipmentStatus: string;
  /** What went wrong; null when OK. */
  readonly error: string | null;
}

/** Most recent first. Nothing is sent yet. */
export async function readNotifications(
  _redis: Redis,
  _shipmentId: number,
): Promise<SentNotification[]> {
  return [];
}
