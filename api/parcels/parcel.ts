/** `GET`, `PATCH` and `DELETE /v2/parcels/{hash}` (document 1, "Order parcels"). */

import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { authenticated, type Caller } from "#api/auth/authenticated.ts";
import type { ApiDeps } from "#api/deps.ts";
import { SMALL_BODY_BYTES } from "#api/http/body-limits.ts";
import { validationFailed } from "#api/http/error-response.ts";
import { NOT_MODIFIED, TAG_HEADERS, tagged } from "#api/http/paging.ts";
import { readChecked } from "#api/http/read-json.ts";
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
import { described, inPath } from "#core/platform/openapi/operation.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import { compileSchema } from "#core/platform/schema/compile-schema.ts";
import { checkProduct, EXAMPLE_PARCELS, parcelNotFound } from "./parcel-access.ts";

const checker = compileSchema(ParcelUpdate);

const [example] = EXAMPLE_PARCELS;
const content = { schema: OrderParcelView, example };
const common = {
  parameters: [inPath("hash", Type.String(), example?.hash)],
  errors: ["PRODUCT_NOT_OWNED", "PARCEL_NOT_FOUND"] as const,
};

const OPERATIONS = {
  read: described({
    ...common,
    id: "readParcel",
    summary: "Read a parcel",
    answers: {
      200: { description: "The parcel.", headers: TAG_HEADERS, content },
      ...NOT_MODIFIED,
    },
  }),
  change: described({
    ...common,
    id: "updateParcel",
    summary: "Change fields of a parcel",
    rules: [{ path: "", code: "REQUIRED", rule: "at least one field that is not null" }],
    body: { schema: ParcelUpdate, example: { weightKg: 1.4 } },
    answers: { 200: { description: "The parcel as it now is.", content } },
  }),
  remove: described({
    ...common,
    id: "deleteParcel",
    summary: "Delete a parcel",
    answers: { 204: { description: "Deleted; the others keep hash and number." } },
  }),
};

export function parcelRoute(deps: ApiDeps) {
  const { redis, live } = deps;
  return new Elysia()
    .use(authenticated(deps))
    .get(
      "/v2/parcels/:hash",
      async ({ request, params, caller }) => {
        checkProduct(caller);
        const order = await orderOfParcel(redis, ownerOf(caller), params.hash);
        return tagged(request, shown(order?.record, params.hash));
      },
      { scope: "parcels:read", ...OPERATIONS.read },
    )
    .patch(
      "/v2/parcels/:hash",
      async ({ params, request, caller }) => {
        checkProduct(caller);
        const update = await readChecked(request, checker, SMALL_BODY_BYTES);
        if (Object.keys(update).length === 0) throw nothingToUpdate();
        const changed = await changeParcel(redis, caller, params.hash, (record) =>
          withParcelChanged(record, params.hash, update, live.now()),
        );
        return shown(changed, params.hash);
      },
      { scope: "parcels:update", parse: "none", ...OPERATIONS.change },
    )
    .delete(
      "/v2/parcels/:hash",
      async ({ params, caller, set }) => {
        checkProduct(caller);
        await changeParcel(redis, caller, params.hash, (record) =>
          withoutParcels(record, params.hash, live.now()),
        );
        set.status = 204;
      },
      { scope: "parcels:delete", ...OPERATIONS.remove },
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
