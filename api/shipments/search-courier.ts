/** `?courier=` of the search, an extension of document 1: the ids of a courier's shipments, which the other filters then narrow. */
import type { Caller } from "#api/auth/authenticated.ts";
import type { ApiDeps } from "#api/deps.ts";
import { validationFailed } from "#api/http/error-response.ts";
import type { Search } from "#api/shipments/search-query.ts";
import { Problem } from "#core/platform/errors/problem.ts";
import type { Fault } from "#core/platform/schema/fault.ts";
import { limit } from "#core/platform/schema/limit.ts";
import { searchBoth } from "#core/search/store/archive-search.ts";
import { findByPart } from "#core/search/store/search-lines.ts";
import { findCourier, unknownCourierText } from "#core/shipments/rules/new-shipment.ts";
import { creationContext } from "#core/shipments/store/create-items.ts";

export const SHARED_VALUE_MAX = limit(
  5_000,
  "shipments with the exact values of a search by courier",
  "422: search without the courier, or for other values",
);
/** The largest page of the store's search. */
const HITS_PER_CALL = 1_000;
const RETRY_AFTER_SECONDS = "5";

/**
 * The filters with the courier's shipments in the place of exact values.
 * @throws {Problem} 422; 503 while an older store's shipments are still being noted, or without the archive
 */
export async function filtersOfCourier(
  deps: Pick<ApiDeps, "redis" | "archive">,
  { courier: text, filters }: Search,
  channelIds: readonly number[],
  { channel, configuration, company }: Caller,
): Promise<Search["filters"]> {
  if (text === null) return filters;
  const context = creationContext(configuration, channel);
  const courier = findCourier(text, context);
  if (courier === null) throw refused("NOT_ALLOWED", unknownCourierText(text, context), text);
  const asked = { text: "", courier };
  const { ids, isComplete } = await findByPart(deps.redis, company.id, channelIds, asked);
  if (!isComplete) throw notComplete();
  const alone = { ...filters, trackingNumber: null, exact: {} };
  if (filters.trackingNumber === null && Object.keys(filters.exact).length === 0) {
    return { ...alone, ids };
  }
  const values = { ...filters, companyId: company.id, channelIds };
  const withValues = await idsOfValues(deps, values, text);
  const both = [...ids].map(
    ([channelId, own]) => [channelId, own.filter((id) => withValues.has(id))] as const,
  );
  return { ...alone, ids: new Map(both) };
}

async function idsOfValues(
  { redis, archive }: Pick<ApiDeps, "redis" | "archive">,
  query: Omit<Parameters<typeof searchBoth>[2], "offset" | "limit">,
  courier: string,
): Promise<ReadonlySet<number>> {
  const ids = new Set<number>();
  for (let offset = 0; ; offset += HITS_PER_CALL) {
    const page = { ...query, offset, limit: HITS_PER_CALL };
    const { total, hits } = await searchBoth(redis, archive, page);
    if (total > SHARED_VALUE_MAX) throw tooMany(courier);
    for (const { id } of hits) ids.add(id);
    if (hits.length < HITS_PER_CALL) return ids;
  }
}

function tooMany(courier: string): Problem {
  const message = `More than ${SHARED_VALUE_MAX} shipments have these values: narrow them by dates or statuses, or leave the courier out.`;
  return refused("TOO_MANY", message, courier);
}

function refused(code: Fault["code"], message: string, courier: string): Problem {
  return validationFailed([{ path: "courier", code, message }], { courier });
}

function notComplete(): Problem {
  const detail = "Shipments of an earlier version are still being made searchable; try again.";
  const headers = { "retry-after": RETRY_AFTER_SECONDS };
  return new Problem(503, "SEARCH_UNSTEADY", detail, { headers });
}
