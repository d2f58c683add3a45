/** Endpoints, deliveries and replays as the panel shows them. */
import { type Static, Type } from "@sinclair/typebox";
import { settingsIn, shownMembers } from "#core/configuration/rules/entity.ts";
import { ENDPOINT_SETTINGS } from "#core/configuration/rules/settings.ts";
import type { Configuration, Endpoint } from "#core/configuration/store/configuration.ts";
import { hasPreviousSecret } from "#core/configuration/store/endpoint-entity.ts";
import { maskedHeaders } from "#core/webhooks/rules/custom-headers.ts";
import { withoutSignatures } from "#core/webhooks/rules/shown-answer.ts";
import { V1_HEADERS, webhookHeaders } from "#core/webhooks/rules/webhook-request.ts";
import { v1ChannelId } from "#core/webhooks/rules/webhook-v1.ts";
import type { Attempt } from "#core/webhooks/store/deliveries/attempts.ts";
import type { Delivery } from "#core/webhooks/store/deliveries/deliveries.ts";
import type { Replay } from "#core/webhooks/store/deliveries/replays.ts";
import type { LastFailure } from "#core/webhooks/store/last-failures.ts";
import { targetOf } from "#core/webhooks/store/sent-target.ts";
import { version } from "#panel/server/http/version.ts";

export const instant = Type.String({ description: "ISO 8601, UTC" });
const nullable = <T extends ReturnType<typeof Type.String>>(schema: T) =>
  Type.Union([schema, Type.Null()]);
const oneOf = <V extends string>(values: readonly V[]) =>
  Type.Unsafe<V>(Type.Union(values.map((value) => Type.Literal(value))));

const endpointMembers = {
  id: Type.String({ description: "the same as endpointId" }),
  endpointId: Type.String(),
  channel: Type.String({ description: "code of the channel" }),
  code: Type.String({ description: "unique in the channel; the setup file's or generated" }),
  url: Type.String(),
  events: Type.Array(Type.Literal("shipment.updated")),
  alertEmail: Type.String(),
  ...shownMembers(ENDPOINT_SETTINGS),
  status: oneOf(["active", "disabled"]),
  disabledSince: nullable(instant),
  disabledReason: Type.Union([oneOf(["manual", "failing"]), Type.Null()], {
    description:
      "failing = 3 days without success; null = active, or disabled before this was kept",
  }),
  failingSince: nullable(
    Type.String({
      description: "first failure since the last success, also of one that failing has disabled",
    }),
  ),
  lastError: Type.Union([Type.Object({ at: instant, error: Type.String() }), Type.Null()], {
    description: "last failed attempt of an endpoint that fails, or that failing has disabled",
  }),
  previousSecretUntil: nullable(
    Type.String({ description: "until when the secret before the last rotation signs too" }),
  ),
  createdAt: instant,
  version,
};

export const EndpointView = Type.Object(endpointMembers);
export type EndpointView = Static<typeof EndpointView>;

export const NewEndpointView = Type.Object({
  ...endpointMembers,
  secret: Type.String({ description: "whsec_ and 64 hex characters, shown this once" }),
});

/** How an endpoint does at the moment. */
export interface EndpointHealth {
  readonly failingSinceMs: number | null;
  readonly lastFailure: LastFailure | null;
}

export function endpointView(
  endpoint: Endpoint,
  channelCode: string,
  { failingSinceMs, lastFailure }: EndpointHealth,
  nowMs: number,
): EndpointView {
  const overlaps = hasPreviousSecret(endpoint, nowMs);
  const { active, disabled } = endpoint;
  const firstFailureMs = disabled?.failingSinceMs ?? failingSinceMs;
  const lastError = firstFailureMs === null ? null : lastFailure;
  return {
    id: endpoint.id,
    endpointId: endpoint.id,
    channel: channelCode,
    code: endpoint.code,
    url: endpoint.url,
    events: ["shipment.updated"],
    alertEmail: endpoint.alertEmail,
    ...settingsIn(ENDPOINT_SETTINGS, endpoint),
    headers: maskedHeaders(endpoint.headers),
    status: active ? "active" : "disabled",
    disabledSince: disabled && isoOf(disabled.sinceMs),
    disabledReason: disabled?.reason ?? null,
    failingSince: firstFailureMs === null ? null : isoOf(firstFailureMs),
    lastError: lastError && { at: isoOf(lastError.atMs), error: lastError.error },
    previousSecretUntil: overlaps ? isoOf(endpoint.previousUntilMs) : null,
    createdAt: isoOf(endpoint.createdAtMs),
    version: endpoint.version,
  };
}

const RequestView = Type.Object({
  url: nullable(Type.String({ description: "null = no longer known" })),
  headers: Type.Record(Type.String(), Type.String(), {
    description: "as sent, without signatures",
  }),
  bodySha256: Type.String({ description: "hex" }),
  bodyBytes: Type.Integer(),
});

const attemptMembers = {
  generation: Type.Integer({ description: "grows by one with every replay" }),
  attempt: Type.Integer({ description: "from 1 in each generation" }),
  at: instant,
  httpStatus: Type.Union([Type.Integer(), Type.Null()], { description: "null = no answer came" }),
  durationMs: Type.Number(),
  error: nullable(Type.String()),
  responseSnippet: nullable(
    Type.String({
      description: "the first 1,024 bytes of the answer; signatures in it are masked",
    }),
  ),
  responseHeaders: Type.Union([Type.Record(Type.String(), Type.String()), Type.Null()], {
    description:
      "of a failed attempt, the first 20; values of cookies and credentials are masked. null = not kept",
  }),
  request: Type.Union([RequestView, Type.Null()], { description: "null = nothing was sent" }),
};
const AttemptView = Type.Object(attemptMembers);

const deliveryMembers = {
  deliveryId: Type.String(),
  eventId: Type.String(),
  endpointId: Type.String(),
  shipmentId: Type.Integer(),
  trigger: Type.String(),
  statusCode: nullable(Type.String({ description: "status name of the event" })),
  state: oneOf(["queued", "waiting", "delivered", "failed"]),
  reason: nullable(Type.String({ description: "why it failed" })),
  generation: Type.Integer(),
  attempts: Type.Array(AttemptView, { description: "oldest first" }),
  nextAttemptAt: nullable(instant),
  createdAt: instant,
};

export const DeliveryView = Type.Object(deliveryMembers);
export type DeliveryView = Static<typeof DeliveryView>;

/** A delivery by itself, with its body. */
export const DeliveryDetail = Type.Object({
  ...deliveryMembers,
  attempts: Type.Array(
    Type.Object({
      ...attemptMembers,
      bodyMatches: Type.Union([Type.Boolean(), Type.Null()], {
        description:
          "whether `body.text` is, byte for byte, what this attempt sent; null = not known",
      }),
    }),
    { description: "oldest first" },
  ),
  body: Type.Union(
    [
      Type.Object({
        text: Type.String({ description: "the frozen fact and the shipment as it is now" }),
        sha256: Type.String({ description: "hex" }),
        bytes: Type.Integer(),
      }),
      Type.Null(),
    ],
    { description: "what an attempt would send now; null = the endpoint is gone" },
  ),
});

export function deliveryView(delivery: Delivery, configuration: Configuration): DeliveryView {
  const { deliveryId, eventId, endpointId, shipmentId, trigger, fact, state } = delivery;
  return {
    deliveryId,
    eventId,
    endpointId,
    shipmentId,
    trigger,
    state,
    statusCode: fact.status,
    reason: delivery.reason,
    generation: delivery.generation,
    attempts: delivery.attempts.map(({ atMs, ...attempt }) => ({
      ...shownAttempt(attempt),
      at: isoOf(atMs),
      request: requestView(delivery, { ...attempt, atMs }, configuration),
    })),
    nextAttemptAt: delivery.nextAttemptAtMs === null ? null : isoOf(delivery.nextAttemptAtMs),
    createdAt: isoOf(delivery.createdAtMs),
  };
}

/** @param body what an attempt would send now */
export function deliveryDetail(
  delivery: Delivery,
  configuration: Configuration,
  body: string | null,
): Static<typeof DeliveryDetail> {
  const view = deliveryView(delivery, configuration);
  const rebuilt = body === null ? null : bodyOf(body);
  return {
    ...view,
    attempts: view.attempts.map((attempt) => {
      const isKnown = rebuilt !== null && attempt.request !== null;
      const bodyMatches = isKnown ? attempt.request?.bodySha256 === rebuilt.sha256 : null;
      return { ...attempt, bodyMatches };
    }),
    body: rebuilt,
  };
}

/** Earlier versions recorded answers as they came. */
export function shownAttempt<T extends Pick<Attempt, "responseSnippet">>(attempt: T): T {
  const { responseSnippet: snippet } = attempt;
  return { ...attempt, responseSnippet: snippet === null ? null : withoutSignatures(snippet) };
}

function bodyOf(text: string) {
  const sha256 = new Bun.CryptoHasher("sha256").update(text).digest("hex");
  return { text, sha256, bytes: Buffer.byteLength(text) };
}

/** What was sent, put together from what the log keeps and what requests of this endpoint have in common. */
function requestView(
  { eventId, endpointId }: Delivery,
  { attempt, atMs, request }: Attempt,
  configuration: Configuration,
): Static<typeof RequestView> | null {
  if (request === null) return null;
  const target = targetOf(endpointId, request, configuration);
  const facts = { eventId, type: "shipment.updated", attempt, sentAtMs: atMs };
  return {
    url: target?.url ?? null,
    headers: {
      ...(target && { Host: new URL(target.url).host }),
      ...(v1ChannelId(endpointId) === null
        ? webhookHeaders(facts, target ?? { standardWebhooks: false })
        : V1_HEADERS),
      "Content-Length": String(request.bodyBytes),
    },
    bodySha256: Buffer.from(request.bodyHash, "base64url").toString("hex"),
    bodyBytes: request.bodyBytes,
  };
}

export const ReplayView = Type.Object({
  replayId: Type.String(),
  endpointId: Type.String(),
  from: instant,
  to: instant,
  mode: oneOf(["each", "latest_per_shipment"]),
  state: oneOf(["running", "done", "stopped"]),
  queued: Type.Integer({ description: "deliveries queued so far" }),
  passedOver: Type.Integer({
    description: "not failed any more, or an older one of a shipment that had its delivery",
  }),
  passedOverBecause: Type.Object(
    {
      older: Type.Integer({ description: "an older one of a shipment that had its delivery" }),
      notFailed: Type.Integer({ description: "delivered, queued again or gone meanwhile" }),
    },
    { description: "adds up to passedOver" },
  ),
  startedAt: instant,
});

export function replayView(replay: Replay): Static<typeof ReplayView> {
  const { replayId, endpointId, mode, state, queued, passedOver, older } = replay;
  return {
    replayId,
    endpointId,
    mode,
    state,
    queued,
    passedOver,
    passedOverBecause: { older, notFailed: passedOver - older },
    from: isoOf(replay.fromMs),
    to: isoOf(replay.toMs),
    startedAt: isoOf(replay.startedAtMs),
  };
}

/** Instants beyond the calendar are its ends. */
export function isoOf(ms: number): string {
  return new Date(Math.max(-LAST_DATE_MS, Math.min(LAST_DATE_MS, ms))).toISOString();
}

const LAST_DATE_MS = 8_640_000_000_000_000;
