/** The reconciliation procedure of the API: every shipment whose status has changed since a time, and none missed. */
import type { Api } from "./api.ts";
import type { ShipmentSummary } from "./generated/types.gen.ts";

/** With smaller pages one second could fill a page for ever. */
const PAGE = 100;

export interface ChangesQuery {
  /** `YYYY-MM-DD HH:MM:SS` in Italian time: the `statusUpdatedAt` of the last shipment that you have processed. */
  readonly since: string;
  /** `company`: all channels, for keys that may read them. */
  readonly scope?: "channel" | "company";
}

/**
 * In the order of `statusUpdatedAt`, and ends when the present is reached. The shipments of the first second come again in
 * the next run; one that changes meanwhile comes again with its new status.
 */
export function changesSince(api: Api) {
  return async function* (query: ChangesQuery): AsyncGenerator<ShipmentSummary, void, undefined> {
    const { scope = "channel" } = query;
    let updatedAfter = query.since;
    /** Of those whose time is `updatedAfter`. */
    let seen = new Set<number>();
    for (;;) {
      const sortBy = "updatedAt_asc";
      const { items } = await api.searchShipments({
        query: { scope, updatedAfter, sortBy, limit: PAGE },
      });
      const boundary = updatedAfter;
      for (const item of items) {
        const at = item.statusUpdatedAt ?? updatedAfter;
        if (at === boundary && seen.has(item.id)) continue;
        if (at !== updatedAfter) {
          updatedAfter = at;
          if (at !== boundary) seen = new Set();
        }
        seen.add(item.id);
        yield item;
      }
      if (items.length < PAGE) return;
      if (updatedAfter === boundary) throw new Error(`more than ${PAGE} changes at ${boundary}`);
    }
  };
}
