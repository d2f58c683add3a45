/** What the search says of a channel, asked of the store. */

import type { Runtime } from "#core/runtime/runtime.ts";
import type { SortOrder } from "#core/search/store/index-ranges.ts";
import { searchShipments } from "#core/search/store/search.ts";
import { readShipments } from "#core/shipments/store/shipments.ts";
import type { Status } from "#core/statuses/rules/status.ts";

/** Whether the search by a status finds the shipment in the shipment's channel, in every order. */
export async function isFoundIn(
  { redis }: Pick<Runtime, "redis">,
  shipmentId: number,
  status: Status,
): Promise<boolean> {
  const [stored] = await readShipments(redis, [shipmentId]);
  if (!stored) throw new Error(`there is no shipment ${shipmentId}`);
  const { companyId, channelId } = stored.record;
  const query = {
    companyId,
    channelIds: [channelId],
    trackingNumber: null,
    exact: {},
    shipFrom: null,
    shipTo: null,
    updatedFrom: null,
    statuses: [status],
    offset: 0,
    limit: 1_000,
  };
  const found = await Promise.all(
    ORDERS.map((order) => searchShipments(redis, { ...query, order })),
  );
  const times = found.filter(({ hits }) => hits.some(({ id }) => id === shipmentId)).length;
  if (times !== 0 && times !== ORDERS.length) throw new Error("the orders disagree");
  return times > 0;
}

const ORDERS: readonly SortOrder[] = (["id", "ship", "upd"] as const).map((by) => {
  return { by, descending: true };
});
