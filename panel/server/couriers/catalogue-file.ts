/** A courier's catalogue as a CSV file: download, preview of an upload, and the upload itself. */

import { type Static, Type } from "@sinclair/typebox";
import type { CourierEntity } from "#core/configuration/rules/entities.ts";
import type { Configuration } from "#core/configuration/store/configuration.ts";
import { Problem } from "#core/platform/errors/problem.ts";
import { route } from "#core/platform/http/access.ts";
import { hashToken } from "#core/platform/secrets/secrets.ts";
import type { Runtime } from "#core/runtime/runtime.ts";
import { SetupCatalogueEntry } from "#core/setup/rules/setup.ts";
import {
  type CatalogueChanges,
  compareCatalogues,
} from "#core/statuses/rules/compare-catalogues.ts";
import type { CatalogueEntry } from "#core/statuses/rules/map-status.ts";
import { scopeOf } from "#core/statuses/store/remappings.ts";
import { needsScan } from "#core/statuses/store/remaps.ts";
import { CSV_FAULTS_LISTED, csvBody, faultsOfFile } from "#panel/server/http/csv-file.ts";
import { noteChange, noteNoChange, panelRoutes } from "#panel/server/panel-routes.ts";
import {
  CATALOGUE_FAULTS,
  CATALOGUE_FILE_LINES,
  type CatalogueFile,
  catalogueCsv,
  catalogueFile,
  type ReadCatalogue,
  readCatalogue,
} from "./catalogue-csv.ts";
import { courierOf, readCourier } from "./courier-of.ts";
import { entriesOf, importCatalogue } from "./map-code.ts";
import { type Preview, previewRemap, RemapPreview } from "./preview-remap.ts";
import { RemapView, shortViewOf } from "./remaps.ts";

const entry = Type.Unsafe<CatalogueEntry>(SetupCatalogueEntry);

const Changes = Type.Object({
  added: Type.Array(entry),
  changed: Type.Array(Type.Object({ before: entry, after: entry })),
  removed: Type.Array(entry, { description: "with missing=remove: codes that the file has not" }),
  unchanged: Type.Integer({ description: "codes that the file has as they are" }),
  kept: Type.Integer({ description: "codes that the file has not and that stay" }),
});

export const ImportAnswer = Type.Object({
  errors: faultsOfFile(
    CATALOGUE_FAULTS,
    `the first ${CSV_FAULTS_LISTED}; while there are any, nothing can be applied`,
  ),
  changes: Type.Union([Changes, Type.Null()], { description: "null while there are errors" }),
  base: Type.String({
    description: "names the catalogue that the file was compared with: `base` of the upload",
  }),
  preview: Type.Union([RemapPreview, Type.Null()], {
    description: "of a preview without errors: what would become of shipments",
  }),
  remap: Type.Union([RemapView, Type.Null()], {
    description: "of an upload; null when no event is mapped otherwise than before",
  }),
});

const ImportQuery = Type.Object({
  preview: Type.Optional(Type.String({ description: "true = tell what would change only" })),
  missing: Type.Optional(
    Type.String({
      description: "what becomes of codes that the file has not: keep (default), remove",
    }),
  ),
  base: Type.Optional(
    Type.String({ description: "of the preview: 409 if the catalogue has changed since" }),
  ),
});

const FileQuery = Type.Object({
  separator: Type.Optional(
    Type.String({ description: "comma (default), or semicolon as Excel in Italian expects" }),
  ),
});

const EXAMPLE = "code,status,statusDetail,description\nDLV,DELIVERED,0,Consegnata\n";
const CSV_BODY = { mediaType: "text/csv", schema: Type.String() };

export function catalogueFileRoutes(runtime: Runtime) {
  const { live } = runtime;
  return panelRoutes(runtime, "catalogue-file")
    .get(
      "/panel/api/couriers/:code/catalogue/file",
      async ({ params, query }) => {
        const separator = oneOf("separator", query.separator ?? "comma", ["comma", "semicolon"]);
        const { code, catalogue } = courierOf(await live.refresh(), params.code);
        const text = catalogueCsv([...catalogue.values()], separator === "comma" ? "," : ";");
        // By the byte order mark Excel knows that it is UTF-8.
        return new Response(`\uFEFF${text}`, {
          headers: {
            "content-type": "text/csv; charset=utf-8",
            "content-disposition": `attachment; filename="catalogue-${fileNameOf(code)}.csv"`,
            "cache-control": "no-store",
            "x-content-type-options": "nosniff",
          },
        });
      },
      route({
        access: { can: "couriers:read", of: "courier" },
        query: FileQuery,
        summary: "The catalogue in force as CSV, in the form that an upload has",
        answers: { 200: { description: "a file in UTF-8", content: CSV_BODY } },
      }),
    )
    .post(
      "/panel/api/couriers/:code/catalogue/import",
      ({ params, query, body, request }) => upload(runtime, params.code, query, body, request),
      route({
        access: { can: "catalogue:write", of: "installation" },
        query: ImportQuery,
        response: ImportAnswer,
        summary: "Upload a catalogue as CSV in one step; ?preview=true changes nothing",
        description: `Columns: code, status and statusDetail are needed, description, terminal, reasonCode, isReturn and deliveredTo are not; columns without head and text are passed over. A line with one of the last three is a narrower mapping of the code above it. At most ${CATALOGUE_FILE_LINES.toLocaleString("en")} lines with the head.`,
        errors: [
          "COURIER_NOT_FOUND",
          "CATALOGUE_FULL",
          "CATALOGUE_CHANGED",
          "MALFORMED_BODY",
          "CONFIGURATION_BUSY",
        ],
        body: csvBody(EXAMPLE),
      }),
    );
}

async function upload(
  runtime: Runtime,
  code: string,
  query: Static<typeof ImportQuery>,
  text: string,
  request: Request,
): Promise<Static<typeof ImportAnswer>> {
  const { redis, live } = runtime;
  const isPreview = oneOf("preview", query.preview ?? "false", ["true", "false"]) === "true";
  const isComplete = oneOf("missing", query.missing ?? "keep", ["keep", "remove"]) === "remove";
  const configuration = await live.refresh();
  courierOf(configuration, code);
  const file = await catalogueFile(text);
  const read = (courier: CourierEntity) => readFor(configuration, courier, file);
  if (isPreview) {
    noteNoChange(request);
    const courier = await readCourier(redis, code);
    return preview(runtime, configuration, courier, await read(courier), isComplete);
  }
  let base = "";
  const { changes, remap } = await importCatalogue(
    redis,
    code,
    async (courier) => {
      base = baseOf(courier);
      if (query.base !== undefined && query.base !== base) throw changedSince();
      const entries = entriesRead(await read(courier));
      return compareCatalogues(courier.catalogue, entries, isComplete);
    },
    live.now(),
  );
  const counts = { added: changes.added.length, changed: changes.changed.length };
  const after = { ...counts, removed: changes.removed.length, remap: remap?.id ?? null };
  if (counts.added + counts.changed + after.removed === 0) noteNoChange(request);
  else noteChange(request, null, after);
  await live.refresh();
  return {
    errors: [],
    changes: copied(changes),
    base,
    preview: null,
    remap: remap && shortViewOf(remap),
  };
}

async function preview(
  { redis }: Runtime,
  configuration: Configuration,
  courier: CourierEntity,
  { entries, errors }: ReadCatalogue,
  isComplete: boolean,
): Promise<Static<typeof ImportAnswer>> {
  const base = baseOf(courier);
  if (entries === null) {
    return { errors: [...errors], changes: null, base, preview: null, remap: null };
  }
  const before = courier.catalogue;
  const changes = compareCatalogues(before, entries, isComplete);
  const remapEntries = entriesOf(changes);
  const after = new Map(before.map((one) => [one.code, one]));
  for (const one of remapEntries) {
    if (one.after) after.set(one.code, one.after);
    else after.delete(one.code);
  }
  const scope = scopeOf(courier.code, remapEntries, needsScan(remapEntries));
  const seen: Preview | null =
    scope.codes.size > 0
      ? await previewRemap(redis, configuration, scope, [...after.values()])
      : null;
  return { errors: [], changes: copied(changes), base, preview: seen, remap: null };
}

function readFor(
  { statusDetails }: Configuration,
  courier: CourierEntity,
  file: CatalogueFile,
): Promise<ReadCatalogue> {
  const before = new Map(courier.catalogue.map((one) => [one.code, one]));
  return readCatalogue(file, before, new Set(statusDetails.keys()));
}

/** @throws {Problem} 422 */
function entriesRead({ entries, errors }: ReadCatalogue): readonly CatalogueEntry[] {
  if (entries !== null) return entries;
  const violations = errors.map(({ line, column, code, message }) => ({
    path: column === null ? `lines[${line}]` : `lines[${line}].${column}`,
    code,
    message,
  }));
  throw new Problem(422, "INVALID_BODY", "The file has errors; nothing was changed.", {
    members: { violations },
  });
}

function copied({ added, changed, removed, ...rest }: CatalogueChanges): Static<typeof Changes> {
  return { added: [...added], changed: [...changed], removed: [...removed], ...rest };
}

function baseOf({ catalogue }: CourierEntity): string {
  return hashToken(JSON.stringify(catalogue)).slice(0, 16);
}

function changedSince(): Problem {
  return new Problem(409, "CATALOGUE_CHANGED", "The catalogue has changed since the preview.");
}

function fileNameOf(code: string): string {
  return code.replaceAll(/[^\w-]/g, "_");
}

/** @throws {Problem} 422 */
function oneOf<T extends string>(name: string, text: string, allowed: readonly T[]): T {
  const found = allowed.find((one) => one === text);
  if (found !== undefined) return found;
  const message = `One of ${allowed.join(", ")}.`;
  const violations = [{ path: name, code: "NOT_ALLOWED", message }];
  throw new Problem(422, "INVALID_QUERY", `${name}: ${message}`, { members: { violations } });
}
