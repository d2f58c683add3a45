/** `GET /panel/api/couriers/{code}/events`: what a courier sent and was not ACCEPTED, newest first. */
import { type Static, Type } from "@sinclair/typebox";
import { type InboxEvent, readInbox } from "#core/events/store/courier-inbox.ts";
import { type KeptOutcomeName, OUTCOMES_KEPT_DAYS } from "#core/events/store/event-outcomes.ts";
import { Problem } from "#core/platform/errors/problem.ts";
import { route } from "#core/platform/http/access.ts";
import { FAULT_CODES, type FaultCode } from "#core/platform/schema/fault.ts";
import { jsonValue } from "#core/platform/schema/json-value.ts";
import { nullableText as text } from "#core/platform/schema/nullable.ts";
import type { PanelDeps } from "#panel/server/caller.ts";
import { listQuery, pageBehind } from "#panel/server/http/list-page.ts";
import { panelRoutes } from "#panel/server/panel-routes.ts";
import { instantOfQuery } from "#panel/server/webhooks/webhook-access.ts";
import { courierOf } from "./courier-of.ts";

const OUTCOMES = ["INVALID", "UNKNOWN_TRACKING", "DUPLICATE"] as const satisfies KeptOutcomeName[];
/** Why a valid event has no shipment. */
const UNKNOWN_REASONS: Readonly<Record<string, string>> = {
  not_tracked: "No shipment has this number or reference.",
  ambiguous: "Several shipments have this externalId: send the tracking number too.",
  mismatch: "The shipment with this number has another order reference or sender account.",
};

const InboxItem = Type.Object({
  receivedAt: Type.String({ description: "UTC" }),
  eventId: Type.Union([Type.String(), Type.Null()], { description: "null if it has none" }),
  messageId: Type.String(),
  place: Type.Integer({ description: "position in its message" }),
  trackingNumber: text,
  outcome: Type.Union([
    Type.Literal("INVALID"),
    Type.Literal("UNKNOWN_TRACKING"),
    Type.Literal("DUPLICATE"),
  ]),
  errors: Type.Array(
    Type.Object({
      code: Type.String({ description: "fault code, or not_tracked, ambiguous, mismatch" }),
      path: Type.String({ description: "member of the event; empty for the whole" }),
      message: Type.String(),
    }),
  ),
  event: jsonValue("as it was sent; values that may be a recipient's are not kept"),
});

const Inbox = Type.Object({
  items: Type.Array(InboxItem, { description: "newest first" }),
  nextCursor: text,
  groups: Type.Array(
    Type.Object({
      outcome: Type.String(),
      code: Type.String(),
      path: Type.String(),
      events: Type.Integer(),
    }),
    { description: "how many of all that match break each rule, most first" },
  ),
});

const InboxQuery = Type.Composite([
  listQuery,
  Type.Object({
    outcome: Type.Optional(
      Type.String({ description: OUTCOMES.join(", "), examples: ["INVALID"] }),
    ),
    code: Type.Optional(Type.String({ description: "one code of errors" })),
    from: Type.Optional(Type.String({ description: "ISO 8601; received at or after it" })),
    to: Type.Optional(Type.String({ description: "ISO 8601; received before or at it" })),
  }),
]);

export function courierInboxRoute({ redis, live, ...deps }: PanelDeps) {
  return panelRoutes({ redis, live, ...deps }, "courier inbox").get(
    "/panel/api/couriers/:code/events",
    async ({ params, query }) => {
      const { code } = courierOf(await live.refresh(), params.code);
      const events = await readInbox(redis, code, outcomesOf(query.outcome), live.now());
      return pageOf(events, query);
    },
    route({
      access: { can: "events:read", of: "courier" },
      query: InboxQuery,
      response: Inbox,
      summary: `A courier's latest events of ${OUTCOMES_KEPT_DAYS} days that were refused, unknown or duplicates`,
      errors: ["COURIER_NOT_FOUND"],
    }),
  );
}

/** @throws {Problem} 422 */
function outcomesOf(asked = ""): readonly KeptOutcomeName[] {
  if (asked === "") return OUTCOMES;
  const names = asked.toUpperCase().split(",");
  const known = OUTCOMES.filter((one) => names.includes(one));
  if (known.length === new Set(names).size) return known;
  throw new Problem(422, "INVALID_QUERY", `outcome is one or more of ${OUTCOMES.join(", ")}.`);
}

/** @throws {Problem} 422 */
function pageOf(
  all: readonly InboxEvent[],
  query: Static<typeof InboxQuery>,
): Static<typeof Inbox> {
  const fromMs = query.from ? instantOfQuery("from", query.from, false) : 0;
  const toMs = query.to ? instantOfQuery("to", query.to, true) : Number.MAX_SAFE_INTEGER;
  const matching = all
    .filter(({ receivedAtMs }) => receivedAtMs >= fromMs && receivedAtMs <= toMs)
    .map((one) => ({ key: keyOf(one), view: viewOf(one) }))
    .filter(({ view }) => !query.code || view.errors.some(({ code }) => code === query.code));
  const page = pageBehind(matching, ({ key }) => key, query);
  if (page === null) return { items: [], nextCursor: null, groups: [] };
  return {
    items: page.items.map(({ view }) => view),
    nextCursor: page.nextCursor,
    groups: groupsOf(matching.map(({ view }) => view)),
  };
}

function keyOf({ receivedAtMs, messageId, place, outcome }: InboxEvent): string {
  return [receivedAtMs, place, outcome, messageId].join(" ");
}

function viewOf({ receivedAtMs, reasons, ...one }: InboxEvent): Static<typeof InboxItem> {
  return { ...one, receivedAt: new Date(receivedAtMs).toISOString(), errors: reasons.map(errorOf) };
}

function errorOf(reason: string) {
  const [code = "", member = ""] = reason.split(" ");
  const path = member === "other" ? "" : member;
  const message = FAULT_CODES[code as FaultCode] ?? UNKNOWN_REASONS[code] ?? "";
  return { code, path, message };
}

function groupsOf(items: readonly Static<typeof InboxItem>[]) {
  const rules = items.flatMap(({ outcome, errors }) =>
    errors.length === 0
      ? [{ outcome, code: "", path: "" }]
      : errors.map(({ code, path }) => ({ outcome, code, path })),
  );
  const groups = Map.groupBy(rules, ({ outcome, code, path }) => [outcome, code, path].join(" "));
  return [...groups.values()]
    .flatMap((own) => (own[0] ? [{ ...own[0], events: own.length }] : []))
    .sort((one, other) => other.events - one.events);
}
