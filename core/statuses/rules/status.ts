/** Tracking statuses (document 1, "States and transitions") and the pair a status forms with its detail. */
import { Type } from "@sinclair/typebox";

export const STATUSES = [
  "WAITING_TO_COMPUTE",
  "PENDING",
  "INFO_RECEIVED",
  "IN_TRANSIT",
  "OUT_FOR_DELIVERY",
  "FAILED_ATTEMPT",
  "EXCEPTION",
  "DELAY",
  "PICKUP_POINT",
  "DEPARTED",
  "PROCESSING",
  "RETURNED",
  "DELIVERED",
] as const;

export type Status = (typeof STATUSES)[number];

export const StatusSchema = Type.Union(STATUSES.map((name) => Type.Literal(name)));

/** Document 3, "Trigger semantics": a status is a pair of status and detail. Detail 0 = none. */
export interface StatusPair {
  readonly status: Status;
  readonly detail: number;
}

export function isStatus(name: string): name is Status {
  return (STATUSES as readonly string[]).includes(name);
}

export function samePair(one: StatusPair, other: StatusPair): boolean {
  return one.status === other.status && one.detail === other.detail;
}
