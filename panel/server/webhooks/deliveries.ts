/** The delivery log and replays of the panel's HTTP API (document 3, "Delivery"). */

import { type Static, Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { readShipmentsAnywhere } from "#core/archive/store/archive.ts";
import type { Channel, Configuration } from "#core/configuration/store/configuration.ts";
import { Problem } from "#core/platform/errors/problem.ts";
import { route } from "#core/platform/http/access.ts";
import { companyPartition } from "#core/platform/redis/keys.ts";
import type { Runtime } from "#core/runtime/runtime.ts";
import { NO_ARCHIVE } from "#core/search/store/archive-search.ts";
import { readHotShipments, type StoredShipment } from "#core/shipments/store/shipments.ts";
import { v1ChannelId, v1EndpointId, v1Payload } from "#core/webhooks/rules/webhook-v1.ts";
import {
  DELIVERY_LIFE_MS,
  type Delivery,
  readDeliveries,
} from "#core/webhooks/store/deliveries/deliveries.ts";
import {
  type LogCursor,
  type LogPage,
  listDeliveries,
  searchDeliveries,
} from "#core/webhooks/store/deliveries/delivery-log.ts";
import {
  countReplay,
  latestReplays,
  REPLAYS_LISTED,
  readReplay,
  replayDeliveries,
  startReplay,
  stopReplay,
} from "#core/webhooks/store/deliveries/replays.ts";
import { signedHeaders } from "#core/webhooks/store/signed-headers.ts";
import { bodyTerms, deliveryBody } from "#core/webhooks/store/webhook-body.ts";
import type { PanelDeps } from "#panel/server/caller.ts";
import { jsonBody } from "#panel/server/http/checked-body.ts";
import { limitOf, listQuery, PAGE, wrongCursor } from "#panel/server/http/list-page.ts";
import { isPreview, PreviewQuery } from "#panel/server/http/preview-query.ts";
import { notFound } from "#panel/server/not-found.ts";
import { noteChange, noteNoChange, panelRoutes } from "#panel/server/panel-routes.ts";
import {
  channelOf,
  endpointOf,
  instantOfBody,
  instantOfQuery,
  refuseDisabled,
} from "./webhook-access.ts";
import {
  DeliveryDetail,
  DeliveryView,
  deliveryDetail,
  deliveryView,
  ReplayView,
  replayView,
} from "./webhook-view.ts";

const STATES = ["queued", "waiting", "delivered", "failed"] as const;

const text = (description: string) => Type.Optional(Type.String({ description }));

const LogFilters = Type.Object({
  state: text(STATES.join(", ")),
  from: text("created at or after: ISO 8601 with an offset, or a day"),
  to: text("created at or before: ISO 8601 with an offset, or a day"),
  trackingNumber: text("deliveries about this shipment"),
  orderReference: text("deliveries about shipments of this order"),
  eventId: text("the delivery of this event"),
});
const LogQuery = Type.Composite([listQuery, LogFilters]);
type LogQuery = Static<typeof LogQuery>;

const Numbered = Type.Object({
  trackingNumber: Type.Union([Type.String(), Type.Null()], {
    description:
      "of its shipment; null where that is gone, and in lists where it is in the archive",
  }),
});
export const LoggedDelivery = Type.Composite([DeliveryView, Numbered]);
export const OneDelivery = Type.Composite([DeliveryDetail, Numbered]);

const Log = Type.Object({
  items: Type.Array(LoggedDelivery, { description: "newest first" }),
  nextCursor: Type.Union([Type.String(), Type.Null()], {
    description: "null on the last page; a page may be empty and have a next one",
  }),
  cursor: Type.Union([Type.String(), Type.Null()], {
    description: "the same as nextCursor",
    deprecated: true,
  }),
});

const ReplayList = Type.Object({ items: Type.Array(ReplayView) });

const SignedRequest = Type.Object({
  headers: Type.Record(Type.String(), Type.String()),
  body: Type.String({ description: "the bytes that the signature is over" }),
});

const ReplayPreview = Type.Object({
  preview: Type.Object({
    deliveries: Type.Integer({ description: "failed ones of the window" }),
    shipments: Type.Integer({ description: "that they are about, of the newest 5,000" }),
    isComplete: Type.Boolean({ description: "false: more deliveries than were looked at" }),
  }),
});

const WindowBody = Type.Object(
  {
    from: Type.String({ description: "deliveries created at or after" }),
    to: Type.String({ description: "deliveries created at or before" }),
    mode: Type.Union([Type.Literal("each"), Type.Literal("latest_per_shipment")], {
      description:
        "each failed delivery, or of each shipment only the newest, with the shipment as it is now",
    }),
  },
  { additionalProperties: false },
);

/** The archive: absent, only shipments that Redis has are shown. */
type Deps = Runtime & Pick<PanelDeps, "archive">;

export function deliveryRoutes(runtime: Deps) {
  return new Elysia({ name: "delivery-routes" }).use(logRoutes(runtime)).use(replayRoutes(runtime));
}

function logRoutes(runtime: Deps) {
  const { live } = runtime;
  return panelRoutes(runtime, "deliveries")
    .get(
      "/panel/api/webhooks/:endpointId/deliveries",
      async ({ params, query }) => {
        const { channel } = endpointOf(await live.refresh(), params.endpointId);
        return readLog(runtime, channel, params.endpointId, query);
      },
      route({
        access: { can: "webhooks:read", of: "endpoint" },
        query: LogQuery,
        response: Log,
        summary: "Delivery log with its attempts",
      }),
    )
    .get(
      "/panel/api/channels/:channelCode/webhook-v1/deliveries",
      async ({ params, query }) => {
        const channel = channelOf(await live.refresh(), params.channelCode);
        return readLog(runtime, channel, v1EndpointId(channel.id), query);
      },
      route({
        access: { can: "webhooks:read", of: "channel" },
        query: LogQuery,
        response: Log,
        summary: "Delivery log of a channel's webhooks v1, also after the change-over",
      }),
    )
    .get(
      "/panel/api/deliveries/:deliveryId",
      ({ params }) => readDetail(runtime, params.deliveryId),
      route({
        access: { can: "webhooks:read", of: "delivery" },
        response: OneDelivery,
        summary: "One delivery, with its body as an attempt would send it now",
      }),
    );
}

async function replayDelivery(runtime: Deps, deliveryId: string) {
  const { redis, live } = runtime;
  const delivery = await deliveryOf(runtime, deliveryId);
  const { endpointId } = delivery;
  refuseV1(endpointId);
  refuseDisabled(endpointOf(await live.refresh(), endpointId).endpoint);
  const queued = await replayDeliveries(redis, [delivery.deliveryId], live.now());
  if (queued.length === 0) throw replayRefusal(delivery, live.now());
  return deliveryView(await deliveryOf(runtime, delivery.deliveryId), live.configuration());
}

function replayRoutes(runtime: Deps) {
  return panelRoutes(runtime, "replays")
    .get(
      "/panel/api/deliveries/:deliveryId/request",
      ({ params }) => signedRequest(runtime, params.deliveryId),
      route({
        access: { can: "webhooks:replay", of: "delivery" },
        response: SignedRequest,
        summary:
          "The request of a delivery, signed now, without custom headers: for a receiver under development",
        errors: ["NOT_REPLAYABLE"],
      }),
    )
    .post(
      "/panel/api/deliveries/:deliveryId/replay",
      ({ params }) => replayDelivery(runtime, params.deliveryId),
      route({
        access: { can: "webhooks:replay", of: "delivery" },
        response: DeliveryView,
        summary: "Queue one failed or delivered delivery as new",
        errors: [
          "NOT_REPLAYABLE",
          "ENDPOINT_NOT_FOUND",
          "ENDPOINT_DISABLED",
          "REPLAY_WINDOW_OVER",
          "DELIVERY_PENDING",
        ],
      }),
    )
    .get(
      "/panel/api/webhooks/:endpointId/replays",
      async ({ params: { endpointId } }) => {
        const { channel } = endpointOf(await runtime.live.refresh(), endpointId);
        const partition = companyPartition(channel.companyId);
        const replays = await latestReplays(runtime.redis, partition, endpointId);
        return { items: replays.map(replayView) };
      },
      route({
        access: { can: "webhooks:read", of: "endpoint" },
        response: ReplayList,
        summary: `The ${REPLAYS_LISTED} latest replays of windows, the newest first`,
      }),
    )
    .use(windowRoutes(runtime))
    .get(
      "/panel/api/webhooks/:endpointId/replays/:replayId",
      ({ params }) => replayOf(runtime, params.endpointId, params.replayId),
      route({
        access: { can: "webhooks:read", of: "endpoint" },
        response: ReplayView,
        summary: "How far the replay of a window has come",
        errors: ["REPLAY_NOT_FOUND"],
      }),
    );
}

function windowRoutes(runtime: Deps) {
  return panelRoutes(runtime, "window-replays")
    .post(
      "/panel/api/webhooks/:endpointId/replay",
      async ({ params, body, query, request, set }) => {
        if (isPreview(query)) {
          noteNoChange(request);
          return countWindow(runtime, params.endpointId, body);
        }
        const replayId = await replayWindow(runtime, params.endpointId, body);
        set.status = 202;
        return replayOf(runtime, params.endpointId, replayId);
      },
      route({
        access: { can: "webhooks:replay", of: "endpoint" },
        query: PreviewQuery,
        response: { 200: ReplayPreview, 202: ReplayView },
        summary:
          "Queue the failed deliveries of a window as new, paced; `preview=true` counts them first",
        errors: ["ENDPOINT_DISABLED", "TOO_MANY_REPLAYS"],
        body: jsonBody(WindowBody, {
          from: "2026-11-20T00:00:00+01:00",
          to: "2026-11-21T00:00:00+01:00",
          mode: "latest_per_shipment",
        }),
      }),
    )
    .delete(
      "/panel/api/webhooks/:endpointId/replays/:replayId",
      async ({ params, request }) => {
        const { endpointId, replayId } = params;
        const before = await replayOf(runtime, endpointId, replayId);
        const replay = await readReplay(runtime.redis, replayId);
        if (replay?.state === "running") await stopReplay(runtime.redis, replay);
        const after = await replayOf(runtime, endpointId, replayId);
        noteChange(request, { state: before.state }, { state: after.state });
        return after;
      },
      route({
        access: { can: "webhooks:replay", of: "endpoint" },
        response: ReplayView,
        summary: "Stop a replay of a window; what it has queued stays queued",
        errors: ["REPLAY_NOT_FOUND"],
      }),
    );
}

/** @throws {Problem} 404: unknown, or older than 30 days */
async function deliveryOf({ redis, live }: Runtime, deliveryId: string): Promise<Delivery> {
  const [delivery] = await readDeliveries(redis, [deliveryId], live.now());
  if (delivery) return delivery;
  throw notFound("delivery");
}

/** @throws {Problem} 409 */
function refuseV1(endpointId: string): void {
  if (v1ChannelId(endpointId) === null) return;
  throw new Problem(409, "NOT_REPLAYABLE", "Deliveries of webhooks v1 cannot be replayed.");
}

function replayRefusal({ createdAtMs }: Delivery, nowMs: number): Problem {
  if (nowMs - createdAtMs >= DELIVERY_LIFE_MS) {
    const detail = "A delivery can be replayed within 30 days of its creation.";
    return new Problem(409, "REPLAY_WINDOW_OVER", detail);
  }
  const detail = "The delivery is still pending: it is sent without a replay.";
  return new Problem(409, "DELIVERY_PENDING", detail);
}

async function readDetail(runtime: Deps, deliveryId: string) {
  const delivery = await deliveryOf(runtime, deliveryId);
  const configuration = await runtime.live.refresh();
  const shipment = await shipmentOf(runtime, delivery, configuration);
  const body = shipment ? bodyNow(delivery, shipment, configuration) : null;
  const trackingNumber = shipment?.record.trackingNumber ?? null;
  return { ...deliveryDetail(delivery, configuration, body), trackingNumber };
}

/** Wherever it is. Null when the endpoint is gone, or the shipment. @throws {Problem} 503 ARCHIVE_UNAVAILABLE */
async function shipmentOf(
  { redis, archive = NO_ARCHIVE }: Deps,
  { endpointId, shipmentId }: Delivery,
  configuration: Configuration,
): Promise<StoredShipment | null> {
  const channelId = v1ChannelId(endpointId) ?? configuration.endpoints.get(endpointId)?.channelId;
  if (channelId === undefined) return null;
  const [found] = await readShipmentsAnywhere(redis, archive, [shipmentId], [channelId]);
  return found ?? null;
}

/** As an attempt would send it now. @throws {Problem} 404, 409 */
async function signedRequest(
  runtime: Deps,
  deliveryId: string,
): Promise<Static<typeof SignedRequest>> {
  const { live, secrets } = runtime;
  const delivery = await deliveryOf(runtime, deliveryId);
  refuseV1(delivery.endpointId);
  const configuration = await live.refresh();
  const { endpoint } = endpointOf(configuration, delivery.endpointId);
  const shipment = await shipmentOf(runtime, delivery, configuration);
  const body = shipment && bodyNow(delivery, shipment, configuration);
  if (!body) throw notFound("delivery");
  const { eventId, attemptsMade } = delivery;
  const attempt = Math.max(1, attemptsMade);
  const event = { eventId, type: "shipment.updated", attempt, sentAtMs: live.now() };
  // Values of custom headers may be credentials of the receiver, which the panel never shows.
  const ours = { ...endpoint, headers: {} };
  return { headers: signedHeaders(ours, secrets.vault, event, body), body };
}

/** Null when the endpoint no longer exists. */
function bodyNow(
  delivery: Delivery,
  shipment: StoredShipment,
  configuration: Configuration,
): string | null {
  const { endpointId, fact } = delivery;
  if (v1ChannelId(endpointId) !== null) return JSON.stringify(v1Payload(shipment.record, fact));
  const endpoint = configuration.endpoints.get(endpointId);
  if (!endpoint) return null;
  const { withConsignee, source } = bodyTerms(endpoint, configuration);
  return deliveryBody({ delivery, shipment, configuration, withConsignee, source }, fact);
}

async function readLog(
  { redis, live }: Runtime,
  { companyId, id: channelId }: Channel,
  endpointId: string,
  query: LogQuery,
): Promise<Static<typeof Log>> {
  const configuration = await live.refresh();
  const { trackingNumber, orderReference, eventId } = query;
  const search = {
    ...(trackingNumber !== undefined && { trackingNumber }),
    ...(orderReference !== undefined && { orderReference }),
    ...(eventId !== undefined && { eventId }),
  };
  const filters = filtersOf(endpointId, query);
  const page = pageOf(query, filters);
  const found =
    Object.keys(search).length === 0
      ? await listDeliveries(redis, companyId, endpointId, page, live.now())
      : await searchDeliveries(
          redis,
          { companyId, channelId, endpointId },
          search,
          page,
          live.now(),
        );
  const nextCursor = found.cursor && cursorText(found.cursor, filters);
  const ids = [...new Set(found.deliveries.map(({ shipmentId }) => shipmentId))];
  const shipments = await readHotShipments(redis, ids);
  const items = found.deliveries.map((one) => ({
    ...deliveryView(one, configuration),
    trackingNumber: shipments.get(one.shipmentId)?.meta.trackingNumber ?? null,
  }));
  return { items, nextCursor, cursor: nextCursor };
}

/** @throws {Problem} 422 */
function pageOf({ state, from, to, limit, cursor }: LogQuery, filters: string): LogPage {
  const known = STATES.find((one) => one === state);
  if (state !== undefined && state !== "" && known === undefined) {
    throw invalidQuery(`state is one of ${STATES.join(", ")}.`);
  }
  const fromMs = from ? instantOfQuery("from", from, false) : 0;
  const toMs = to ? instantOfQuery("to", to, true) : Number.MAX_SAFE_INTEGER;
  if (fromMs > toMs) throw invalidQuery("from is later than to.");
  return {
    fromMs,
    toMs,
    cursor: cursor ? readCursor(cursor, filters) : null,
    limit: limitOf(limit, PAGE),
    ...(known !== undefined && { state: known }),
  };
}

function invalidQuery(detail: string): Problem {
  return new Problem(422, "INVALID_QUERY", detail);
}

/** Of what a page was asked for, beside its place: a cursor goes on with the same question alone. */
function filtersOf(endpointId: string, query: LogQuery): string {
  const { state, from, to, trackingNumber, orderReference, eventId } = query;
  const asked = [endpointId, state, from, to, trackingNumber, orderReference, eventId];
  return Bun.hash(JSON.stringify(asked.map((one) => one ?? ""))).toString(36);
}

function cursorText({ beforeMs, skip }: LogCursor, filters: string): string {
  return Buffer.from(`${beforeMs}.${skip}.${filters}`).toString("base64url");
}

/** @throws {Problem} 422 */
function readCursor(cursor: string, filters: string): LogCursor {
  const text = Buffer.from(cursor, "base64url").toString();
  const match = /^(\d{1,16})\.(\d{1,7})\.([0-9a-z]{1,13})$/.exec(text);
  if (!match) throw wrongCursor();
  if (match[3] !== filters) {
    throw invalidQuery(
      "cursor belongs to other filters: give those of the page that it came with.",
    );
  }
  return { beforeMs: Number(match[1]), skip: Number(match[2]) };
}

/** @throws {Problem} 422 */
function windowOf({ from, to }: Static<typeof WindowBody>) {
  const fromMs = instantOfBody("from", from, false);
  const toMs = instantOfBody("to", to, true);
  if (fromMs > toMs) throw new Problem(422, "INVALID_BODY", "from is later than to.");
  return { fromMs, toMs };
}

/** @throws {Problem} 404, 422 */
async function countWindow(
  { redis, live }: Runtime,
  endpointId: string,
  body: Static<typeof WindowBody>,
): Promise<Static<typeof ReplayPreview>> {
  const { channel } = endpointOf(await live.refresh(), endpointId);
  const window = { endpointId, ...windowOf(body) };
  const partition = companyPartition(channel.companyId);
  return { preview: { ...(await countReplay(redis, partition, window, live.now())) } };
}

/** @throws {Problem} 404, 409, 422 */
async function replayWindow(
  { redis, live }: Runtime,
  endpointId: string,
  body: Static<typeof WindowBody>,
): Promise<string> {
  const { endpoint, channel } = endpointOf(await live.refresh(), endpointId);
  const { fromMs, toMs } = windowOf(body);
  refuseDisabled(endpoint);
  const replayId = await startReplay(redis, companyPartition(channel.companyId), {
    endpointId,
    fromMs,
    toMs,
    mode: body.mode,
    startedAtMs: live.now(),
  });
  if (replayId !== null) return replayId;
  throw new Problem(
    409,
    "TOO_MANY_REPLAYS",
    "Too many replays are under way; wait for one to end.",
  );
}

/** @throws {Problem} 404 */
async function replayOf({ redis, live }: Runtime, endpointId: string, replayId: string) {
  endpointOf(await live.refresh(), endpointId);
  const replay = await readReplay(redis, replayId);
  if (replay?.endpointId === endpointId) return replayView(replay);
  throw new Problem(404, "REPLAY_NOT_FOUND", "There is no such replay.");
}
