/** Unmapped codes, and mapping with preview. */

import { type Static, Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { Problem } from "#core/platform/errors/problem.ts";
import { route } from "#core/platform/http/access.ts";
import { unmappedName } from "#core/platform/redis/keys.ts";
import { nullableText } from "#core/platform/schema/nullable.ts";
import type { Runtime } from "#core/runtime/runtime.ts";
import {
  RULES_PER_CODE,
  SetupCatalogueEntry,
  SetupMappingRule,
  STATUS_CODE_LENGTH,
} from "#core/setup/rules/setup.ts";
import type { CatalogueEntry } from "#core/statuses/rules/map-status.ts";
import { STATUSES, type Status, StatusSchema } from "#core/statuses/rules/status.ts";
import type { Suggestion } from "#core/statuses/rules/suggest-mapping.ts";
import { scopeOf } from "#core/statuses/store/remappings.ts";
import { readUnmappedCodes } from "#core/statuses/store/unmapped.ts";
import { jsonBody } from "#panel/server/http/checked-body.ts";
import {
  cursorBehind,
  LONG_PAGE,
  offsetPageOf,
  offsetQuery,
  queryOf,
  WHOLE_LIST,
  wholeList,
} from "#panel/server/http/list-page.ts";
import { version } from "#panel/server/http/version.ts";
import { isTheirs } from "#panel/server/owners.ts";
import { noteChange, noteNoChange, panelRoutes } from "#panel/server/panel-routes.ts";
import { courierOf } from "./courier-of.ts";
import { mapCode, type WantedMapping, wantedEntry } from "./map-code.ts";
import { previewRemap, RemapPreview } from "./preview-remap.ts";
import { RemapView, viewOf } from "./remaps.ts";
import { createSuggestions } from "./suggestions.ts";

const instant = Type.String({ description: "ISO 8601" });
const entry = Type.Unsafe<CatalogueEntry>(SetupCatalogueEntry);

export const CodeMapping = Type.Object(
  {
    status: Type.Union([...STATUSES.map((name) => Type.Literal(name)), Type.Null()], {
      description: "null takes the code's own mapping away",
    }),
    statusDetail: Type.Optional(Type.Integer({ minimum: 0 })),
    terminal: Type.Optional(Type.Boolean({ description: "absent = as it was" })),
    description: Type.Optional(Type.String({ maxLength: 500, description: "absent = as it was" })),
    rules: Type.Optional(
      Type.Array(SetupMappingRule, { maxItems: RULES_PER_CODE, description: "absent = none" }),
    ),
  },
  { additionalProperties: false },
);

export const SuggestionView = Type.Object({
  status: Type.Unsafe<Status>(StatusSchema),
  statusDetail: Type.Integer({ description: "0 = none" }),
  confidence: Type.Unsafe<Suggestion["confidence"]>(
    Type.Union((["high", "low"] as const).map((one) => Type.Literal(one))),
  ),
  because: Type.Object({ en: Type.String(), it: Type.String() }, { description: "for people" }),
});

const UnmappedCodes = Type.Object({
  total: Type.Integer(),
  items: Type.Array(
    Type.Object({
      courier: Type.String(),
      code: Type.String(),
      description: Type.String({ description: "as the courier sent it last" }),
      events: Type.Integer(),
      shipments: Type.Integer(),
      parcels: Type.Integer({
        description: "as many as shipments: an event is about one parcel of each",
      }),
      firstSeen: instant,
      lastSeen: instant,
      suggestion: Type.Union([SuggestionView, Type.Null()], {
        description:
          "null where too little speaks for one, behind the first 50 codes, and for members of a courier: it tells what others' codes mean",
      }),
    }),
  ),
  nextCursor: nullableText,
});

export const MappingAnswer = Type.Object({
  entry,
  remap: Type.Union([RemapView, Type.Null()], {
    description: "null when no event is mapped otherwise than before",
  }),
});

export const PreviewAnswer = Type.Object({ entry, preview: RemapPreview });

export function mappingRoutes(runtime: Runtime) {
  return new Elysia({ name: "mapping-routes" })
    .use(unmappedRoute(runtime))
    .use(catalogueRoutes(runtime));
}

function unmappedRoute(runtime: Runtime) {
  const { redis, live } = runtime;
  const suggestionsFor = createSuggestions(redis);
  return panelRoutes(runtime, "unmapped-codes").get(
    "/panel/api/unmapped-codes",
    async ({ query, caller }) => {
      const page = offsetPageOf(query, LONG_PAGE);
      const codes = (await readUnmappedCodes(redis)).filter(({ courier }) =>
        isTheirs(caller, { companyCode: null, courierCode: courier }),
      );
      const isOperator = caller.kind === "operator";
      const suggestions = isOperator ? await suggestionsFor(await live.refresh(), codes) : null;
      const items = codes
        .slice(page.offset, page.offset + page.limit)
        .map(({ firstSeenMs, lastSeenMs, ...rest }) => ({
          ...rest,
          parcels: rest.shipments,
          firstSeen: isoOf(firstSeenMs),
          lastSeen: isoOf(lastSeenMs),
          suggestion: suggestions?.get(unmappedName(rest.courier, rest.code)) ?? null,
        }));
      return { total: codes.length, items, nextCursor: cursorBehind(page, codes.length) };
    },
    route({
      access: { can: "couriers:read", of: "caller" },
      query: offsetQuery(LONG_PAGE),
      response: UnmappedCodes,
      summary: "Codes that no catalogue maps, the most parcels first, with what they probably mean",
    }),
  );
}

function catalogueRoutes(runtime: Runtime) {
  const { live } = runtime;
  return panelRoutes(runtime, "mapping")
    .get(
      "/panel/api/couriers/:code/catalogue",
      async ({ params, query }) => {
        const courier = courierOf(await live.refresh(), params.code);
        const { catalogue, version } = courier;
        return { ...wholeList([...catalogue.values()], query), version };
      },
      route({
        access: { can: "couriers:read", of: "courier" },
        query: queryOf(WHOLE_LIST),
        response: Type.Object({ items: Type.Array(entry), nextCursor: nullableText, version }),
        summary: "The catalogue in force",
      }),
    )
    .put(
      "/panel/api/couriers/:code/catalogue/:statusCode",
      ({ params, body, request, query }) => putMapping(runtime, params, body, request, query),
      route({
        access: { can: "catalogue:write", of: "installation" },
        response: Type.Union([MappingAnswer, PreviewAnswer]),
        summary: "Map a code; ?preview=true tells what would change and changes nothing",
        errors: [
          "COURIER_NOT_FOUND",
          "INVALID_STATUS_CODE",
          "CATALOGUE_FULL",
          "CONFIGURATION_BUSY",
        ],
        body: jsonBody(CodeMapping, {
          status: "DELIVERED",
          statusDetail: 0,
          terminal: true,
        }),
      }),
    );
}

async function putMapping(
  { redis, live }: Runtime,
  params: { readonly code: string; readonly statusCode: string },
  wanted: Static<typeof CodeMapping>,
  request: Request,
  query: Query,
): Promise<Static<typeof MappingAnswer> | Static<typeof PreviewAnswer>> {
  const configuration = await live.refresh();
  const courier = courierOf(configuration, params.code);
  const code = statusCodeOf(params.statusCode);
  const entry = wantedEntry(configuration, courier, code, wanted as WantedMapping);
  const before = courier.catalogue.get(code) ?? null;
  if (query["preview"] === "true") {
    noteNoChange(request);
    const scope = scopeOf(
      courier.code,
      [{ code, before, after: entry }],
      before?.status !== undefined || !!before?.rules,
    );
    const catalogue = [...new Map(courier.catalogue).set(code, entry).values()];
    return { entry, preview: await previewRemap(redis, configuration, scope, catalogue) };
  }
  const remap = await mapCode(redis, courier.code, entry, live.now());
  noteChange(request, before, entry);
  await live.refresh();
  return { entry, remap: remap && viewOf(remap) };
}

type Query = Readonly<Record<string, string | undefined>>;

/** @throws {Problem} 422 */
function statusCodeOf(text: string): string {
  if (text.length <= STATUS_CODE_LENGTH) return text;
  const detail = `A status code has at most ${STATUS_CODE_LENGTH} characters.`;
  throw new Problem(422, "INVALID_STATUS_CODE", detail);
}

function isoOf(ms: number): string {
  return new Date(ms).toISOString();
}
