/** `GET /panel/api/events`: what became of a courier's event or message of the last 7 days, whatever its outcome. */

import { type Static, Type } from "@sinclair/typebox";
import type { AcceptedEvent, Insights } from "#analytics/insights.ts";
import { channelsOfShipments, readHistoriesAnywhere } from "#core/archive/store/archive.ts";
import { lookUpEvents } from "#core/events/store/event-log.ts";
import {
  findOutcomes,
  OUTCOMES_KEPT_DAYS,
  type OutcomeQuery,
} from "#core/events/store/event-outcomes.ts";
import { factKeyOf, seenBucket, seenLayout } from "#core/events/store/seen.ts";
import { Problem } from "#core/platform/errors/problem.ts";
import { route } from "#core/platform/http/access.ts";
import { limit } from "#core/platform/schema/limit.ts";
import { nullableText as text } from "#core/platform/schema/nullable.ts";
import { NO_ARCHIVE } from "#core/search/store/archive-search.ts";
import type { PanelDeps } from "#panel/server/caller.ts";
import { courierOf } from "#panel/server/couriers/courier-of.ts";
import { limitOf, queryOf, wrongCursor } from "#panel/server/http/list-page.ts";
import { notFound } from "#panel/server/not-found.ts";
import { isTheirs } from "#panel/server/owners.ts";
import { panelRoutes } from "#panel/server/panel-routes.ts";

export const EVENTS_PER_ANSWER = limit(
  100,
  "events of one answer about an event or a message",
  "the next page",
);
const KEPT_MS = OUTCOMES_KEPT_DAYS * 86_400_000;
/** Longer than any valid id of document 2, in UTF-16 units. */
const ID_LENGTH = 256;

const EVENTS_PAGE = { usual: EVENTS_PER_ANSWER, most: EVENTS_PER_ANSWER };

const EventFilters = Type.Object({
  courier: Type.Optional(Type.String({ description: "courier code", examples: ["GLS_ITA"] })),
  eventId: Type.Optional(
    Type.String({ description: "this, messageId, or both", examples: ["5f1c-OUT-1"] }),
  ),
  messageId: Type.Optional(Type.String()),
});

const EventsQuery = Type.Composite([EventFilters, queryOf(EVENTS_PAGE)]);

const EventView = Type.Object({
  messageId: Type.Union([Type.String(), Type.Null()], {
    description: "null of an event that was parked and is applied",
  }),
  eventId: Type.Union([Type.String(), Type.Null()], {
    description: "null where the event had no readable one, or its shipment no longer has it",
  }),
  place: Type.Integer({ description: "position in its message" }),
  receivedAt: Type.String({ description: "UTC" }),
  outcome: Type.Union([
    Type.Literal("ACCEPTED"),
    Type.Literal("DUPLICATE"),
    Type.Literal("UNKNOWN_TRACKING"),
    Type.Literal("INVALID"),
  ]),
  reasons: Type.Array(Type.String(), {
    description:
      "UNKNOWN_TRACKING: not_tracked, ambiguous, mismatch, or released (parked and applied later); INVALID: fault code and member",
  }),
  shipmentIds: Type.Array(Type.Integer(), { description: "that have the event; at most 100" }),
});
type EventView = Static<typeof EventView>;

const Events = Type.Object({
  items: Type.Array(EventView, {
    description: `in the order received, ${EVENTS_PER_ANSWER} at most`,
  }),
  nextCursor: text,
  isKnown: Type.Union([Type.Boolean(), Type.Null()], {
    description: "whether the eventId would be a DUPLICATE now; null without one",
  }),
  isComplete: Type.Boolean({
    description:
      "false while the analytics cannot be asked: events that were ACCEPTED are missing then",
  }),
});
type Events = Static<typeof Events>;

/** Where a page begins: behind this one. */
interface After {
  readonly ms: number;
  readonly messageIndex: number;
  readonly message: string;
}

/** @param insights absent where the panel has no analytics */
export function eventsRoute(runtime: PanelDeps, insights?: Insights) {
  return panelRoutes(runtime, "events").get(
    "/panel/api/events",
    async ({ query, caller }) => {
      const { courier = "", eventId = null, messageId = null, cursor } = query;
      const isAsked = (id: string | null) => id === null || (id !== "" && id.length <= ID_LENGTH);
      const isGiven = courier !== "" && (eventId ?? messageId) !== null;
      if (!isGiven || !isAsked(eventId) || !isAsked(messageId)) {
        const detail = `courier and eventId or messageId are needed, ids of at most ${ID_LENGTH} characters.`;
        throw new Problem(422, "INVALID_QUERY", detail);
      }
      const page = { after: afterOf(cursor), limit: limitOf(query.limit, EVENTS_PAGE) };
      // A mistyped code must not read as "never received".
      const configuration = await runtime.live.refresh();
      const { code } = courierOf(configuration, courier);
      if (!isTheirs(caller, { companyCode: null, courierCode: code })) throw notFound("courier");
      return find(runtime, insights, { courier, eventId, messageId }, page);
    },
    route({
      access: { can: "events:read", of: "caller" },
      query: EventsQuery,
      response: Events,
      summary: "What became of an event or a message of the last 7 days",
      errors: ["COURIER_NOT_FOUND"],
    }),
  );
}

async function find(
  runtime: PanelDeps,
  insights: Insights | undefined,
  query: OutcomeQuery,
  { after, limit }: { readonly after: After; readonly limit: number },
): Promise<Events> {
  const { redis, live, config } = runtime;
  const nowMs = live.now();
  const { courier, eventId } = query;
  const [refused, accepted, isKnown] = await Promise.all([
    findOutcomes(redis, query, nowMs),
    findAccepted(runtime, insights, query, after),
    eventId === null
      ? null
      : seenLayout(redis, nowMs, config.eventsPerDay)
          .then((layout) => lookUpEvents(redis, layout, [seenBucket(courier, eventId)]))
          .then(([outcome]) => outcome === "known"),
  ]);
  const others = refused
    .filter(({ receivedAtMs, messageIndex, messageId }) =>
      isBehind({ ms: receivedAtMs, messageIndex, message: messageId }, after),
    )
    .map(({ receivedAtMs, reasons, messageIndex, ...one }) => ({
      ...one,
      place: messageIndex,
      reasons: [...reasons],
      receivedAt: isoOf(receivedAtMs),
      shipmentIds: [],
    }));
  const items = [...others, ...(accepted ?? [])].sort((one, other) =>
    isBehind(positionOf(one), positionOf(other)) ? 1 : -1,
  );
  const page = items.slice(0, limit);
  const last = page.at(-1);
  const hasMore = items.length > page.length && last !== undefined;
  return {
    items: page,
    nextCursor: hasMore ? cursorOf(positionOf(last)) : null,
    isKnown,
    isComplete: accepted !== null,
  };
}

/** Null while the analytics cannot be asked. */
async function findAccepted(
  deps: PanelDeps,
  insights: Insights | undefined,
  { courier, eventId, messageId }: OutcomeQuery,
  after: After,
): Promise<EventView[] | null> {
  if (!insights) return null;
  try {
    const rows = await insights.accepted({
      courier,
      factKey: eventId === null ? "" : factKeyOf(courier, eventId),
      messageId: messageId ?? "",
      since: deps.live.now() - KEPT_MS,
      afterMs: after.ms,
      afterMessageIndex: after.messageIndex,
      afterMessage: after.message,
      limit: EVENTS_PER_ANSWER + 1,
    });
    const ids = eventId === null ? await eventIdsOf(deps, rows) : null;
    return rows.map((row) => acceptedView(row, ids ? (ids.get(row.factKey) ?? null) : eventId));
  } catch (error) {
    if (error instanceof Problem && error.status === 503) return null;
    throw error;
  }
}

/** What was parked has no message: it was answered UNKNOWN_TRACKING, and is applied. */
function acceptedView(row: AcceptedEvent, eventId: string | null): EventView {
  const { messageId, messageIndex, receivedAtMs, shipmentIds } = row;
  const common = {
    eventId,
    place: messageIndex,
    receivedAt: isoOf(receivedAtMs),
    shipmentIds: [...shipmentIds],
  };
  return messageId === ""
    ? { ...common, messageId: null, outcome: "UNKNOWN_TRACKING", reasons: ["released"] }
    : { ...common, messageId, outcome: "ACCEPTED", reasons: [] };
}

/** The analytics know an event by a hash of its id: the id itself is with its shipment. */
async function eventIdsOf(
  { redis, live, archive = NO_ARCHIVE }: PanelDeps,
  rows: readonly AcceptedEvent[],
): Promise<Map<string, string>> {
  const ids = [...new Set(rows.flatMap(({ shipmentIds }) => shipmentIds.slice(0, 1)))];
  const channelIds = channelsOfShipments(live.configuration(), ids);
  const facts = (await readHistoriesAnywhere(redis, archive, ids, channelIds)).flat();
  return new Map(facts.map(({ key, event }) => [key, event.eventId]));
}

function positionOf({ receivedAt, place, messageId }: EventView): After {
  return { ms: Date.parse(receivedAt), messageIndex: place, message: messageId ?? "" };
}

/** In the order in which ClickHouse compares them: texts by their bytes. */
function isBehind(one: After, other: After): boolean {
  const byNumbers = one.ms - other.ms || one.messageIndex - other.messageIndex;
  return (byNumbers || Buffer.compare(Buffer.from(one.message), Buffer.from(other.message))) > 0;
}

const START: After = { ms: -1, messageIndex: -1, message: "" };

function cursorOf({ ms, messageIndex, message }: After): string {
  return Buffer.from(JSON.stringify([ms, messageIndex, message])).toString("base64url");
}

/** @throws {Problem} 422 */
function afterOf(cursor = ""): After {
  if (cursor === "") return START;
  try {
    const [ms, messageIndex, message] = JSON.parse(Buffer.from(cursor, "base64url").toString());
    const isWhole = Number.isSafeInteger(ms) && Number.isSafeInteger(messageIndex);
    if (isWhole && typeof message === "string") return { ms, messageIndex, message };
  } catch {
    // Answered below.
  }
  throw wrongCursor();
}

function isoOf(ms: number): string {
  return new Date(ms).toISOString();
}
