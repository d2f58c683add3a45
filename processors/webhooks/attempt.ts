/**
 * One attempt of one leased delivery: what is to be sent to whom, if anything, the request, and what came of it (document 3,
 * "Receiver request sent by the service").
 */

import type { Live } from "#core/configuration/store/live.ts";
import type { Log } from "#core/platform/process/log.ts";
import {
  attemptSeconds,
  deliveryAttempts,
  internalErrors,
} from "#core/platform/process/metrics.ts";
import {
  continueTrace,
  type SpanFacts,
  sentOf,
  type TracedWork,
} from "#core/platform/process/tracing.ts";
import type { Vault } from "#core/platform/secrets/secrets.ts";
import { loadSignOf, pauseMs } from "#core/webhooks/rules/concurrency.ts";
import {
  errorOf,
  type Meaning,
  meaningOf,
  outcomeOf,
} from "#core/webhooks/rules/delivery-outcome.ts";
import { faultWaitMs, parseRetryAfter } from "#core/webhooks/rules/retry-schedule.ts";
import { shownHeaders } from "#core/webhooks/rules/shown-answer.ts";
import {
  type EncodedBody,
  encodeBody,
  sentRequest,
  V1_HEADERS,
  type WebhookTarget,
} from "#core/webhooks/rules/webhook-request.ts";
import {
  V2_TOOK_OVER,
  v1ChannelId,
  v1MeaningOf,
  v1Payload,
} from "#core/webhooks/rules/webhook-v1.ts";
import { readAttempts } from "#core/webhooks/store/deliveries/attempts.ts";
import type { Finished } from "#core/webhooks/store/deliveries/finish-deliveries.ts";
import type { Leased, Slot } from "#core/webhooks/store/deliveries/leases.ts";
import { DELETED_REASON, DISABLED_REASON } from "#core/webhooks/store/endpoints.ts";
import { signedHeaders } from "#core/webhooks/store/signed-headers.ts";
import type { Sent, Transport } from "#core/webhooks/store/transport/transport.ts";
import { bodyTerms, encodedDeliveryBody } from "#core/webhooks/store/webhook-body.ts";
import { type LatencyWatch, noteLatency } from "./latency-watch.ts";

export interface SendDeps {
  readonly live: Live;
  readonly vault: Vault;
  readonly transport: Transport;
  /** A number in [0, 1): the jitter of the schedule. */
  readonly random: () => number;
}

export interface AttemptDeps extends SendDeps {
  readonly log: Log;
  readonly latency: LatencyWatch;
}

/** An internal error postpones the delivery; it never throws. */
export async function attempt(deps: AttemptDeps, leased: Leased): Promise<Finished> {
  const atMs = deps.live.now();
  try {
    const request = requestOf(deps, leased, atMs);
    return typeof request === "string"
      ? unsent(leased, request)
      : await sendRequest(deps, leased, request, atMs);
  } catch (error) {
    internalErrors.inc({ part: "webhooks" });
    const about = { err: error, delivery: leased.deliveryId, event: leased.eventId };
    deps.log.error(about, "a delivery could not be sent; it will be retried");
    return postponed(deps, leased);
  }
}

interface Request {
  readonly to: WebhookTarget;
  readonly headers: Record<string, string>;
  readonly body: EncodedBody;
  /** Of webhooks v1: what a receiver must answer with; null = v2. */
  readonly acknowledgement: string | null;
}

const SHIPMENT_GONE = "shipment gone";

/** @returns why nothing is sent, if nothing is */
function requestOf(deps: SendDeps, leased: Leased, atMs: number): Request | string {
  const isV1 = v1ChannelId(leased.endpointId) !== null;
  return isV1 ? v1Request(deps, leased) : v2Request(deps, leased, atMs);
}

/** The signature covers exactly the bytes that are sent. */
function v2Request({ live, vault }: SendDeps, leased: Leased, atMs: number): Request | string {
  const configuration = live.configuration();
  const endpoint = configuration.endpoints.get(leased.endpointId);
  if (!endpoint) return DELETED_REASON;
  if (!endpoint.active) return DISABLED_REASON;
  const shipment = leased.shipment();
  if (!shipment) return SHIPMENT_GONE;
  const { withConsignee, source } = bodyTerms(endpoint, configuration);
  const bodyOf = { delivery: leased, shipment, configuration, withConsignee, source };
  const body = encodedDeliveryBody(bodyOf, leased.fact());
  const attempt = leased.attemptsMade + 1;
  const event = { eventId: leased.eventId, type: "shipment.updated", attempt, sentAtMs: atMs };
  const headers = signedHeaders(endpoint, vault, event, body.bytes);
  return { to: endpoint, headers, body, acknowledgement: null };
}

/** An endpoint of v2 that was made after the decision ends v1 at once (document 3, "Versioning"). */
function v1Request({ live }: SendDeps, leased: Leased): Request | string {
  const { endpoints = [], webhookV1 = null } =
    live.configuration().channels.get(leased.channelId) ?? {};
  if (endpoints.length > 0) return V2_TOOK_OVER;
  if (!webhookV1) return "webhook v1 not configured";
  const shipment = leased.shipment();
  if (!shipment) return SHIPMENT_GONE;
  const { url, acknowledgement } = webhookV1;
  const body = encodeBody(JSON.stringify(v1Payload(shipment.record, leased.fact())));
  const to = { url, standardWebhooks: false };
  return { to, headers: { ...V1_HEADERS }, body, acknowledgement };
}

async function sendRequest(
  { live, random, transport, latency }: AttemptDeps,
  leased: Leased,
  { to, headers, body, acknowledgement }: Request,
  atMs: number,
): Promise<Finished> {
  const attempt = leased.attemptsMade + 1;
  const span = beginAttempt(leased, attempt, leased.fact().traceparent);
  span?.set(targetFacts(to.url));
  const traceparent = sentOf(span);
  if (traceparent !== undefined) headers["traceparent"] = traceparent;
  const allowHttp = acknowledgement !== null;
  const sent = await traced(span, transport.post(to.url, headers, body.bytes, { allowHttp }));
  const { meaning, error } = judge(sent, acknowledgement);
  const { durationMs, responseSnippet } = sent;
  const httpStatus = sent.kind === "answered" ? sent.httpStatus : null;
  attemptsBy[meaning].inc();
  attemptSeconds.observe(durationMs / 1000);
  const isSlower =
    httpStatus !== null && noteLatency(latency, leased.endpointId, durationMs, performance.now());
  const nowMs = live.now();
  const outcome = outcomeOf(sent, attempt, random(), nowMs, meaning);
  return {
    of: leased,
    attempt: {
      generation: leased.generation,
      attempt,
      atMs,
      httpStatus,
      durationMs,
      error,
      responseSnippet,
      // Of a success nobody reads them, and there are many.
      responseHeaders: error === null ? null : shownHeaders(sent.responseHeaders),
      request: sentRequest(to, body),
    },
    sign: loadSignOf({ httpStatus, error }, isSlower),
    pausedUntilMs: pausedUntil(sent, nowMs),
    state: outcome.state,
    nextAttemptAtMs: outcome.state === "waiting" ? outcome.dueMs : null,
    reason: outcome.state === "failed" ? outcome.reason : null,
  };
}

function judge(
  sent: Sent,
  acknowledgement: string | null,
): { readonly meaning: Meaning; readonly error: string | null } {
  const [meaning, error] = [meaningOf(sent), errorOf(sent)];
  if (acknowledgement === null) return { meaning, error };
  const v1Meaning = v1MeaningOf(sent, sent.responseBody, acknowledgement);
  const isUnacknowledged = v1Meaning === "retry" && meaning === "delivered";
  return {
    meaning: v1Meaning,
    error: isUnacknowledged ? "not the configured acknowledgement" : error,
  };
}

/** The receiver is given the span of the attempt, so that its own trace goes on from there. */
function beginAttempt(
  { endpointId, eventId, deliveryId, shipmentId }: Leased,
  attempt: number,
  traceparent: string | undefined,
): TracedWork | null {
  const span = continueTrace("client", "send webhook", traceparent);
  span?.set({
    "http.request.method": "POST",
    "waybill.endpoint_id": endpointId,
    "waybill.webhook_event_id": eventId,
    "waybill.delivery_id": deliveryId,
    "waybill.shipment_id": shipmentId,
    "waybill.attempt": attempt,
  });
  return span;
}

/** A path may hold the receiver's secret. */
function targetFacts(text: string): SpanFacts {
  const { protocol, hostname, port } = new URL(text);
  return {
    "server.address": hostname,
    "server.port": Number(port || (protocol === "https:" ? 443 : 80)),
    "url.full": `${protocol}//${hostname}${port && `:${port}`}/REDACTED`,
  };
}

async function traced(span: TracedWork | null, sending: Promise<Sent>): Promise<Sent> {
  if (span === null) return sending;
  try {
    const sent = await sending;
    if (sent.kind === "answered") span.set({ "http.response.status_code": sent.httpStatus });
    const failure = errorOf(sent);
    if (failure !== null) span.set({ "error.type": failure });
    span.end(failure ?? undefined);
    return sent;
  } catch (error) {
    span.end((error as Error).name);
    throw error;
  }
}

/** Until when a 429 asks that nothing more is sent to its endpoint, UTC milliseconds; null = it does not. */
function pausedUntil(sent: Sent, nowMs: number): number | null {
  if (sent.kind !== "answered") return null;
  const waitMs = pauseMs(sent.httpStatus, parseRetryAfter(sent.retryAfter, nowMs));
  return waitMs > 0 ? nowMs + waitMs : null;
}

const attemptsBy = {
  delivered: deliveryAttempts.labels("delivered"),
  retry: deliveryAttempts.labels("retry"),
  failed: deliveryAttempts.labels("failed"),
} as const;
for (const attempts of Object.values(attemptsBy)) attempts.inc(0);

/** A delivery that is never sent. */
export function unsent(leased: Leased | Slot, reason: string): Finished {
  return {
    of: leased,
    attempt: null,
    state: "failed",
    nextAttemptAtMs: null,
    reason,
  };
}

const INTERNAL_ERROR = "internal error";

/**
 * A delivery that an internal error prevented from being sent: it waits for its retry on the schedule, longer each time.
 * This is not counted as an attempt or against the endpoint; the delivery log records it.
 */
export function postponed({ live, random }: SendDeps, leased: Leased): Finished {
  const { generation, attemptsMade } = leased;
  const atMs = live.now();
  const waitMs = faultWaitMs(attemptsMade + faultsOf(leased) + 1, random());
  return {
    of: leased,
    attempt: {
      generation,
      attempt: attemptsMade + 1,
      atMs,
      httpStatus: null,
      durationMs: 0,
      error: INTERNAL_ERROR,
      responseSnippet: null,
      responseHeaders: null,
      request: null,
    },
    isOwnFault: true,
    state: "waiting",
    nextAttemptAtMs: atMs + waitMs,
    reason: null,
  };
}

/** How often it has been postponed in this generation. */
function faultsOf({ attemptsText, generation }: Leased): number {
  const own = readAttempts(attemptsText).filter((one) => one.generation === generation);
  return own.filter(({ error }) => error === INTERNAL_ERROR).length;
}
