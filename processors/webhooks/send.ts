/** One attempt of one delivery: render, sign, post, judge (document 3, "Receiver request sent by the service"). */
import {
  type DeliveryOutcome,
  errorOf,
  type Meaning,
  meaningOf,
  outcomeOf,
} from "#core/domain/delivery-outcome.ts";
import { shipmentSummary } from "#core/domain/shipment-view.ts";
import { sign } from "#core/domain/signature.ts";
import { standardWebhookHeaders } from "#core/domain/standard-webhooks.ts";
import { type WebhookEvent, webhookPayload } from "#core/domain/webhook-payload.ts";
import { v1MeaningOf, v1Payload } from "#core/domain/webhook-v1.ts";
import { attemptSeconds, deliveryAttempts } from "#core/metrics.ts";
import type { Configuration, Endpoint, WebhookV1 } from "#core/redis/configuration.ts";
import type { Attempt, Finished, Leased } from "#core/redis/deliveries.ts";
import type { Live } from "#core/redis/live.ts";
import type { StoredShipment } from "#core/redis/shipments.ts";
import { viewNames } from "#core/redis/view-names.ts";
import type { Vault } from "#core/secrets.ts";
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
  const event: WebhookEvent = {
    id: leased.eventId,
    type: "shipment.updated",
    createdAtMs: leased.createdAtMs,
    trigger: leased.trigger,
    fact: leased.fact,
  };
  const summary = summaryOf(shipment, live.configuration());
  const payload = webhookPayload(event, summary, endpoint.include.includes("consignee"));
  const sent = await postEvent(deps, endpoint, event, payload, attempt);
  const meaning = meaningOf(sent);
  const outcome = outcomeOf(sent, attempt, random(), live.now(), meaning);
  return finishedBy(
    leased,
    attemptOf(leased, attempt, atMs, sent, errorOf(sent)),
    meaning,
    outcome,
  );
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
  const headers = { "Content-Type": "application/json", "User-Agent": "Service-Webhooks/1" };
  const body = JSON.stringify(v1Payload(record, leased.fact));
  const sent = await transport.post(url, headers, body, { allowHttp: true });
  const meaning = v1MeaningOf(sent, sent.responseBody, acknowledgement);
  const isUnacknowledged = meaning === "retry" && meaningOf(sent) === "delivered";
  const error = isUnacknowledged ? "not the configured acknowledgement" : errorOf(sent);
  const outcome = outcomeOf(sent, attempt, random(), live.now(), meaning);
  return finishedBy(leased, attemptOf(leased, attempt, atMs, sent, error), meaning, outcome);
}

function finishedBy(
  leased: Leased,
  attempt: Attempt,
  meaning: Meaning,
  outcome: DeliveryOutcome,
): Finished {
  deliveryAttempts.inc({ outcome: meaning });
  attemptSeconds.observe(attempt.durationMs / 1000);
  return {
    of: leased,
    attempt,
    state: outcome.state,
    nextAttemptAtMs: outcome.state === "waiting" ? outcome.dueMs : null,
    reason: outcome.state === "failed" ? outcome.reason : null,
    health: outcome.state === "delivered" ? "success" : "failure",
  };
}

/** A delivery that is never sent. */
export function unsent(leased: Leased, reason: string): Finished {
  return {
    of: leased,
    attempt: null,
    state: "failed",
    nextAttemptAtMs: null,
    reason,
    health: "none",
  };
}

/** Signs and posts a payload; the signature covers exactly the bytes that are sent. */
export function postEvent(
  { live, vault, transport }: SendDeps,
  endpoint: Endpoint,
  { id, type }: Pick<WebhookEvent, "id" | "type">,
  payload: object,
  attempt: number,
): Promise<Sent> {
  const body = JSON.stringify(payload);
  const nowMs = live.now();
  const { secret, previousSecret, previousUntilMs } = endpoint;
  const sealed =
    previousSecret !== null && nowMs < previousUntilMs ? [secret, previousSecret] : [secret];
  const secrets = sealed.map((text) => vault.open(text));
  return transport.post(
    endpoint.url,
    {
      "Content-Type": "application/json",
      "User-Agent": "Service-Webhooks/2",
      "X-Service-Event-Id": id,
      "X-Service-Event-Type": type,
      "X-Service-Delivery-Attempt": String(attempt),
      "X-Service-Signature": sign(secrets, body, nowMs),
      ...(endpoint.standardWebhooks && standardWebhookHeaders(id, secrets, body, nowMs)),
    },
    body,
  );
}

function summaryOf(shipment: StoredShipment, configuration: Configuration) {
  const { record, state, statusUpdatedAtMs } = shipment;
  return shipmentSummary(record, state, statusUpdatedAtMs, viewNames(shipment, configuration));
}

function attemptOf(
  { generation }: Leased,
  attempt: number,
  atMs: number,
  sent: Sent,
  error: string | null,
): Attempt {
  return {
    generation,
    attempt,
    atMs,
    httpStatus: sent.kind === "answered" ? sent.httpStatus : null,
    durationMs: sent.durationMs,
    error,
    responseSnippet: sent.responseSnippet,
  };
}
