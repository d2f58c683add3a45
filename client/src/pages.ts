/** Lists that come in pages, as one. */

import type { Api } from "./api.ts";
import type { paths } from "./api-types.ts";
import { unwrap } from "./waybill-error.ts";

/** The largest page of each list (document 1, "Limits"). */
const PAGE = 100;

type Query<Path extends "/v2/shipments" | "/v2/orders" | "/v2/parcels"> = Omit<
  NonNullable<paths[Path]["get"]["parameters"]["query"]>,
  "page" | "limit"
>;
type Json<Path extends "/v2/shipments" | "/v2/orders" | "/v2/parcels"> =
  paths[Path]["get"]["responses"][200]["content"]["application/json"];

export type ShipmentQuery = Query<"/v2/shipments">;
export type Shipment = Json<"/v2/shipments">["items"][number];
export type Order = Json<"/v2/orders">[number];
export type Parcel = Json<"/v2/parcels">["items"][number];

/** Items that have not come before: new ones move those behind them to the next page. */
function unseen<T extends { readonly id: number }>() {
  const seen = new Set<number>();
  return (items: readonly T[]): T[] =>
    items.filter(({ id }) => {
      const isNew = !seen.has(id);
      seen.add(id);
      return isNew;
    });
}

/** All matches, oldest first unless sorted otherwise, so that new shipments do not move the pages. */
export function eachShipment(api: Api) {
  return async function* (query: ShipmentQuery = {}): AsyncGenerator<Shipment, void, undefined> {
    const fresh = unseen<Shipment>();
    for (let page = 1, pages = 1; page <= pages; page += 1) {
      const params = { query: { sortBy: "id_asc" as const, ...query, page, limit: PAGE } };
      const found = unwrap(await api.GET("/v2/shipments", { params }));
      pages = found.pages;
      yield* fresh(found.items);
    }
  };
}

/** All orders, the newest first, each once. */
export function eachOrder(api: Api) {
  return async function* (): AsyncGenerator<Order, void, undefined> {
    const fresh = unseen<Order>();
    for (let page = 1; ; page += 1) {
      const found = unwrap(
        await api.GET("/v2/orders", { params: { query: { page, limit: PAGE } } }),
      );
      yield* fresh(found);
      if (found.length < PAGE) return;
    }
  };
}

/** The parcels of an order. */
export function eachParcel(api: Api) {
  return async function* (query: Query<"/v2/parcels">): AsyncGenerator<Parcel, void, undefined> {
    for (let page = 1, pages = 1; page <= pages; page += 1) {
      const params = { query: { ...query, page, limit: PAGE } };
      const found = unwrap(await api.GET("/v2/parcels", { params }));
      pages = found.pages;
      yield* found.items;
    }
  };
}
