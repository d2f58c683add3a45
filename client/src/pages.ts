/** Lists that come in pages, as one. */

import type { Api } from "./api.ts";
import type {
  ListParcelsData,
  Order,
  OrderParcel,
  SearchShipmentsData,
  ShipmentSummary,
} from "./generated/types.gen.ts";

/** The largest page of each list (document 1, "Limits"). */
const PAGE = 100;

type Query<Data extends { readonly query?: object }> = Omit<
  NonNullable<Data["query"]>,
  "page" | "limit"
>;
export type ShipmentQuery = Query<SearchShipmentsData>;
export type ParcelQuery = Query<ListParcelsData>;

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
  return async function* (
    query: ShipmentQuery = {},
  ): AsyncGenerator<ShipmentSummary, void, undefined> {
    const fresh = unseen<ShipmentSummary>();
    for (let page = 1, pages = 1; page <= pages; page += 1) {
      const sortBy = "id_asc";
      const found = await api.searchShipments({ query: { sortBy, ...query, page, limit: PAGE } });
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
      const found = await api.listOrders({ query: { page, limit: PAGE } });
      yield* fresh(found);
      if (found.length < PAGE) return;
    }
  };
}

/** The parcels of an order. */
export function eachParcel(api: Api) {
  return async function* (query: ParcelQuery): AsyncGenerator<OrderParcel, void, undefined> {
    for (let page = 1, pages = 1; page <= pages; page += 1) {
      const found = await api.listParcels({ query: { ...query, page, limit: PAGE } });
      pages = found.pages;
      yield* found.items;
    }
  };
}
