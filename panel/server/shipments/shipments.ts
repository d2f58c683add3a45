/** Shipments of the panel: the search box, lists of a company, and one shipment. */

import { type Static, Type } from "@sinclair/typebox";
import type { Insights } from "#analytics/insights.ts";
import { channelsOfShipments } from "#core/archive/store/archive.ts";
import type { Channel, Configuration } from "#core/configuration/store/configuration.ts";
import { matchingNumber } from "#core/events/rules/reference.ts";
import { erasePersonalData } from "#core/merchants/store/erase-personal-data.ts";
import { readNotifications } from "#core/merchants/store/notifications.ts";
import { Problem } from "#core/platform/errors/problem.ts";
import { route } from "#core/platform/http/access.ts";
import type { IndexOrder } from "#core/platform/redis/keys.ts";
import { limit } from "#core/platform/schema/limit.ts";
import { nullableText as text } from "#core/platform/schema/nullable.ts";
import { idOf } from "#core/platform/schema/path-id.ts";
import { NO_ARCHIVE } from "#core/search/store/archive-search.ts";
import type { SortOrder } from "#core/search/store/index-ranges.ts";
import { shipDay } from "#core/shipments/rules/shipment.ts";
import { trackingUrl } from "#core/shipments/rules/tracking-link.ts";
import type { StoredShipment } from "#core/shipments/store/shipments.ts";
import { STATUSES, type Status } from "#core/statuses/rules/status.ts";
import { readMomentAnywhere } from "#core/webhooks/store/shipment-moment.ts";
import type { Caller, PanelDeps } from "#panel/server/caller.ts";
import {
  cursorOf,
  listPageOf,
  listQuery,
  PAGE,
  wrongCursor,
} from "#panel/server/http/list-page.ts";
import { tableFile } from "#panel/server/http/table-file.ts";
import { notFound } from "#panel/server/not-found.ts";
import { isTheirs } from "#panel/server/owners.ts";
import { noteChange, panelRoutes } from "#panel/server/panel-routes.ts";
import { MATCHES, type Match } from "./find-shipments.ts";
import { listShipments, PART_LENGTH } from "./list-shipments.ts";

/** Of the search box: an id of a message has at most 256. */
const QUERY_LENGTH = limit(256, "characters of the panel's search box", "422");
const EXPORTED = limit(5_000, "shipments of the panel's CSV file", "the first ones");
const QUIET_DAYS = limit(365, "quietDays of the panel's search", "422");
/** Of each company all that stands before a page is read. */
const COMPANIES_DEPTH = limit(
  5_000,
  "shipments of several companies that a list can be paged through",
  "choose a company",
);
const CSV_FILE = {
  description: "a CSV file",
  content: { mediaType: "text/csv", schema: Type.String() },
};
/** Whatever is expected of them has not happened yet. */
const UNDER_WAY: readonly Status[] = STATUSES.filter(
  (status) => status !== "DELIVERED" && status !== "RETURNED",
);
const SORTS: ReadonlyMap<string, IndexOrder> = new Map([
  ["updated", "upd"],
  ["created", "id"],
  ["shipDate", "ship"],
]);
/** Shipments that a list can be paged through; narrower questions reach the others. */
const LIST_DEPTH = limit(1_000_000, "shipments that a list can be paged through", "ask for fewer");

const summary = {
  id: Type.Integer(),
  channelCode: Type.String(),
  companyCode: Type.String(),
  courier: Type.String(),
  trackingNumber: Type.String(),
  reference: Type.Union([Type.String(), Type.Null()], { description: "of the order" }),
  status: Type.Unsafe<Status>(Type.String()),
  statusDetail: Type.Integer({ description: "0 = none" }),
  statusUpdatedAt: text,
  createdAt: Type.String({ description: "ISO 8601" }),
};

export const ShipmentItem = Type.Object(summary);
export type ShipmentItem = Static<typeof ShipmentItem>;

export const ShipmentList = Type.Object({
  items: Type.Array(ShipmentItem),
  nextCursor: text,
  total: Type.Integer({ description: "of the list, or of what q found" }),
  isComplete: Type.Boolean({
    description: "false while numbers of older shipments are still being made searchable by part",
  }),
  matched: Type.Union([Type.Unsafe<Match>(Type.String()), Type.Null()], {
    description: `what q is: ${MATCHES.join(", ")}; null without q, and where it finds nothing`,
  }),
});

export const ShipmentPageDetail = Type.Object({
  ...summary,
  isPlaceholder: Type.Boolean({ description: "its tracking number is not known yet" }),
  shipDate: Type.String(),
  trackingUrl: Type.Union([Type.String(), Type.Null()], {
    description: "of the page for its recipient; null where the channel has none",
  }),
  furtherNumbers: Type.Array(Type.String(), {
    description: "tracking numbers that couriers announced for it",
  }),
  parcels: Type.Array(
    Type.Object({
      trackingNumber: Type.String(),
      status: text,
      statusDetail: Type.Integer(),
    }),
    { description: "its own parcels, with the status that events of their numbers gave them" },
  ),
  consignee: Type.Union(
    [Type.Object({ name: text, city: text, postcode: text, country: text }), Type.Null()],
    { description: "where it goes; null once erased or where none was given" },
  ),
  notifications: Type.Array(
    Type.Object({
      type: Type.String({ description: "email, sms, webhook" }),
      result: Type.String({ description: "OK or KO" }),
      sentAt: Type.String({ description: "ISO 8601" }),
      recipient: Type.String(),
      shipmentStatus: Type.String(),
      error: text,
    }),
    { description: "the newest first" },
  ),
});

const ListQuery = Type.Composite([
  listQuery,
  Type.Object({
    q: Type.Optional(
      Type.String({
        description: `part of a tracking number, of an order reference or of a recipient's name, from ${PART_LENGTH} characters on and in any case; or the whole shipment id, event id or message id of the courier, event id or delivery id of a webhook`,
        examples: ["TN0001"],
      }),
    ),
    companyCode: Type.Optional(Type.String()),
    channelCode: Type.Optional(Type.String()),
    status: Type.Optional(Type.String({ description: "one or more, separated by commas" })),
    courier: Type.Optional(Type.String({ description: "courier code" })),
    quietDays: Type.Optional(
      Type.String({
        description:
          "without a change for at least so many days; without status only those under way",
      }),
    ),
    shipFrom: Type.Optional(Type.String({ description: "ship date, YYYY-MM-DD" })),
    shipTo: Type.Optional(Type.String({ description: "ship date, YYYY-MM-DD" })),
    sort: Type.Optional(
      Type.String({ description: "-updated (default), created or shipDate; - descends" }),
    ),
  }),
]);

export function shipmentRoutes(deps: PanelDeps, insights?: Insights) {
  const { redis, live, archive = NO_ARCHIVE } = deps;
  return panelRoutes(deps, "shipments")
    .get(
      "/panel/api/shipments",
      ({ query, caller }) => list(deps, insights, caller, query),
      route({
        access: { can: "shipments:read", of: "caller" },
        query: ListQuery,
        response: ShipmentList,
        summary: "Search shipments by part of a text and by filters, last changed first",
        errors: [
          "COMPANY_NOT_FOUND",
          "CHANNEL_NOT_FOUND",
          "COURIER_NOT_FOUND",
          "ARCHIVE_UNAVAILABLE",
        ],
      }),
    )
    .get(
      "/panel/api/shipments/export",
      ({ query, caller }) => exported(deps, insights, caller, query),
      route({
        access: { can: "shipments:read", of: "caller" },
        query: ListQuery,
        summary: `The same as CSV, the first ${EXPORTED} shipments`,
        errors: [
          "COMPANY_NOT_FOUND",
          "CHANNEL_NOT_FOUND",
          "COURIER_NOT_FOUND",
          "ARCHIVE_UNAVAILABLE",
        ],
        answers: { 200: CSV_FILE },
      }),
    )
    .get(
      "/panel/api/shipments/:id",
      async ({ params }) => {
        const id = idOf(params.id);
        const configuration = await live.refresh();
        const channelIds = channelsOfShipments(configuration, [id]);
        const moment = await readMomentAnywhere(redis, archive, id, channelIds);
        if (!moment) throw notFound("shipment");
        const notifications = await readNotifications(redis, moment, configuration, live.now());
        return {
          ...itemOf(moment.shipment, configuration),
          ...detailOf(moment.shipment, configuration, deps.config.publicUrl),
          notifications: notifications.map(({ sentAtMs, ...one }) => ({
            ...one,
            sentAt: new Date(sentAtMs).toISOString(),
          })),
        };
      },
      route({
        access: { can: "shipments:read", of: "shipment" },
        response: ShipmentPageDetail,
        summary: "One shipment; its events and webhooks are in its trace",
        errors: ["ARCHIVE_UNAVAILABLE"],
      }),
    )
    .delete(
      "/panel/api/shipments/:id/personal-data",
      async ({ params, request, set }) => {
        const outcome = await erasePersonalData({ ...deps, archive }, idOf(params.id));
        if (outcome === "missing") throw notFound("shipment");
        noteChange(request, { erased: outcome === "repeated" }, { erased: true });
        set.status = 204;
      },
      route({
        access: { can: "shipments:erase", of: "shipment" },
        summary: "Erase the recipient of a shipment everywhere; repeating it changes nothing",
        errors: ["ARCHIVE_UNAVAILABLE"],
        answers: { 204: { description: "erased" } },
      }),
    );
}

/** @throws {Problem} 404 for a company or channel that is not the caller's, 422 */
async function list(
  deps: PanelDeps,
  insights: Insights | undefined,
  caller: Caller,
  query: Static<typeof ListQuery>,
): Promise<Static<typeof ShipmentList>> {
  const { q = "", status = "", courier = "" } = query;
  const { after, limit } = listPageOf(query);
  const offset = offsetOf(after);
  const configuration = await deps.live.refresh();
  const channels = channelsOf(configuration, caller, query);
  if (courier !== "" && !configuration.couriers.has(courier)) throw notFound("courier");
  const text = q.trim();
  if (text.length > QUERY_LENGTH) throw invalid(`q has at most ${QUERY_LENGTH} characters.`);
  const isOfOne = new Set(channels.map(({ companyId }) => companyId)).size <= 1;
  const depth = isOfOne ? LIST_DEPTH : COMPANIES_DEPTH;
  if (offset >= depth) throw wrongCursor();
  const quietDays = daysOf(query.quietDays);
  const { total, shipments, matched, isComplete } = await listShipments(deps, insights, {
    text,
    channels,
    configuration,
    courier,
    quietDays,
    statuses: statusesOf(status) ?? (quietDays === null ? null : UNDER_WAY),
    shipFrom: dateOf("shipFrom", query.shipFrom),
    shipTo: dateOf("shipTo", query.shipTo),
    order: orderOf(query.sort),
    offset,
    limit,
  });
  const next = offset + limit;
  return {
    items: shipments.map((one) => itemOf(one, configuration)),
    nextCursor: next < Math.min(total, depth) ? cursorOf(String(next)) : null,
    total,
    matched,
    isComplete,
  };
}

async function exported(
  deps: PanelDeps,
  insights: Insights | undefined,
  caller: Caller,
  query: Static<typeof ListQuery>,
): Promise<Response> {
  const rows: ShipmentItem[] = [];
  let cursor: string | null = "";
  while (cursor !== null && rows.length < EXPORTED) {
    const page: Static<typeof ShipmentList> = await list(deps, insights, caller, {
      ...query,
      cursor,
      limit: String(PAGE.most),
    });
    rows.push(...page.items);
    cursor = page.nextCursor;
  }
  return tableFile("shipments", ShipmentItem, rows, "csv");
}

/** Null = any. @throws {Problem} 422 */
function daysOf(text: string | undefined): number | null {
  if (text === undefined || text === "") return null;
  const days = /^\d{1,4}$/.test(text) ? Number(text) : 0;
  if (days >= 1 && days <= QUIET_DAYS) return days;
  throw invalid(`quietDays is a number from 1 to ${QUIET_DAYS}.`);
}

/** Days since 1970; null = any. @throws {Problem} 422 */
function dateOf(name: string, text: string | undefined): number | null {
  if (text === undefined || text === "") return null;
  const isDate = /^\d{4}-\d\d-\d\d$/.test(text) && !Number.isNaN(Date.parse(text));
  if (isDate) return shipDay(text);
  throw invalid(`${name} is a date, YYYY-MM-DD.`);
}

/** @throws {Problem} 422 */
function orderOf(sort = "-updated"): SortOrder {
  const by = SORTS.get(sort.replace(/^-/, ""));
  if (by) return { by, descending: sort.startsWith("-") };
  throw invalid(`sort is one of ${[...SORTS.keys()].join(", ")}, with - before it to descend.`);
}

/** @throws {Problem} 404 */
function channelsOf(
  { companies, channels }: Configuration,
  caller: Caller,
  { companyCode, channelCode }: Static<typeof ListQuery>,
): Channel[] {
  const codeOf = ({ companyId }: Channel) => companies.get(companyId)?.code ?? "";
  const theirs = [...channels.values()].filter((channel) =>
    isTheirs(caller, { companyCode: codeOf(channel), courierCode: null }),
  );
  const ofCompany = theirs.filter((one) => !companyCode || codeOf(one) === companyCode);
  if (companyCode && ofCompany.length === 0) throw notFound("company");
  const ofChannel = ofCompany.filter(({ code }) => !channelCode || code === channelCode);
  if (channelCode && ofChannel.length === 0) throw notFound("channel");
  return ofChannel;
}

/** Null = any. @throws {Problem} 422 */
function statusesOf(text: string): Status[] | null {
  if (text === "") return null;
  const names = [...new Set(text.split(","))];
  const known = names.flatMap((name) => STATUSES.find((one) => one === name) ?? []);
  if (known.length === names.length) return known;
  throw invalid(`status is one or more of ${STATUSES.join(", ")}.`);
}

/** @throws {Problem} 422 */
function offsetOf(after: string | null): number {
  if (after === null) return 0;
  const offset = /^\d{1,7}$/.test(after) ? Number(after) : LIST_DEPTH;
  if (offset < LIST_DEPTH) return offset;
  throw wrongCursor();
}

function invalid(detail: string): Problem {
  return new Problem(422, "INVALID_QUERY", detail);
}

function itemOf(
  { record, state, statusUpdatedAtMs }: StoredShipment,
  { channels, companies }: Configuration,
): ShipmentItem {
  const { id, courier, trackingNumber, orderReference = null, createdAtMs } = record;
  return {
    id,
    courier,
    trackingNumber,
    reference: orderReference,
    channelCode: channels.get(record.channelId)?.code ?? "",
    companyCode: companies.get(record.companyId)?.code ?? "",
    status: state.pair.status,
    statusDetail: state.pair.detail,
    statusUpdatedAt: statusUpdatedAtMs === null ? null : new Date(statusUpdatedAtMs).toISOString(),
    createdAt: new Date(createdAtMs).toISOString(),
  };
}

function detailOf(
  { record, state }: StoredShipment,
  { channels }: Configuration,
  publicUrl: string,
) {
  const { id, channelId, consignee, parcels = [], shipDate, trackingToken } = record;
  const hasPage = channels.get(channelId)?.trackingPage === true;
  return {
    shipDate,
    trackingUrl: hasPage ? trackingUrl(publicUrl, id, trackingToken) : null,
    isPlaceholder: record.isRealTrackingNumber === false,
    furtherNumbers: [...state.aliases],
    parcels: parcels.flatMap((parcel) => {
      const { trackingNumber } = parcel;
      if (trackingNumber === undefined) return [];
      const names = [matchingNumber(trackingNumber), trackingNumber];
      const name = names.find((one) => Object.hasOwn(state.parcels, one));
      const said = name === undefined ? null : state.parcels[name];
      const { status = null, detail = 0 } = said?.value ?? {};
      return [{ trackingNumber, status, statusDetail: detail }];
    }),
    consignee: consignee
      ? {
          name: consignee.name ?? null,
          city: consignee.city ?? null,
          postcode: consignee.postcode ?? null,
          country: consignee.country ?? null,
        }
      : null,
  };
}
