/** A webhook attempt as the analytics keep it: ids, times and codes; no URL, no word of the receiver, nobody's name. */

export type AttemptOutcome = "DELIVERED" | "WAITING" | "FAILED";

/** Why no HTTP answer decided; `acknowledgement` is v1's own, after an answer. */
type Unanswered = "timeout" | "connection" | "tls" | "dns" | "address" | "other";
export type AttemptError = Unanswered | "acknowledgement";

export interface AttemptRow {
  readonly deliveryId: string;
  readonly endpointId: string;
  readonly channelId: number;
  readonly eventId: string;
  readonly generation: number;
  /** From 1 in each generation. */
  readonly attempt: number;
  readonly atMs: number;
  /** Null when no answer came. */
  readonly httpStatus: number | null;
  /** Null when the status tells all. */
  readonly error: AttemptError | null;
  readonly latencyMs: number;
  /** WAITING: another attempt follows. */
  readonly outcome: AttemptOutcome;
}

const KINDS = /^(timeout|connection|tls|dns)(:|$)/;

/** The kind of a delivery log's phrase: what stands behind a colon may name the receiver. */
export function attemptErrorOf(phrase: string | null): AttemptError | null {
  if (phrase === null || phrase.startsWith("status ")) return null;
  const kind = KINDS.exec(phrase)?.[1];
  if (kind !== undefined) return kind as AttemptError;
  if (phrase.includes("non-public address")) return "address";
  return phrase.includes("acknowledgement") ? "acknowledgement" : "other";
}
