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
  async function once(plain: Uint8Array | string | null, options: SendOptions): Promise<RawAnswer> {
    const bytes = typeof plain === "string" ? new TextEncoder().encode(plain) : plain;
    const body = bytes !== null && options.gzip ? gzipSync(bytes) : bytes;
    const token = options.token === undefined ? target.token : options.token;
    const headers: Record<string, string> = {
      ...(body !== null && { "content-type": "application/json" }),
      ...(options.gzip && { "content-encoding": "gzip" }),
      ...(token !== null && { authorization: `Bearer ${token}` }),
      ...(body !== null && bytes !== null && signatureOf(body, bytes, options)),
      ...options.headers,
    };
    const method = options.method ?? "POST";
    const path = options.path ?? "/v1/events/validate";
    return ask(`${target.url}${path}`, { method, headers, body, tls: target.tls });
  }

  function signatureOf(body: Uint8Array, plain: Uint8Array, { signature }: SendOptions) {
    if (signature) return { "x-service-signature": signature(body, plain) };
    return (
      target.secret && {
        "x-service-signature": signMessage([target.secret], body, nowMs()),
      }
    );
  }

  async function send(plain: Uint8Array | string | null, options: SendOptions = {}) {
    for (let left = RATE_TRIES; ; left -= 1) {
      const { status, headers, text } = await once(plain, options);
      if (status !== 429 || left === 0) return { status, headers, body: parsed(text) };
      await setTimeout(
        Math.min(Number(headers.get("retry-after") ?? 1), RETRY_LIMIT_SECONDS) * 1000,
      );
    }
  }

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

function parsed(text: string): Answer["body"] {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" ? (value as Answer["body"]) : null;
  } catch {
    return null;
  }
}
