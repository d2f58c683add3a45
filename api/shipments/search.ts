/** `GET /v2/shipments` (document 1, "Shipments"): filters combined with AND, six sorts, exact totals. */
import { Elysia } from "elysia";
import { authenticated, type Caller } from "#api/auth/authenticated.ts";
import type { ApiDeps } from "#api/deps.ts";
import { asIndexed, isAsIndexed } from "#api/shipments/as-indexed.ts";
import { readSearch, type Search } from "#api/shipments/search-query.ts";
import { summaryOf } from "#api/shipments/summary.ts";
import { searchParamsOf } from "#core/http/search-params.ts";
import { Problem } from "#core/problem.ts";
import type { Redis } from "#core/redis/client/client.ts";
import { searchShipments } from "#core/redis/search/search.ts";
import { readShipments, type StoredShipment } from "#core/redis/shipments/shipments.ts";

/** Attempts to read a page whose shipments change in the meantime. */
const READINGS = 5;
const RETRY_AFTER_SECONDS = "1";

export function searchRoute(deps: ApiDeps) {
  return new Elysia().use(authenticated(deps)).get(
    "/v2/shipments",
    async ({ request, caller }) => {
      const search = readSearch(searchParamsOf(request));
      const channelIds = channelsOf(search, caller);
      const { total, shipments } = await readMatching(deps.redis, search, channelIds, caller);
      const { page, limit } = search;
      return {
        items: shipments.map((shipment) => summaryOf(shipment, caller.configuration)),
        total,
        page,
        limit,
        pages: Math.ceil(total / limit),
      };
    },
    { scope: "shipments:read" },
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
  return company.channelIds.filter((id) => configuration.channels.get(id)?.active);
}

/**
 * A page is found in the index and its shipments are read afterwards, so one may have changed in between. The page is then
 * read again, with extra shipments: one that has left the filtered status is skipped and the next one takes its place. A
 * page is short only if nothing follows it (the reconciliation procedure ends there).
 * @throws {Problem} 503 if the shipments change faster than they can be read
 */
async function readMatching(
  redis: Redis,
  search: Search,
  channelIds: readonly number[],
  { company }: Caller,
): Promise<{ total: number; shipments: StoredShipment[] }> {
  const { filters, page, limit } = search;
  const offset = (page - 1) * limit;
  const query = { ...filters, offset, companyId: company.id, channelIds };
  let more = 0;
  for (let reading = 1; ; reading += 1) {
    const { total, hits } = await searchShipments(redis, { ...query, limit: limit + more });
    const found = await readShipments(
      redis,
      hits.map(({ id }) => id),
    );
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
