/** Orders and order parcels in the interface description. */

import { Type } from "@sinclair/typebox";
import { LIST_BODY_BYTES } from "#api/body-limits.ts";
import { PAGE_MAX } from "#api/parcels/parcel-access.ts";
import { OrderView, orderRecord, orderView } from "#core/domain/orders/order.ts";
import {
  OrderParcelView,
  orderOfParcels,
  ParcelsCreation,
  ParcelUpdate,
  parcelView,
} from "#core/domain/orders/order-parcel.ts";
import { id, inPath, type Operation, query, text } from "./operation.ts";

const EXAMPLE_MS = Date.UTC(2026, 10, 20, 9);

const order = orderView(
  33,
  orderRecord(
    1,
    {
      source: "shopify",
      reference: "1001",
      orderId: "gid-1",
      courier: "GLS_ITA",
      createdAt: "2026-11-01T10:00:00+01:00",
      consignee: { name: "Mario Rossi", street: "Via Roma 1", city: "Roma", country: "IT" },
      monetary: { isCod: false, value: 49.9 },
      parcels: [{ weight: 1.2, length: 30, width: 20, height: 10 }, { weight: 0.8 }],
      items: [{ sku: "LMP-01", name: "Lampada", quantity: 1, price: 49.9 }],
    },
    null,
    EXAMPLE_MS,
  ),
  () => 1,
);

const creation = {
  orderReference: "1002",
  orderOrigin: "shopify",
  parcels: [{ weightKg: 1.2, lengthCm: 30, widthCm: 20, heightCm: 10 }],
};
const record = orderOfParcels(1, creation, EXAMPLE_MS);
const parcels = record.parcels.map((one) => parcelView(record, one));
const [parcel] = parcels;
const parcelContent = { name: "OrderParcel", schema: OrderParcelView, example: parcel };

const OrderParcelPage = Type.Object({
  items: Type.Array(OrderParcelView),
  total: Type.Integer(),
  page: Type.Integer(),
  limit: Type.Integer(),
  pages: Type.Integer(),
});
const AcceptedParcels = Type.Object({
  jobId: Type.String(),
  status: Type.String(),
  statusUrl: Type.String({ description: "relative to /v2" }),
  totalParcels: Type.Integer(),
});

const ofOrder = [
  query(
    "orderReference",
    Type.String({ minLength: 1, maxLength: 50 }),
    "Order reference.",
    "1002",
    true,
  ),
  query(
    "orderOrigin",
    Type.String({ minLength: 1, maxLength: 50 }),
    "Origin platform.",
    "shopify",
    true,
  ),
];
/** Never refused. */
const lenient = Type.Union([Type.Integer(), Type.String(), Type.Array(Type.String())]);
const hash = [inPath("hash", text, parcel?.hash)];

export const ORDER_OPERATIONS: readonly Operation[] = [
  {
    id: "listOrders",
    method: "get",
    path: "/v2/orders",
    tag: "Orders",
    summary: "List the channel's orders, or look one up by its natural key",
    description:
      "Newest order date first, ties by the higher id; deleted orders are left out. `source` and `reference` together look one order up, without pages: an array of one, or 404. Either alone is ignored. `page` and `limit` out of range are clamped; what is no whole number counts as absent.",
    scope: "orders:read",
    parameters: [
      query("source", text, "Origin platform, exact.", "shopify"),
      query("reference", text, "Order reference, exact.", "1001"),
      query("page", lenient, "Default 1.", 1),
      query("limit", lenient, "Default 50, at most 100.", 50),
    ],
    answers: {
      200: {
        description: "Full orders.",
        headers: {
          "X-Page": "Page shown; not sent by the lookup.",
          "X-Limit": "Orders a page; not sent by the lookup.",
          "X-Total-Count": "Orders in all; 1 for the lookup.",
        },
        content: { name: "Orders", schema: Type.Array(OrderView), example: [order] },
      },
    },
    errors: [404, 422],
  },
  {
    id: "readOrder",
    method: "get",
    path: "/v2/orders/{id}",
    tag: "Orders",
    summary: "Read an order",
    scope: "orders:read",
    parameters: [inPath("id", id, 33)],
    answers: {
      200: {
        description: "The order.",
        content: { name: "Order", schema: OrderView, example: order },
      },
    },
    errors: [404],
  },
  {
    id: "listParcels",
    method: "get",
    path: "/v2/parcels",
    tag: "Order parcels",
    summary: "List the parcels of an order",
    scope: "parcels:read",
    parameters: [
      ...ofOrder,
      query("page", Type.Integer({ minimum: 1, maximum: PAGE_MAX }), "Default 1.", 1),
      query("limit", Type.Integer({ minimum: 1, maximum: 100 }), "Default 20.", 20),
    ],
    answers: {
      200: {
        description: "A page of parcels; an order without parcels is an empty page.",
        content: {
          name: "OrderParcelPage",
          schema: OrderParcelPage,
          example: { items: parcels, total: 1, page: 1, limit: 20, pages: 1 },
        },
      },
    },
    errors: [422],
  },
  {
    id: "createParcels",
    method: "post",
    path: "/v2/parcels",
    tag: "Order parcels",
    summary: "Create an order with its parcels",
    description: "More than 100 parcels, at most 1,000, are answered 202 with a job.",
    scope: "parcels:create",
    rules: [{ path: "orderOrigin", code: "NOT_ALLOWED", rule: "in the platform registry" }],
    body: { name: "ParcelsCreation", schema: ParcelsCreation, example: creation },
    limitBytes: LIST_BODY_BYTES,
    answers: {
      201: {
        description: "The parcels, in the order given.",
        content: { name: "OrderParcels", schema: Type.Array(OrderParcelView), example: parcels },
      },
      202: {
        description: "A job; its result tells the hashes.",
        content: {
          name: "AcceptedParcels",
          schema: AcceptedParcels,
          example: {
            jobId: "0f6a2d6b-5a54-4a05-8f5f-2f9a7a7b7d10",
            status: "processing",
            statusUrl: "/jobs/0f6a2d6b-5a54-4a05-8f5f-2f9a7a7b7d10",
            totalParcels: 101,
          },
        },
      },
    },
    errors: [400, 409, 413, 422],
  },
  {
    id: "deleteParcels",
    method: "delete",
    path: "/v2/parcels",
    tag: "Order parcels",
    summary: "Delete all parcels of an order",
    scope: "parcels:delete",
    parameters: ofOrder,
    answers: { 204: { description: "Deleted; the order stays." } },
    errors: [404, 422],
  },
  {
    id: "readParcel",
    method: "get",
    path: "/v2/parcels/{hash}",
    tag: "Order parcels",
    summary: "Read a parcel",
    scope: "parcels:read",
    parameters: hash,
    answers: { 200: { description: "The parcel.", content: parcelContent } },
    errors: [404],
  },
  {
    id: "updateParcel",
    method: "patch",
    path: "/v2/parcels/{hash}",
    tag: "Order parcels",
    summary: "Change fields of a parcel",
    scope: "parcels:update",
    parameters: hash,
    rules: [{ path: "", code: "REQUIRED", rule: "at least one field that is not null" }],
    body: { name: "ParcelUpdate", schema: ParcelUpdate, example: { weightKg: 1.4 } },
    answers: { 200: { description: "The parcel as it now is.", content: parcelContent } },
    errors: [400, 404, 422],
  },
  {
    id: "deleteParcel",
    method: "delete",
    path: "/v2/parcels/{hash}",
    tag: "Order parcels",
    summary: "Delete a parcel",
    scope: "parcels:delete",
    parameters: hash,
    answers: { 204: { description: "Deleted; the others keep hash and number." } },
    errors: [404],
  },
];
