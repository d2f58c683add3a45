/** One attempt of one delivery: render, sign, post, judge (document 3, "Receiver request sent by the service"). */

import type { Endpoint, WebhookV1 } from "#core/configuration/store/configuration.ts";
import type { Live } from "#core/configuration/store/live.ts";
import { attemptSeconds, deliveryAttempts } from "#core/platform/process/metrics.ts";
import { continueTrace, sentOf, type TracedWork } from "#core/platform/process/tracing.ts";
import type { Vault } from "#core/platform/secrets/secrets.ts";
import type { StoredShipment } from "#core/shipments/store/shipments.ts";
import { loadSignOf, pauseMs } from "#core/webhooks/rules/concurrency.ts";
import {
  type DeliveryOutcome,
  errorOf,
  type Meaning,
  meaningOf,
  outcomeOf,
} from "#core/webhooks/rules/delivery-outcome.ts";
import { faultWaitMs, parseRetryAfter } from "#core/webhooks/rules/retry-schedule.ts";
import {
  encodeBody,
  type RequestFacts,
  type SentRequest,
  sentRequest,
  V1_HEADERS,
} from "#core/webhooks/rules/webhook-request.ts";
import { v1MeaningOf, v1Payload } from "#core/webhooks/rules/webhook-v1.ts";
import { type Attempt, readAttempts } from "#core/webhooks/store/deliveries/attempts.ts";
import type { Finished } from "#core/webhooks/store/deliveries/finish-deliveries.ts";
import type { Leased, Slot } from "#core/webhooks/store/deliveries/leases.ts";
import { signedHeaders } from "#core/webhooks/store/signed-headers.ts";
import { encodedDeliveryBody } from "#core/webhooks/store/webhook-body.ts";
import type { Sent, Transport } from "./transport.ts";

export interface SendDeps {
  readonly live: Live;
  readonly vault: Vault;
  readonly transport: Transport;
  /** A number in [0, 1): the jitter of the schedule. */
  readonly random: () => number;
}

/** Sends what is leased and tells what came of it. */
export async function sendDelivery(
  deps: SendDeps,
  leased: Leased,
  endpoint: Endpoint,
  shipment: StoredShipment,
): Promise<Finished> {
  const { live, random } = deps;
  const attempt = leased.attemptsMade + 1;
  const atMs = live.now();
  const withConsignee = endpoint.include.includes("consignee");
  const fact = leased.fact();
  const configuration = live.configuration();
  const bodyOf = { delivery: leased, shipment, configuration, withConsignee };
  const body = encodedDeliveryBody(bodyOf, fact);
  const event = { eventId: leased.eventId, type: "shipment.updated", attempt, sentAtMs: atMs };
  const span = beginAttempt(leased, attempt, fact.traceparent);
  const sent = await traced(span, postEvent(deps, endpoint, event, body.bytes, sentOf(span)));
  const meaning = meaningOf(sent);
  const outcome = outcomeOf(sent, attempt, random(), live.now(), meaning);
  const made = attemptOf(leased, attempt, atMs, sent, errorOf(sent), sentRequest(endpoint, body));
  return finishedBy(leased, made, meaning, outcome, pausedUntil(sent, live.now()));
}

/** Sends a delivery of webhooks v1. */
export async function sendV1Delivery(
  { live, random, transport }: SendDeps,
  leased: Leased,
  { url, acknowledgement }: WebhookV1,
  { record }: StoredShipment,
): Promise<Finished> {
  const attempt = leased.attemptsMade + 1;
  const atMs = live.now();
  const fact = leased.fact();
  const body = encodeBody(JSON.stringify(v1Payload(record, fact)));
  const span = beginAttempt(leased, attempt, fact.traceparent);
  const traceparent = sentOf(span);
  const headers = traceparent === undefined ? V1_HEADERS : { ...V1_HEADERS, traceparent };
  const sent = await traced(span, transport.post(url, headers, body.bytes, { allowHttp: true }));
  const meaning = v1MeaningOf(sent, sent.responseBody, acknowledgement);
  const isUnacknowledged = meaning === "retry" && meaningOf(sent) === "delivered";
  const error = isUnacknowledged ? "not the configured acknowledgement" : errorOf(sent);
  const outcome = outcomeOf(sent, attempt, random(), live.now(), meaning);
  const request = sentRequest({ url, standardWebhooks: false }, body);
  const made = attemptOf(leased, attempt, atMs, sent, error, request);
  return finishedBy(leased, made, meaning, outcome, pausedUntil(sent, live.now()));
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

async function traced(span: TracedWork | null, sending: Promise<Sent>): Promise<Sent> {
  if (span === null) return sending;
  try {
    const sent = await sending;
    if (sent.kind === "answered") span.set({ "http.response.status_code": sent.httpStatus });
    span.end(errorOf(sent) ?? undefined);
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

function finishedBy(
  leased: Leased,
  attempt: Attempt,
  meaning: Meaning,
  outcome: DeliveryOutcome,
  pausedUntilMs: number | null,
): Finished {
  attemptsBy[meaning].inc();
  attemptSeconds.observe(attempt.durationMs / 1000);
  return {
    of: leased,
    attempt,
    sign: loadSignOf(attempt, false),
    pausedUntilMs,
    state: outcome.state,
    nextAttemptAtMs: outcome.state === "waiting" ? outcome.dueMs : null,
    reason: outcome.state === "failed" ? outcome.reason : null,
  };
}

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

/** Signs and posts a payload; the signature covers exactly the bytes that are sent. */
export function postEvent(
  { vault, transport }: SendDeps,
  endpoint: Endpoint,
  event: RequestFacts,
  body: Buffer,
  traceparent?: string,
): Promise<Sent> {
  const headers = signedHeaders(endpoint, vault, event, body);
  if (traceparent !== undefined) headers["traceparent"] = traceparent;
  return transport.post(endpoint.url, headers, body);
}

function attemptOf(
  { generation }: Leased,
  attempt: number,
  atMs: number,
  sent: Sent,
  error: string | null,
  request: SentRequest,
): Attempt {
  return {
    generation,
    attempt,
    atMs,
    httpStatus: sent.kind === "answered" ? sent.httpStatus : null,
    durationMs: sent.durationMs,
    error,
    responseSnippet: sent.responseSnippet,
    request,
  };
}
