/** A sender as document 2 describes it, with every way to get it wrong. */
import { gzipSync } from "node:zlib";
import { sign } from "#core/domain/signature.ts";

export interface Target {
  /** Base address, such as `https://push.example`. */
  readonly url: string;
  readonly token: string;
  readonly courier: string;
  /** Null = messages go unsigned. */
  readonly secret: string | null;
  /** PEM texts, where client certificates are asked for or the server's root is private. */
  readonly tls: { readonly cert?: string; readonly key?: string; readonly ca?: string };
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
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

const ANSWER_LIMIT_MS = 15_000;
/** Answers 429 that are waited for, each. */
const RATE_TRIES = 3;

export function createSender(target: Target, nowMs: () => number): Sender {
  async function once(plain: Uint8Array | string | null, options: SendOptions): Promise<Response> {
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
    return fetch(`${target.url}${options.path ?? "/v1/events/validate"}`, {
      method: options.method ?? "POST",
      body: body as Uint8Array<ArrayBuffer> | null,
      headers,
      redirect: "manual",
      signal: AbortSignal.timeout(ANSWER_LIMIT_MS),
      tls: target.tls,
    });
  }

  function signatureOf(body: Uint8Array, plain: Uint8Array, { signature }: SendOptions) {
    if (signature) return { "x-service-signature": signature(body, plain) };
    return target.secret && { "x-service-signature": sign([target.secret], body, nowMs()) };
  }

  async function send(plain: Uint8Array | string | null, options: SendOptions = {}) {
    for (let left = RATE_TRIES; ; left -= 1) {
      const response = await once(plain, options);
      const text = await response.text();
      if (response.status !== 429 || left === 0) {
        return { status: response.status, headers: response.headers, body: parsed(text) };
      }
      await Bun.sleep(Number(response.headers.get("retry-after") ?? 1) * 1000);
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
