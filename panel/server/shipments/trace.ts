/**
 * `GET /panel/api/shipments/{id}/trace`: everything that happened to a shipment, and who was notified of it, as it is known now or
 * by what had been received at an earlier time.
 */

import { type Static, Type } from "@sinclair/typebox";
import { channelsOfShipments } from "#core/archive/store/archive.ts";
import type { Configuration } from "#core/configuration/store/configuration.ts";
import type { CourierEvent } from "#core/events/rules/event.ts";
import { route } from "#core/platform/http/access.ts";
import { shipmentPartition } from "#core/platform/redis/keys.ts";
import { jsonValue } from "#core/platform/schema/json-value.ts";
import {
  nullableText,
  nullableNumber as number,
  nullableText as text,
} from "#core/platform/schema/nullable.ts";
import { idOf } from "#core/platform/schema/path-id.ts";
import { NO_ARCHIVE } from "#core/search/store/archive-search.ts";
import { VERDICTS, type Verdict } from "#core/webhooks/rules/trigger.ts";
import {
  type Delivery,
  type DeliveryState,
  deliveryIdOf,
  type KeptDecision,
  readDeliveries,
} from "#core/webhooks/store/deliveries/deliveries.ts";
import { readMomentAnywhere } from "#core/webhooks/store/shipment-moment.ts";
import type { PanelDeps } from "#panel/server/caller.ts";
import {
  cursorBehind,
  LONG_PAGE,
  type OffsetPage,
  offsetPageOf,
  offsetQuery,
} from "#panel/server/http/list-page.ts";
import { notFound } from "#panel/server/not-found.ts";
import { panelRoutes } from "#panel/server/panel-routes.ts";
import { shownAttempt } from "#panel/server/webhooks/webhook-view.ts";
import {
  asOfQuery,
  deliveryThen,
  type Known,
  knownNow,
  knownThen,
  pair,
  StepChange,
  stepsOf,
} from "./trace-as-of.ts";

const DeliveryView = Type.Object({
  deliveryId: Type.String(),
  state: Type.Unsafe<DeliveryState>(
    Type.String({ description: "queued, waiting, delivered, failed" }),
  ),
  generation: Type.Integer({ description: "grows by 1 with each replay" }),
  createdAt: Type.String(),
  nextAttemptAt: text,
  reason: text,
  attempts: Type.Array(
    Type.Object({
      generation: Type.Integer(),
      attempt: Type.Integer(),
      at: Type.String(),
      httpStatus: number,
      durationMs: Type.Number(),
      error: text,
      responseSnippet: text,
    }),
  ),
});

const DecisionView = Type.Object({
  eventId: Type.String({ description: "shared by all endpoints of the channel" }),
  at: Type.String(),
  verdicts: Type.Array(
    Type.Object({
      endpointId: Type.String(),
      endpoint: text,
      verdict: Type.Unsafe<Verdict>(
        Type.Union(
          VERDICTS.map((verdict) => Type.Literal(verdict)),
          { description: "send, or why nothing is sent" },
        ),
      ),
      delivery: Type.Union([DeliveryView, Type.Null()]),
    }),
  ),
});

export const Trace = Type.Object({
  shipmentId: Type.Integer(),
  channel: Type.String(),
  courier: Type.String(),
  trackingNumber: Type.String(),
  aliases: Type.Array(Type.String()),
  createdAt: Type.String(),
  current: pair,
  statusUpdatedAt: text,
  unmappedEvents: Type.Integer(),
  total: Type.Integer({ description: "events of the shipment's history" }),
  nextCursor: nullableText,
  omitted: Type.Integer({ description: "further ones that the history does not keep" }),
  events: Type.Array(
    Type.Object({
      event: jsonValue<CourierEvent>("as the courier sent it"),
      occurredAt: Type.String({ description: "UTC" }),
      receivedAt: Type.String({ description: "UTC, our clock" }),
      messageId: Type.Union([Type.String(), Type.Null()], {
        description: "of the message that brought it; null if it was parked",
      }),
      place: Type.Integer({ description: "position in its message" }),
      setAside: Type.Boolean({
        description: "released from the store of parked events, kept minimal",
      }),
      mapping: Type.Union([
        Type.Object({
          status: Type.String(),
          detail: Type.Integer(),
          terminal: Type.Boolean(),
        }),
        Type.Null(),
      ]),
      mappedBefore: Type.Union([Type.String(), Type.Null()], {
        description:
          "with asOf: the later remap that says how the code was mapped then; null = as it is stored with the event",
      }),
      change: StepChange,
      decisions: Type.Array(DecisionView, {
        description: "webhook decisions of the last 30 days; more than one after a remap",
      }),
    }),
    { description: "in the order they were applied" },
  ),
});
type Trace = Static<typeof Trace>;

const traceQuery = Type.Composite([
  offsetQuery(LONG_PAGE),
  Type.Object({
    asOf: Type.Optional(
      Type.String({
        description:
          "only what had been received then: an ISO 8601 date and time with an offset, or a day in Rome to its end; not in the future",
      }),
    ),
  }),
]);

export function traceRoute(deps: PanelDeps) {
  const { redis, live, archive = NO_ARCHIVE } = deps;
  async function trace(idText: string, page: OffsetPage, asOfMs: number | null): Promise<Trace> {
    const id = idOf(idText);
    const configuration = await live.refresh();
    const channelIds = channelsOfShipments(configuration, [id]);
    const moment = await readMomentAnywhere(redis, archive, id, channelIds);
    if (!moment) throw notFound("shipment");
    const known = asOfMs === null ? knownNow(moment) : await knownThen(deps, moment, asOfMs);
    const { facts, decisions, mappedBefore } = known;
    const steps = stepsOf(facts).slice(page.offset, page.offset + page.limit);
    const keys = new Set(steps.map(({ fact }) => fact.key));
    const shown = decisions.filter(({ factKey }) => keys.has(factKey));
    // Deliveries of the decisions shown; their outcomes may be slightly newer than the rest.
    const deliveries = await readDeliveries(redis, deliveryIds(id, shown), live.now());
    const then = asOfMs === null ? deliveries : deliveries.map((one) => deliveryThen(one, asOfMs));
    const tell = teller(id, configuration, then);
    const byFact = Map.groupBy(shown, ({ factKey }) => factKey);
    return {
      ...headOf(known, configuration),
      total: facts.length,
      nextCursor: cursorBehind(page, facts.length),
      omitted: known.state.dropped,
      events: steps.map(({ fact, change }) => ({
        event: fact.event,
        occurredAt: isoOf(fact.occurredAtMs),
        receivedAt: isoOf(fact.receivedAtMs),
        messageId: fact.messageId ?? null,
        place: fact.messageIndex,
        setAside: fact.parked ?? false,
        mapping: fact.mapping,
        mappedBefore: mappedBefore.get(fact.key) ?? null,
        change,
        decisions: (byFact.get(fact.key) ?? []).map(tell),
      })),
    };
  }

  return panelRoutes(deps, "trace").get(
    "/panel/api/shipments/:id/trace",
    ({ params, query }) =>
      trace(params.id, offsetPageOf(query, LONG_PAGE), asOfQuery(query.asOf, live.now())),
    route({
      access: { can: "shipments:read", of: "shipment" },
      query: traceQuery,
      response: Trace,
      summary:
        "Every event, mapping, change, webhook verdict and attempt, now or at an earlier time",
      errors: ["ARCHIVE_UNAVAILABLE"],
    }),
  );
}

function headOf(
  { record, state, statusUpdatedAtMs }: Known,
  { channels }: Configuration,
): Omit<Trace, "total" | "nextCursor" | "omitted" | "events"> {
  return {
    shipmentId: record.id,
    channel: channels.get(record.channelId)?.code ?? "",
    courier: record.courier,
    trackingNumber: record.trackingNumber,
    aliases: [...state.aliases],
    createdAt: isoOf(record.createdAtMs),
    current: state.pair,
    statusUpdatedAt: statusUpdatedAtMs === null ? null : isoOf(statusUpdatedAtMs),
    unmappedEvents: state.unmapped,
  };
}

function deliveryIds(shipmentId: number, decisions: readonly KeptDecision[]): string[] {
  const partition = shipmentPartition(shipmentId);
  return decisions.flatMap(({ eventId, verdicts }) =>
    verdicts
      .filter(([, verdict]) => verdict === "send")
      .map(([endpointId]) => deliveryIdOf(partition, endpointId, eventId)),
  );
}

function teller(shipmentId: number, { endpoints }: Configuration, all: readonly Delivery[]) {
  const deliveries = new Map(all.map((delivery) => [delivery.deliveryId, delivery]));
  const partition = shipmentPartition(shipmentId);
  return ({ eventId, atMs, verdicts }: KeptDecision): Static<typeof DecisionView> => ({
    eventId,
    at: isoOf(atMs),
    verdicts: verdicts.map(([endpointId, verdict]) => {
      const delivery = deliveries.get(deliveryIdOf(partition, endpointId, eventId));
      return {
        endpointId,
        endpoint: endpoints.get(endpointId)?.code ?? null,
        verdict,
        delivery: delivery ? deliveryView(delivery) : null,
      };
    }),
  });
}

function deliveryView(delivery: Delivery): Static<typeof DeliveryView> {
  const { deliveryId, state, generation, createdAtMs, nextAttemptAtMs, reason } = delivery;
  return {
    deliveryId,
    state,
    generation,
    reason,
    createdAt: isoOf(createdAtMs),
    nextAttemptAt: nextAttemptAtMs === null ? null : isoOf(nextAttemptAtMs),
    attempts: delivery.attempts.map(({ atMs, request: _, ...attempt }) => ({
      ...shownAttempt(attempt),
      at: isoOf(atMs),
    })),
  };
}

function isoOf(ms: number): string {
  return new Date(ms).toISOString();
}
