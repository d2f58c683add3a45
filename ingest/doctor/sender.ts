/** A sender as document 2 describes it, with every way to get it wrong. */
import { setTimeout } from "node:timers/promises";
import { gzipSync } from "node:zlib";
import { ask, type RawAnswer, type Tls } from "#ingest/doctor/request.ts";
import { signMessage } from "#ingest/doctor/sign-message.ts";

export interface Target {
  /** Base address, such as `https://push.example`. */
  readonly url: string;
  readonly token: string;
  readonly courier: string;
  /** Null = messages go unsigned. */
  readonly secret: string | null;
  readonly tls: Tls;
}

export interface Answer {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: ReadonlyMap<string, string>;
  /** Parsed; null when it is no JSON. */
  readonly body: Readonly<Record<string, unknown>> | null;
}

export interface SendOptions {
  readonly method?: string;
  readonly path?: string;
  /** Null sends none. */
  readonly token?: string | null;
  readonly gzip?: boolean;
  readonly headers?: Readonly<Record<string, string>>;
  /** The signature header instead of the right one. */
  readonly signature?: (body: Uint8Array, plain: Uint8Array) => string;
}

export interface Sender {
  readonly target: Target;
  /** Sends bytes as they are; default is a POST to `/v1/events/validate`, signed where there is a secret. */
  readonly send: (plain: Uint8Array | string | null, options?: SendOptions) => Promise<Answer>;
  /** Sends a message of these events; members replace those of the envelope, `undefined` leaves one out. */
  readonly push: (
    events: unknown,
    members?: Readonly<Record<string, unknown>>,
    options?: SendOptions,
  ) => Promise<Answer>;
}

/** Longest wait for the next request after a 429. */
const RETRY_LIMIT_SECONDS = 60;
/** Answers 429 that are waited for, each. */
const RATE_TRIES = 3;

export function createSender(target: Target, nowMs: () => number): Sender {
  const send = (plain: Uint8Array | string | null, options: SendOptions = {}) =>
    sendUntilTaken(target, nowMs, plain, options);
  return {
    target,
    send,
    push(events, members = {}, options = {}) {
      const envelope = {
        schemaVersion: "1.0",
        messageId: `doctor-${crypto.randomUUID()}`,
        sentAt: new Date(nowMs()).toISOString(),
        courier: target.courier,
        events,
        ...members,
      };
      return send(JSON.stringify(envelope), options);
    },
  };
}

async function sendUntilTaken(
  target: Target,
  nowMs: () => number,
  plain: Uint8Array | string | null,
  options: SendOptions,
): Promise<Answer> {
  for (let left = RATE_TRIES; ; left -= 1) {
    const { status, headers, text } = await sendOnce(target, nowMs(), plain, options);
    if (status !== 429 || left === 0) return { status, headers, body: parsed(text) };
    const seconds = Math.min(Number(headers.get("retry-after") ?? 1), RETRY_LIMIT_SECONDS);
    await setTimeout(seconds * 1000);
  }
}

async function sendOnce(
  { url, token: own, secret, tls }: Target,
  nowMs: number,
  plain: Uint8Array | string | null,
  options: SendOptions,
): Promise<RawAnswer> {
  const bytes = typeof plain === "string" ? new TextEncoder().encode(plain) : plain;
  const body = bytes !== null && options.gzip ? gzipSync(bytes) : bytes;
  const { method = "POST", path = "/v1/events/validate", token = own, signature } = options;
  const sign = signature ?? (secret && ((sent: Uint8Array) => signMessage([secret], sent, nowMs)));
  const headers: Record<string, string> = {
    ...(body !== null && { "content-type": "application/json" }),
    ...(options.gzip && { "content-encoding": "gzip" }),
    ...(token !== null && { authorization: `Bearer ${token}` }),
    ...(body && bytes && sign && { "x-service-signature": sign(body, bytes) }),
    ...options.headers,
  };
  return ask(`${url}${path}`, { method, headers, body, tls });
}

function parsed(text: string): Answer["body"] {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" ? (value as Answer["body"]) : null;
  } catch {
    return null;
  }
}
