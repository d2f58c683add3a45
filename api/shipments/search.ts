/** `GET /v2/shipments` (document 1, "Shipments"): filters combined with AND, six sorts, exact totals. */

import { type Static, Type } from "@sinclair/typebox";
import { type Caller, merchantRoutes } from "#api/auth/authenticated.ts";
import type { ApiDeps } from "#api/deps.ts";
import { linkPages, NOT_MODIFIED, PAGE_HEADERS, TAG_HEADERS, tagged } from "#api/http/paging.ts";
import { asIndexed, isAsIndexed } from "#api/shipments/as-indexed.ts";
import { EXAMPLE_SUMMARY } from "#api/shipments/example-summary.ts";
import { filtersOfCourier, SHARED_VALUE_MAX } from "#api/shipments/search-courier.ts";
import {
  LIMIT_DEFAULT,
  LIMIT_MAX,
  PAGE_MAX,
  readSearch,
  type Search,
  SORTS,
  STATUS_LIST,
  TEXT_MAX,
} from "#api/shipments/search-query.ts";
import { readShipmentsAnywhere } from "#core/archive/store/archive.ts";
import { Problem } from "#core/platform/errors/problem.ts";
import { declared, route } from "#core/platform/http/access.ts";
import { searchParamsOf } from "#core/platform/http/search-params.ts";
import { inSamples, json, query } from "#core/platform/openapi/operation.ts";
import { limit } from "#core/platform/schema/limit.ts";
import { LOCAL_DATE_TIME } from "#core/platform/time/rome-time.ts";
import { searchBoth } from "#core/search/store/archive-search.ts";
import { ShipmentSummary } from "#core/shipments/rules/shipment-view.ts";
import type { StoredShipment } from "#core/shipments/store/shipments.ts";
import { summaryOf } from "#core/shipments/store/summary.ts";
import { STATUSES } from "#core/statuses/rules/status.ts";

const READINGS = limit(
  5,
  "attempts to read a search page whose shipments keep changing",
  "503 with `Retry-After`",
);
const RETRY_AFTER_SECONDS = "1";

export const ShipmentPage = Type.Object({
  items: Type.Array(ShipmentSummary),
  total: Type.Integer(),
  page: Type.Integer(),
  limit: Type.Integer(),
  pages: Type.Integer(),
});
type ShipmentPage = Static<typeof ShipmentPage>;

const day = Type.String({ format: "calendar-date" });
const exact = Type.String({ minLength: 1, maxLength: TEXT_MAX });
const oneOf = (names: readonly string[]) => Type.Union(names.map((name) => Type.Literal(name)));

/** Document 1, "Reconciliation procedure": it ends, since at most 99 shipments of a company share a stamp. */
const CATCH_UP =
  "To miss no change, ask with `updatedAfter`, `sortBy=updatedAt_asc` and `limit=100`, and repeat with `updatedAfter` set to the " +
  "`statusUpdatedAt` of the last item, always on page 1 (not by `Link`: items move between pages), until fewer than 100 items return. " +
  "Items of that second come back: deduplicate by `id`, unless `statusUpdatedAt` is another one. At most 99 shipments of a company share " +
  "a second, so a smaller `limit` may return the same second for ever. After many changes at once `statusUpdatedAt` may be some seconds " +
  "ahead: begin with the value that you were given, not with your own clock.";

const operation = declared({
  access: { scope: "shipments:read" },
  id: "searchShipments",
  summary: "Search shipments",
  description: `All filters are optional and combined with AND. ${CATCH_UP}`,
  parameters: [
    query("trackingNumber", exact, "Exact.", EXAMPLE_SUMMARY.trackingNumber),
    query("orderReference", exact, "Exact.", "1001"),
    query("custom1", exact, "Exact.", "a"),
    query("custom2", exact, "Exact.", "b"),
    query("custom3", exact, "Exact.", "c"),
    query("shipDateFrom", day, "Inclusive.", "2026-11-01"),
    query("shipDateTo", day, "Inclusive.", "2026-11-30"),
    query(
      "status",
      Type.String({ pattern: STATUS_LIST.source }),
      `Comma-separated: ${STATUSES.join(", ")}.`,
      "IN_TRANSIT,DELIVERED",
    ),
    query(
      "courier",
      exact,
      "A courier of GET /v2/channel, by code, name or transcoding.",
      EXAMPLE_SUMMARY.courier,
    ),
    inSamples(
      query(
        "updatedAfter",
        Type.String({ pattern: LOCAL_DATE_TIME.source }),
        "`YYYY-MM-DD HH:MM:SS`, Europe/Rome: shipments whose status changed then or later, none that never changed.",
        "2026-11-20 09:00:00",
      ),
    ),
    query(
      "scope",
      oneOf(["channel", "company"]),
      "channel (default), or company for keys enabled for it.",
      "channel",
    ),
    query("page", Type.Integer({ minimum: 1, maximum: PAGE_MAX }), "Default 1.", 1),
    inSamples(
      query(
        "limit",
        Type.Integer({ minimum: 1, maximum: LIMIT_MAX }),
        `Default ${LIMIT_DEFAULT}.`,
        100,
      ),
    ),
    inSamples(
      query(
        "sortBy",
        oneOf(Object.keys(SORTS)),
        "Default id_desc; updatedAt_* by statusUpdatedAt, ties by id.",
        "updatedAt_asc",
      ),
    ),
  ],
  rules: [
    { path: "updatedAfter", code: "BAD_FORMAT", rule: "a date that exists, and a time" },
    { path: "courier", code: "NOT_ALLOWED", rule: "a courier that is known" },
    {
      path: "courier",
      code: "TOO_MANY",
      rule: `at most ${SHARED_VALUE_MAX} shipments have the tracking number, reference and custom fields asked for`,
    },
  ],
  answers: {
    200: {
      ...json("A page of summaries.", ShipmentPage, {
        items: [EXAMPLE_SUMMARY],
        total: 1,
        page: 1,
        limit: 20,
        pages: 1,
      }),
      headers: { ...PAGE_HEADERS, ...TAG_HEADERS },
    },
    ...NOT_MODIFIED,
  },
  errors: [
    "VALIDATION_FAILED",
    "COMPANY_WIDE_READ_NOT_ENABLED",
    "SEARCH_UNSTEADY",
    "ARCHIVE_UNAVAILABLE",
  ],
});

export function searchRoute(deps: ApiDeps) {
  return merchantRoutes(deps).get(
    "/v2/shipments",
    async ({ request, caller, set }): Promise<Response> => {
      const search = readSearch(searchParamsOf(request));
      const channelIds = channelsOf(search, caller);
      const filters = await filtersOfCourier(deps, search, channelIds, caller);
      const asked = { ...search, filters };
      const { total, shipments } = await readMatching(deps, asked, channelIds, caller);
      const { page, limit } = search;
      const pages = Math.ceil(total / limit);
      linkPages(request, set, page, pages);
      const items = shipments.map((shipment) => summaryOf(shipment, caller.configuration));
      return tagged(request, { items, total, page, limit, pages } satisfies ShipmentPage);
    },
    route(operation),
  );
}

/** @throws {Problem} 403: the enablement of company-wide reads is per API key */
function channelsOf({ scope }: Search, { apiKey, channel, company, configuration }: Caller) {
  if (scope === "channel") return [channel.id];
  if (!apiKey.companyWideRead) {
    throw new Problem(
      403,
      "COMPANY_WIDE_READ_NOT_ENABLED",
      "The API key is not enabled for company-wide reads.",
    );
  }
  const isTest = channel.testOf !== null;
  return company.channelIds.filter((id) => {
    const other = configuration.channels.get(id);
    return other?.active && (other.testOf !== null) === isTest;
  });
}

/**
 * A page is found in the index and its shipments are read afterwards, so one may have changed in between. The page is then
 * read again, with extra shipments: one that has left the filtered status is skipped and the next one takes its place. A
 * page is short only if nothing follows it (the reconciliation procedure ends there).
 * @throws {Problem} 503 if the shipments change faster than they can be read
 */
async function readMatching(
  { redis, archive }: Pick<ApiDeps, "redis" | "archive">,
  search: Search,
  channelIds: readonly number[],
  { company }: Caller,
): Promise<{ total: number; shipments: StoredShipment[] }> {
  const { filters, page, limit } = search;
  const offset = (page - 1) * limit;
  const query = { ...filters, offset, companyId: company.id, channelIds };
  let more = 0;
  for (let reading = 1; ; reading += 1) {
    const { total, hits } = await searchBoth(redis, archive, {
      ...query,
      limit: limit + more,
    });
    const ids = hits.map(({ id }) => id);
    const found = await readShipmentsAnywhere(redis, archive, ids, channelIds);
    const matching = found.filter(
      ({ state }) => filters.statuses?.includes(state.pair.status) ?? true,
    );
    const gone = hits.length - matching.length;
    const isFull = matching.length >= limit || offset + hits.length >= total;
    const isSteady = filters.order.by !== "upd" || isAsIndexed(matching, hits);
    if (isFull && (isSteady || reading >= READINGS)) {
      const shown = matching.slice(0, limit);
      const shipments = filters.order.by === "upd" ? asIndexed(shown, hits) : shown;
      return { total: total - gone, shipments };
    }
    if (reading >= READINGS) throw tooManyChanges();
    more = Math.min(limit, more + 2 * gone);
  }
}

function tooManyChanges(): Problem {
  const detail = "The shipments change faster than they can be read; try again.";
  return new Problem(503, "SEARCH_UNSTEADY", detail, {
    headers: { "retry-after": RETRY_AFTER_SECONDS },
  });
}
