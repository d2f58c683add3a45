/** `GET /v2/channel`, an extension of document 1: what the caller's key may name in requests, and its limits. */
import { type Static, Type } from "@sinclair/typebox";
import { type Caller, merchantRoutes } from "#api/auth/authenticated.ts";
import { TOKEN_LIFE_SECONDS } from "#api/auth/tokens.ts";
import type { ApiDeps } from "#api/deps.ts";
import { NOT_MODIFIED, TAG_HEADERS, tagged } from "#api/http/paging.ts";
import { findCarrier } from "#api/labels/carriers.ts";
import { LIMIT_MAX } from "#api/shipments/search-query.ts";
import { PARCELS_PER_LABEL } from "#core/merchants/rules/label.ts";
import type { Config } from "#core/platform/environment/config.ts";
import { declared, route } from "#core/platform/http/access.ts";
import { json } from "#core/platform/openapi/operation.ts";
import {
  LANGUAGES,
  ORDER_ITEMS_PER_SHIPMENT,
  PARCELS_PER_SHIPMENT,
  SHIPMENTS_PER_CREATE,
  SHIPMENTS_PER_IMPORT,
} from "#core/shipments/rules/shipment.ts";
import { creationContext } from "#core/shipments/store/create-items.ts";
import { StatusSchema } from "#core/statuses/rules/status.ts";

const text = (description: string, example: string) =>
  Type.String({ description, examples: [example] });
const count = (description: string, example: number) =>
  Type.Integer({ description, examples: [example] });

const ChannelCourierView = Type.Object({
  code: text("Courier code, to be used as `courier`.", "GLS_ITA"),
  name: text("Name of the courier, understood as `courier` too.", "GLS Italy"),
  transcodings: Type.Array(Type.String(), {
    description:
      "The channel's own names of the courier, understood as `courier` too, in any case.",
    examples: [["GLS", "corriere gls"]],
  }),
  labelFormats: Type.Array(Type.Union([Type.Literal("PDF"), Type.Literal("ZPL")]), {
    description: "Formats of the labels that POST /v2/labels makes; empty if it makes none.",
    examples: [["PDF"]],
  }),
});

const ChannelBox = Type.Object({
  code: text("To be used as `boxCode` of a parcel.", "S"),
  length: Type.Number({ description: "Length in cm.", examples: [30] }),
  width: Type.Number({ description: "Width in cm.", examples: [20] }),
  height: Type.Number({ description: "Height in cm.", examples: [10] }),
});

const ChannelStatusDetail = Type.Object({
  id: count("What `statusDetail` of a shipment is; 0 stands for none and is not listed.", 4),
  status: Type.Union([StatusSchema, Type.Null()], {
    description: "The status that the detail belongs to; null for any.",
    examples: ["EXCEPTION"],
  }),
  heldInDepot: Type.Boolean({
    description: "Whether the parcel is held in depot, so that it can be released.",
    examples: [true],
  }),
  description: Type.Record(Type.String(), Type.String(), {
    description: "Text for recipients by language.",
    examples: [{ it: "In giacenza", en: "Held in depot" }],
  }),
});

const ChannelLimits = Type.Object({
  bucketSize: count("Requests that the channel may make at once.", 300),
  refillRate: count("Requests added a minute, all at once.", 150),
  tokenLifeSeconds: count("Life of an access token in seconds.", TOKEN_LIFE_SECONDS),
  shipmentsPerCreate: count("Shipments of POST /v2/shipments.", SHIPMENTS_PER_CREATE),
  shipmentsPerImport: count("Shipments of POST /v2/shipments/import.", SHIPMENTS_PER_IMPORT),
  parcelsPerShipment: count("Parcels of a shipment.", PARCELS_PER_SHIPMENT),
  orderItemsPerShipment: count("Order lines of a shipment.", ORDER_ITEMS_PER_SHIPMENT),
  parcelsPerLabel: count("Parcels of POST /v2/labels.", PARCELS_PER_LABEL),
  searchPageSize: count("Largest `limit` of GET /v2/shipments.", LIMIT_MAX),
});

export const ChannelView = Type.Object({
  code: text("The channel's code.", "acme-it"),
  name: text("The channel's name.", "Acme Italia"),
  couriers: Type.Array(ChannelCourierView, {
    description: "Couriers that the channel ships with.",
  }),
  boxes: Type.Array(ChannelBox, { description: "The company's box registry." }),
  platforms: Type.Array(Type.String(), {
    description: "The platform registry: values of `origin` and `source`.",
    examples: [["shopify", "magento", "api"]],
  }),
  languages: Type.Array(Type.String(), {
    description: "Values of `language`, ISO 639-1.",
    examples: [["it", "en"]],
  }),
  statusDetails: Type.Array(ChannelStatusDetail, {
    description: "Details that a status may have.",
  }),
  scopes: Type.Array(Type.String(), {
    description: "Scopes of the API key.",
    examples: [["shipments:read"]],
  }),
  limits: ChannelLimits,
});
type ChannelView = Static<typeof ChannelView>;

const operation = declared({
  access: { scope: null },
  id: "readChannel",
  summary: "Read what this key may use",
  description:
    "The couriers, boxes, platforms and languages that requests may name, the status details that shipments may have, the key's scopes and the channel's limits. Every `INVALID_…` error of an item leads here.",
  extension: true,
  answers: {
    200: {
      ...json("The channel of the access token.", ChannelView, {
        code: "acme-it",
        name: "Acme Italia",
        couriers: [
          { code: "GLS_ITA", name: "GLS Italy", transcodings: ["GLS"], labelFormats: [] },
          { code: "GENERIC", name: "GENERIC", transcodings: [], labelFormats: ["PDF"] },
        ],
        boxes: [{ code: "S", length: 30, width: 20, height: 10 }],
        platforms: ["shopify", "magento", "api"],
        languages: ["it", "en"],
        statusDetails: [
          {
            id: 4,
            status: "EXCEPTION",
            heldInDepot: true,
            description: { it: "In giacenza", en: "Held in depot" },
          },
        ],
        scopes: ["shipments:read", "shipments:write"],
        limits: {
          bucketSize: 300,
          refillRate: 150,
          tokenLifeSeconds: TOKEN_LIFE_SECONDS,
          shipmentsPerCreate: SHIPMENTS_PER_CREATE,
          shipmentsPerImport: SHIPMENTS_PER_IMPORT,
          parcelsPerShipment: PARCELS_PER_SHIPMENT,
          orderItemsPerShipment: ORDER_ITEMS_PER_SHIPMENT,
          parcelsPerLabel: PARCELS_PER_LABEL,
          searchPageSize: LIMIT_MAX,
        },
      }),
      headers: TAG_HEADERS,
    },
    ...NOT_MODIFIED,
  },
});

export function channelRoute(deps: ApiDeps) {
  return merchantRoutes(deps).get(
    "/v2/channel",
    ({ request, caller }): Promise<Response> => tagged(request, viewOf(caller, deps.config)),
    route(operation),
  );
}

function viewOf(caller: Caller, config: Config): ChannelView {
  const { channel, company, configuration, apiKey } = caller;
  const { code, name, bucketSize, refillRate } = channel;
  return {
    code,
    name,
    couriers: couriersOf(caller, config),
    boxes: [...company.boxes.values()].map(boxView),
    platforms: [...configuration.platforms],
    languages: [...LANGUAGES],
    statusDetails: [...configuration.statusDetails.values()].map(
      ({ id, status = null, heldInDepot = false, description = {} }) => ({
        id,
        status,
        heldInDepot,
        description,
      }),
    ),
    scopes: [...apiKey.scopes],
    limits: {
      bucketSize,
      refillRate,
      tokenLifeSeconds: TOKEN_LIFE_SECONDS,
      shipmentsPerCreate: SHIPMENTS_PER_CREATE,
      shipmentsPerImport: SHIPMENTS_PER_IMPORT,
      parcelsPerShipment: PARCELS_PER_SHIPMENT,
      orderItemsPerShipment: ORDER_ITEMS_PER_SHIPMENT,
      parcelsPerLabel: PARCELS_PER_LABEL,
      searchPageSize: LIMIT_MAX,
    },
  };
}

/** Those that shipments are created with, and of a test key the test couriers. Labels are asked for by the channel's own codes. */
function couriersOf(caller: Caller, config: Config): ChannelView["couriers"] {
  const { channel, configuration } = caller;
  const { variants } = creationContext(configuration, channel);
  const all = new Map([...channel.couriers, ...variants]);
  const usable = [...all.values()].filter(
    ({ code, shippingEnabled }) =>
      shippingEnabled && (variants.has(code) || findCarrier(config, caller, code) !== null),
  );
  return usable.map(({ code, transcodings }) => {
    const labels = findCarrier(config, caller, code);
    return {
      code,
      name: configuration.couriers.get(code)?.name ?? code,
      transcodings: [...transcodings],
      labelFormats: labels ? [labels.courier.labelFormat] : [],
    };
  });
}

function boxView({ code, length, width, height }: Static<typeof ChannelBox>) {
  return { code, length, width, height };
}
