/**
 * What a webhook request consists of beside its body and signatures (document 3, "Receiver request sent by the service"):
 * used to send it, and to show it in the delivery log, which keeps only what cannot be made again.
 */
import { type Static, Type } from "@sinclair/typebox";

export const BodyFormat = Type.Union([Type.Literal("waybill"), Type.Literal("cloudevents")]);
export type BodyFormat = Static<typeof BodyFormat>;

/** Where requests of an endpoint go, whether with the headers of Standard Webhooks, and in which format. */
export interface WebhookTarget {
  readonly url: string;
  readonly standardWebhooks: boolean;
  /** Absent = `waybill`. */
  readonly bodyFormat?: BodyFormat;
}

/** What the delivery log keeps of a request. */
export interface SentRequest {
  /** `targetKey` of its target. */
  readonly target: string;
  /** SHA-256, base64url. */
  readonly bodyHash: string;
  readonly bodyBytes: number;
}

/** 36 bits: enough to tell the few targets apart that an endpoint has had, in six bytes an attempt. */
const TARGET_KEY_LENGTH = 6;

/** Targets are asked for again and again: they live as long as a configuration. */
const keys = new WeakMap<WebhookTarget, string>();

export function targetKey(target: WebhookTarget): string {
  let key = keys.get(target);
  if (key === undefined) {
    const { url, standardWebhooks, bodyFormat = "waybill" } = target;
    const format = bodyFormat === "waybill" ? "" : ` ${bodyFormat}`;
    key = hashOf(`${Number(standardWebhooks)} ${url}${format}`).slice(0, TARGET_KEY_LENGTH);
    keys.set(target, key);
  }
  return key;
}

/** A body as it is sent: the bytes that are signed, and their SHA-256, base64url. */
export interface EncodedBody {
  readonly bytes: Buffer;
  readonly hash: string;
}

export function encodeBody(text: string): EncodedBody {
  const bytes = Buffer.from(text);
  return { bytes, hash: hashOf(bytes) };
}

export function sentRequest(to: WebhookTarget, { bytes, hash }: EncodedBody): SentRequest {
  return { target: targetKey(to), bodyHash: hash, bodyBytes: bytes.length };
}

function hashOf(data: string | Uint8Array): string {
  return new Bun.CryptoHasher("sha256").update(data).digest("base64url");
}

export interface RequestFacts {
  readonly eventId: string;
  readonly type: string;
  /** From 1. */
  readonly attempt: number;
  readonly sentAtMs: number;
}

/** Receivers of webhooks v1 answer with a text that is compared, and all answers are shown in the delivery log. */
const UNCOMPRESSED = { "Accept-Encoding": "identity" } as const;

/** The structured mode of CloudEvents: the whole event stands in the body, which is what the signatures cover. */
const CLOUDEVENTS_TYPE = "application/cloudevents+json";

/** All headers but the signatures and those of the connection. */
export function webhookHeaders(
  { eventId, type, attempt, sentAtMs }: RequestFacts,
  { standardWebhooks, bodyFormat }: Omit<WebhookTarget, "url">,
): Record<string, string> {
  const timestamp = String(Math.floor(sentAtMs / 1000));
  return {
    "Content-Type": bodyFormat === "cloudevents" ? CLOUDEVENTS_TYPE : "application/json",
    "User-Agent": "Service-Webhooks/2",
    ...UNCOMPRESSED,
    "X-Service-Event-Id": eventId,
    "X-Service-Event-Type": type,
    "X-Service-Delivery-Attempt": String(attempt),
    ...(standardWebhooks && { "webhook-id": eventId, "webhook-timestamp": timestamp }),
  };
}

/** Webhooks v1 are not signed. */
export const V1_HEADERS: Readonly<Record<string, string>> = {
  "Content-Type": "application/json",
  "User-Agent": "Service-Webhooks/1",
  ...UNCOMPRESSED,
};
