/** One attempt of one delivery: render, sign, post, judge (document 3, "Receiver request sent by the service"). */
import {
  type DeliveryOutcome,
  errorOf,
  type Meaning,
  meaningOf,
  outcomeOf,
} from "#core/domain/delivery-outcome.ts";
import { faultWaitMs } from "#core/domain/retry-schedule.ts";
import { shipmentSummary } from "#core/domain/shipment-view.ts";
import { sign } from "#core/domain/signature.ts";
import { standardWebhookHeaders } from "#core/domain/standard-webhooks.ts";
import {
  eventText,
  type FrozenFact,
  shipmentText,
  type WebhookEvent,
  webhookText,
} from "#core/domain/webhook-payload.ts";
import { v1MeaningOf, v1Payload } from "#core/domain/webhook-v1.ts";
import { attemptSeconds, deliveryAttempts } from "#core/metrics.ts";
import type { Configuration, Endpoint, WebhookV1 } from "#core/redis/configuration.ts";
import type { Attempt } from "#core/redis/deliveries.ts";
import { hasPreviousSecret } from "#core/redis/endpoint-entity.ts";
import type { Finished } from "#core/redis/finish-deliveries.ts";
import type { Leased, Slot } from "#core/redis/leases.ts";
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
  const event = {
    id: leased.eventId,
    type: "shipment.updated",
    createdAtMs: leased.createdAtMs,
    trigger: leased.trigger,
  } as const;
  const text = textOf(shipment, live.configuration(), endpoint.include.includes("consignee"));
  const body = webhookText(event, text, eventTextOf(leased.fact()));
  const sent = await postEvent(deps, endpoint, event, body, attempt);
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
  const body = JSON.stringify(v1Payload(record, leased.fact()));
  const sent = await transport.post(url, headers, body, { allowHttp: true });
  const meaning = v1MeaningOf(sent, sent.responseBody, acknowledgement);
  const isUnacknowledged = meaning === "retry" && meaningOf(sent) === "delivered";
  const error = isUnacknowledged ? "not the configured acknowledgement" : errorOf(sent);
  const outcome = outcomeOf(sent, attempt, random(), live.now(), meaning);
  return finishedBy(leased, attemptOf(leased, attempt, atMs, sent, error), meaning, outcome);
}

const attemptsBy = {
  delivered: deliveryAttempts.labels("delivered"),
  retry: deliveryAttempts.labels("retry"),
  failed: deliveryAttempts.labels("failed"),
} as const;

function finishedBy(
  leased: Leased,
  attempt: Attempt,
  meaning: Meaning,
  outcome: DeliveryOutcome,
): Finished {
  attemptsBy[meaning].inc();
  attemptSeconds.observe(attempt.durationMs / 1000);
  return {
    of: leased,
    attempt,
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
      ...{ generation, attempt: attemptsMade + 1, atMs, httpStatus: null, durationMs: 0 },
      ...{ error: INTERNAL_ERROR, responseSnippet: null },
    },
    isOwnFault: true,
    state: "waiting",
    nextAttemptAtMs: atMs + waitMs,
    reason: null,
  };
}

/** How often it has been postponed in this generation. */
function faultsOf({ attemptsText, generation }: Leased): number {
  const attempts: Attempt[] = JSON.parse(attemptsText);
  const own = attempts.filter((one) => one.generation === generation);
  return own.filter(({ error }) => error === INTERNAL_ERROR).length;
}

/** Signs and posts a payload; the signature covers exactly the bytes that are sent. */
export function postEvent(
  { live, vault, transport }: SendDeps,
  endpoint: Endpoint,
  { id, type }: Pick<WebhookEvent, "id" | "type">,
  body: string,
  attempt: number,
): Promise<Sent> {
  const nowMs = live.now();
  const secrets = secretsInForce(endpoint, vault, nowMs);
  const headers: Record<string, string> = {
    "Content-Type": "application/json",
    "User-Agent": "Service-Webhooks/2",
    "X-Service-Event-Id": id,
    "X-Service-Event-Type": type,
    "X-Service-Delivery-Attempt": String(attempt),
    "X-Service-Signature": sign(secrets, body, nowMs),
  };
  if (endpoint.standardWebhooks) {
    Object.assign(headers, standardWebhookHeaders(id, secrets, body, nowMs));
  }
  return transport.post(endpoint.url, headers, body);
}

/** The newest first; the one before it for 24 hours (document 3, "Signature rules" 5). */
function secretsInForce(endpoint: Endpoint, vault: Vault, nowMs: number): readonly string[] {
  const { secret, previousSecret } = endpoint;
  const overlaps = previousSecret !== null && hasPreviousSecret(endpoint, nowMs);
  return (overlaps ? [secret, previousSecret] : [secret]).map(vault.open);
}

interface Texts {
  readonly configuration: Configuration;
  /** By whether the recipient is told. */
  readonly texts: Map<boolean, string>;
}

/** Deliveries of one lease share their shipment, and what is said of it. */
const texts = new WeakMap<StoredShipment, Texts>();

function textOf(shipment: StoredShipment, configuration: Configuration, withConsignee: boolean) {
  let kept = texts.get(shipment);
  if (kept?.configuration !== configuration) {
    kept = { configuration, texts: new Map() };
    texts.set(shipment, kept);
  }
  let text = kept.texts.get(withConsignee);
  if (text === undefined) {
    const { record, state, statusUpdatedAtMs } = shipment;
    const names = viewNames(shipment, configuration);
    const summary = shipmentSummary(record, state, statusUpdatedAtMs, names);
    text = shipmentText(summary, withConsignee);
    kept.texts.set(withConsignee, text);
  }
  return text;
}

/** Deliveries of one lease share the fact of their event too. */
const eventTexts = new WeakMap<FrozenFact, string>();

function eventTextOf(fact: FrozenFact): string {
  let text = eventTexts.get(fact);
  if (text === undefined) {
    text = eventText(fact);
    eventTexts.set(fact, text);
  }
  return text;
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
