/** A courier that pushes events over HTTP, as document 2 describes its sender. */
import { expect } from "bun:test";
import { gzipSync } from "node:zlib";
import type { CourierEvent } from "#core/events/rules/event.ts";
import { sign } from "#core/webhooks/rules/signature.ts";
import { eventually } from "#test/support/eventually.ts";

export interface PushResult {
  readonly status: number;
  readonly headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into whatever the server answered
  readonly body: any;
}

export interface PushOptions {
  readonly path?: string;
  readonly token?: string | null;
  readonly courier?: string;
  readonly gzip?: boolean;
  /** Secrets to sign with; none = unsigned. */
  readonly secrets?: readonly string[];
  readonly nowMs?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly envelope?: Readonly<Record<string, unknown>>;
  /** Ends the wait for an answer. */
  readonly signal?: AbortSignal;
}

let counter = 0;

/** A valid event; members given replace its own. */
export function event(members: Partial<CourierEvent> = {}): CourierEvent {
  counter += 1;
  return {
    eventId: `event-${counter}-${crypto.randomUUID()}`,
    trackingNumber: "TN1",
    occurredAt: "2026-11-10T10:00:00+01:00",
    status: { code: "TRN", description: "In transito" },
    location: { name: "Hub Milano", countryCode: "IT", postalCode: "20121" },
    ...members,
  };
}

/** Sends events in one message. */
export async function push(
  url: string,
  events: readonly unknown[],
  options: PushOptions = {},
): Promise<PushResult> {
  counter += 1;
  const envelope = {
    schemaVersion: "1.0",
    messageId: `message-${counter}`,
    sentAt: "2026-11-20T10:00:00+01:00",
    courier: options.courier ?? "GLS_ITA",
    events,
    ...options.envelope,
  };
  return pushBytes(url, Buffer.from(JSON.stringify(envelope)), options);
}

/**
 * Sends events in one message, again and again while the answer is 503 or none arrives, as couriers have to (document 2, "Errors"):
 * the store may be away for a moment after a kill. Expects every event to be accepted; what an earlier try has claimed is a
 * DUPLICATE afterwards.
 */
export async function pushUntilAccepted(url: string, events: readonly unknown[]): Promise<void> {
  let tries = 0;
  const { status, body } = await eventually(async () => {
    tries += 1;
    const answer = await push(url, events).catch(() => null);
    return answer?.status === 503 ? null : answer;
  }, "a message is answered");
  expect(status).toBe(200);
  const expected = tries === 1 ? ["ACCEPTED"] : ["ACCEPTED", "DUPLICATE"];
  for (const { outcome } of body.results) expect(expected).toContain(outcome);
}

/** Sends any bytes as the body of a message. */
export async function pushBytes(
  url: string,
  plain: Uint8Array,
  options: PushOptions = {},
): Promise<PushResult> {
  const body = options.gzip ? gzipSync(plain) : plain;
  const token = options.token === undefined ? "tok_gls_1" : options.token;
  const response = await fetch(`${url}${options.path ?? "/v1/events"}`, {
    method: "POST",
    body,
    ...(options.signal && { signal: options.signal }),
    headers: {
      "content-type": "application/json",
      ...(token !== null && { authorization: `Bearer ${token}` }),
      ...(options.gzip && { "content-encoding": "gzip" }),
      ...(options.secrets && {
        "x-service-signature": sign(options.secrets, body, options.nowMs ?? Date.now()),
      }),
      ...options.headers,
    },
  });
  return { status: response.status, headers: response.headers, body: await response.json() };
}
