/** `GET /v2/shipments` (document 1, "Shipments"): filters combined with AND, six sorts, exact totals. */
import { Elysia } from "elysia";
import { authenticated, type Caller } from "#api/auth/authenticated.ts";
import type { ApiDeps } from "#api/deps.ts";
import { asIndexed } from "#api/shipments/as-indexed.ts";
import { readSearch, type Search } from "#api/shipments/search-query.ts";
import { summaryOf } from "#api/shipments/summary.ts";
import { searchParamsOf } from "#core/http/search-params.ts";
import { Problem } from "#core/problem.ts";
import type { Redis } from "#core/redis/client.ts";
import { searchShipments } from "#core/redis/search.ts";
import { readShipments, type StoredShipment } from "#core/redis/shipments.ts";

/** Readings of a page whose shipments left the filtered status while it was read. */
const READINGS = 3;

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

async function readMatching(
  redis: Redis,
  search: Search,
  channelIds: readonly number[],
  { company }: Caller,
): Promise<{ total: number; shipments: StoredShipment[] }> {
  const { filters, page, limit } = search;
  const place = { offset: (page - 1) * limit, limit };
  const query = { ...filters, ...place, companyId: company.id, channelIds };
  for (let reading = 1; ; reading += 1) {
    const { total, hits } = await searchShipments(redis, query);
    const found = await readShipments(
      redis,
      hits.map(({ id }) => id),
    );
    const steady = found.every(
      ({ state }) => filters.statuses?.includes(state.pair.status) ?? true,
    );
    if (!steady && reading < READINGS) continue;
    const shipments = filters.order.by === "upd" ? asIndexed(found, hits) : found;
    return { total, shipments };
  }
}
