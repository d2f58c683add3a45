/** Webhooks and import callbacks: verified, then typed. Works wherever Web Crypto does. */
import type { ImportJob, WebhookPayload } from "./generated/types.gen.ts";

export type ShipmentUpdated = WebhookPayload & { readonly type: "shipment.updated" };
/** Sent from the control panel, with a sample shipment: answer 2xx and leave your data alone. */
export type WebhookTest = WebhookPayload & { readonly type: "webhook.test" };
export type WebhookEvent = ShipmentUpdated | WebhookTest;

/** What is sent to the `webhookUrl` of an import. */
export type ImportFinished = Pick<ImportJob, "jobId" | "status" | "result">;

export interface SignedRequest {
  /** The raw body, before any JSON parsing. */
  readonly body: string | Uint8Array;
  /** The header `X-Service-Signature`. */
  readonly signature: string | null | undefined;
  /** The endpoint's secret, `whsec_` included; both during a rotation. */
  readonly secret: string | readonly string[];
  /** Seconds that the sender's clock may differ; 300 by default. */
  readonly toleranceSeconds?: number;
  /** Instead of the clock. */
  readonly nowMs?: number;
}

export class SignatureError extends Error {
  override readonly name = "SignatureError";
  readonly reason: "malformed" | "expired" | "mismatch";

  constructor(reason: SignatureError["reason"]) {
    super(`The signature is not valid: ${reason}.`);
    this.reason = reason;
  }
}

const TOLERANCE_SECONDS = 300;

/** The event of an authentic webhook. Answer 401 when it throws. @throws {SignatureError} */
export async function verifyWebhook(request: SignedRequest): Promise<WebhookEvent> {
  return (await verified(request)) as WebhookEvent;
}

/** The same for the callback of an import. @throws {SignatureError} */
export async function verifyImportCallback(request: SignedRequest): Promise<ImportFinished> {
  return (await verified(request)) as ImportFinished;
}

async function verified(request: SignedRequest): Promise<unknown> {
  const { body, signature, secret, nowMs = Date.now() } = request;
  const { toleranceSeconds = TOLERANCE_SECONDS } = request;
  const parts = (signature ?? "").split(",").map((part) => part.trim().split("="));
  const t = parts.find(([key]) => key === "t")?.[1] ?? "";
  const given = parts.flatMap(([key, value = ""]) =>
    key === "v1" && /^[0-9a-f]{64}$/.test(value) ? [bytesOf(value)] : [],
  );
  if (!/^\d{1,12}$/.test(t) || given.length === 0) throw new SignatureError("malformed");
  if (Math.abs(nowMs / 1000 - Number(t)) > toleranceSeconds) throw new SignatureError("expired");
  const raw = typeof body === "string" ? new TextEncoder().encode(body) : body;
  const start = new TextEncoder().encode(`${t}.`);
  const signed = new Uint8Array(start.length + raw.length);
  signed.set(start);
  signed.set(raw, start.length);
  for (const one of typeof secret === "string" ? [secret] : secret) {
    const key = await keyOf(one);
    for (const value of given) {
      // In constant time.
      if (await crypto.subtle.verify("HMAC", key, value, signed)) {
        return JSON.parse(new TextDecoder().decode(raw));
      }
    }
  }
  throw new SignatureError("mismatch");
}

function keyOf(secret: string): Promise<CryptoKey> {
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  const bytes = new TextEncoder().encode(secret);
  return crypto.subtle.importKey("raw", bytes, algorithm, false, ["verify"]);
}

function bytesOf(hex: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(hex.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
}
