/** `GET`, `PATCH` and `DELETE /v2/parcels/{hash}` (document 1, "Order parcels"). */

import { Type } from "@sinclair/typebox";
import { type Caller, merchantRoutes } from "#api/auth/authenticated.ts";
import type { ApiDeps } from "#api/deps.ts";
import { validationFailed } from "#api/http/error-response.ts";
import { NOT_MODIFIED, TAG_HEADERS, tagged } from "#api/http/paging.ts";
import { jsonBody } from "#api/http/read-json.ts";
import { ownerOf } from "#api/orders/order-answer.ts";
import type { OrderRecord } from "#core/merchants/rules/order.ts";
import {
  OrderParcelView,
  ParcelUpdate,
  parcelView,
  withoutParcels,
  withParcelChanged,
} from "#core/merchants/rules/order-parcel.ts";
import { changeOrder, orderOfParcel } from "#core/merchants/store/orders.ts";
import { declared, route } from "#core/platform/http/access.ts";
import { inPath } from "#core/platform/openapi/operation.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import { checkProduct, EXAMPLE_PARCELS, parcelNotFound } from "./parcel-access.ts";

const [example] = EXAMPLE_PARCELS;
const content = { schema: OrderParcelView, example };
const common = {
  parameters: [inPath("hash", Type.String(), example?.hash)],
  errors: ["PRODUCT_NOT_OWNED", "PARCEL_NOT_FOUND"] as const,
};

const OPERATIONS = {
  read: declared({
    access: { scope: "parcels:read", check: checkProduct },
    ...common,
    id: "readParcel",
    summary: "Read a parcel",
    answers: {
      200: { description: "The parcel.", headers: TAG_HEADERS, content },
      ...NOT_MODIFIED,
    },
  }),
  change: declared({
    access: { scope: "parcels:update", check: checkProduct },
    ...common,
    id: "updateParcel",
    summary: "Change fields of a parcel",
    rules: [{ path: "", code: "REQUIRED", rule: "at least one field that is not null" }],
    body: jsonBody(ParcelUpdate, { weightKg: 1.4 }),
    answers: { 200: { description: "The parcel as it now is.", content } },
  }),
  remove: declared({
    access: { scope: "parcels:delete", check: checkProduct },
    ...common,
    id: "deleteParcel",
    summary: "Delete a parcel",
    answers: { 204: { description: "Deleted; the others keep hash and number." } },
  }),
};

export function parcelRoute(deps: ApiDeps) {
  const { redis, live } = deps;
  return merchantRoutes(deps)
    .get(
      "/v2/parcels/:hash",
      async ({ request, params, caller }) => {
        const order = await orderOfParcel(redis, ownerOf(caller), params.hash);
        return tagged(request, shown(order?.record, params.hash));
      },
      route(OPERATIONS.read),
    )
    .patch(
      "/v2/parcels/:hash",
      async ({ params, body: update, caller }) => {
        if (Object.keys(update).length === 0) throw nothingToUpdate();
        const changed = await changeParcel(redis, caller, params.hash, (record) =>
          withParcelChanged(record, params.hash, update, live.now()),
        );
        return shown(changed, params.hash);
      },
      route(OPERATIONS.change),
    )
    .delete(
      "/v2/parcels/:hash",
      async ({ params, caller, set }) => {
        await changeParcel(redis, caller, params.hash, (record) =>
          withoutParcels(record, params.hash, live.now()),
        );
        set.status = 204;
      },
      route(OPERATIONS.remove),
    );
}

/** @throws {Problem} 404 */
async function changeParcel(
  redis: Redis,
  caller: Caller,
  hash: string,
  change: (record: OrderRecord) => OrderRecord | null,
): Promise<OrderRecord> {
  const owner = ownerOf(caller);
  const order = await orderOfParcel(redis, owner, hash);
  const changed = order && (await changeOrder(redis, owner, order.id, change));
  if (!changed) throw parcelNotFound();
  return changed.record;
}

/** @throws {Problem} 404 */
function shown(record: OrderRecord | undefined, hash: string): OrderParcelView {
  const parcel = record?.parcels.find((one) => one.hash === hash);
  if (!record || !parcel) throw parcelNotFound();
  return parcelView(record, parcel);
}

function nothingToUpdate() {
  return validationFailed([
    { path: "", code: "REQUIRED", message: "At least one field to update is required." },
  ]);
}
