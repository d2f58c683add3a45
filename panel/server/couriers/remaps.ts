/** Remaps: versions of a courier's mapping, and the work that folds shipments again. */

import { type Static, Type } from "@sinclair/typebox";
import { route } from "#core/platform/http/access.ts";
import { limit } from "#core/platform/schema/limit.ts";
import { nullableText } from "#core/platform/schema/nullable.ts";
import type { Runtime } from "#core/runtime/runtime.ts";
import { SetupCatalogueEntry } from "#core/setup/rules/setup.ts";
import type { CatalogueEntry } from "#core/statuses/rules/map-status.ts";
import { scopeOf } from "#core/statuses/store/remappings.ts";
import { countRemaps, listRemaps, type Remap, readRemap } from "#core/statuses/store/remaps.ts";
import {
  cursorBehind,
  LONG_PAGE,
  offsetPageOf,
  offsetQuery,
} from "#panel/server/http/list-page.ts";
import { isPreview, PreviewQuery } from "#panel/server/http/preview-query.ts";
import { notFound } from "#panel/server/not-found.ts";
import { noteNoChange, panelRoutes } from "#panel/server/panel-routes.ts";
import { courierOf } from "./courier-of.ts";
import { entriesBefore, revertRemap } from "./map-code.ts";
import { previewRemap, RemapPreview } from "./preview-remap.ts";

/** Of a remap in a list: an upload may change thousands. */
const ENTRIES_SHOWN = limit(
  20,
  "codes of a remap that a list of remaps names",
  "how many there are; the remap itself has all",
);

const instant = Type.String({ description: "ISO 8601" });
const entryOrNone = Type.Union([Type.Unsafe<CatalogueEntry>(SetupCatalogueEntry), Type.Null()]);

export const RemapView = Type.Object({
  id: Type.String(),
  courier: Type.String(),
  by: Type.String({ description: "operator or setup file" }),
  createdAt: instant,
  reverts: Type.Union([Type.String(), Type.Null()]),
  state: Type.String({ description: "announced, running, done" }),
  finishedAt: Type.Union([instant, Type.Null()]),
  progress: Type.Object({
    examined: Type.Integer({ description: "shipments looked at" }),
    shipments: Type.Integer({ description: "shipments mapped again" }),
    events: Type.Integer({ description: "events mapped again" }),
    statesChanged: Type.Integer({ description: "shipments whose current status changed by it" }),
  }),
  codes: Type.Integer({ description: "codes that it changes" }),
  entries: Type.Array(
    Type.Object({ code: Type.String(), before: entryOrNone, after: entryOrNone }),
    { description: `the codes; in lists and answers to uploads the first ${ENTRIES_SHOWN}` },
  ),
});
const RevertPreview = Type.Object({ preview: RemapPreview });
export type RemapView = Static<typeof RemapView>;

export function remapRoutes(runtime: Runtime) {
  const { redis, live } = runtime;
  return panelRoutes(runtime, "remaps")
    .get(
      "/panel/api/couriers/:code/remaps",
      async ({ params, query }) => {
        const page = offsetPageOf(query, LONG_PAGE);
        const { code } = courierOf(await live.refresh(), params.code);
        const [remaps, total] = await Promise.all([
          listRemaps(redis, code, page.offset, page.limit),
          countRemaps(redis, code),
        ]);
        return { items: remaps.map(shortViewOf), nextCursor: cursorBehind(page, total) };
      },
      route({
        access: { can: "couriers:read", of: "courier" },
        query: offsetQuery(LONG_PAGE),
        response: Type.Object({ items: Type.Array(RemapView), nextCursor: nullableText }),
        summary: "Versions of a courier's mapping, the newest first",
      }),
    )
    .get(
      "/panel/api/remaps/:id",
      async ({ params }) => {
        const remap = await readRemap(redis, params.id);
        if (!remap) throw notFound("remap");
        return viewOf(remap);
      },
      route({
        access: { can: "couriers:read", of: "remap" },
        response: RemapView,
        summary: "A change of a mapping and how far its work is",
      }),
    )
    .post(
      "/panel/api/remaps/:id/revert",
      async ({ params, query, request }) => {
        if (isPreview(query)) {
          noteNoChange(request);
          return previewRevert(runtime, params.id);
        }
        const nowMs = live.now();
        const remap = await revertRemap(redis, params.id, nowMs);
        // It was reverted before.
        if (remap.createdAtMs !== nowMs) noteNoChange(request);
        return viewOf(remap);
      },
      route({
        access: { can: "catalogue:write", of: "installation" },
        query: PreviewQuery,
        response: Type.Union([RemapView, RevertPreview]),
        summary:
          "Map the codes of a remap as before it; `preview=true` answers what would change and changes nothing",
        errors: ["REMAP_NOT_FOUND", "REMAP_SUPERSEDED", "CONFIGURATION_BUSY"],
      }),
    );
}

/** @throws {Problem} 404, 409 */
async function previewRevert({ redis, live }: Runtime, id: string) {
  const remap = await readRemap(redis, id);
  if (!remap) throw notFound("remap");
  const configuration = await live.refresh();
  const { catalogue } = courierOf(configuration, remap.courier);
  const entries = await entriesBefore(redis, remap);
  const isScan = entries.some(({ before }) => before?.status !== undefined || before?.rules);
  const after = new Map(catalogue);
  for (const { code, after: entry } of entries) {
    if (entry) after.set(code, entry);
    else after.delete(code);
  }
  const scope = scopeOf(remap.courier, entries, isScan);
  return { preview: await previewRemap(redis, configuration, scope, [...after.values()]) };
}

export function viewOf(remap: Remap): RemapView {
  const { id, courier, by, createdAtMs, reverts, state, finishedAtMs, progress, entries } = remap;
  const { examined, shipments, events, statesChanged } = progress;
  return {
    id,
    courier,
    by,
    reverts,
    state,
    createdAt: isoOf(createdAtMs),
    finishedAt: finishedAtMs === null ? null : isoOf(finishedAtMs),
    progress: { examined, shipments, events, statesChanged },
    codes: entries.length,
    entries: [...entries],
  };
}

export function shortViewOf(remap: Remap): RemapView {
  const view = viewOf(remap);
  return { ...view, entries: view.entries.slice(0, ENTRIES_SHOWN) };
}

function isoOf(ms: number): string {
  return new Date(ms).toISOString();
}
