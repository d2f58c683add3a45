/** `POST /panel/api/channels/{code}/orders`: thousands of orders at once, one JSON object a line (NDJSON). */

import { type Static, Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import type { Configuration } from "#core/configuration/store/configuration.ts";
import { OrderInput, withoutNullMembers } from "#core/merchants/rules/order.ts";
import { type PutOutcome, putOrders } from "#core/merchants/store/orders.ts";
import { Problem } from "#core/platform/errors/problem.ts";
import { route } from "#core/platform/http/access.ts";
import { parseInTurns } from "#core/platform/http/body/parse-in-turns.ts";
import { readBody } from "#core/platform/http/body/read-body.ts";
import { JsonFault, type ParsedJson } from "#core/platform/http/body/strict-json.ts";
import { jsonList, jsonObject, jsonResponse } from "#core/platform/process/json-text.ts";
import { turns } from "#core/platform/process/next-turn.ts";
import { compileSchema } from "#core/platform/schema/compile-schema.ts";
import { type Fault, type FaultCode, listFaults } from "#core/platform/schema/fault.ts";
import { illFormedText } from "#core/platform/schema/ill-formed-text.ts";
import { limit } from "#core/platform/schema/limit.ts";
import type { Runtime } from "#core/runtime/runtime.ts";
import { ORDERS_BODY_BYTES } from "#panel/server/http/read-json.ts";
import { panelRoutes } from "#panel/server/panel-routes.ts";
import { channelOf } from "#panel/server/webhooks/webhook-access.ts";

/** 10,000 orders of about 3 KB. */
const LINES_LIMIT = limit(10_000, "lines of an orders import", "413");
/** An order with all its parcels and items: 1,500 of about 300 bytes. */
const LINE_LIMIT_BYTES = limit(512 * 1024, "a line of an orders import", "refused on its own");
const NEWLINE = 0x0a;

const checker = compileSchema(OrderInput);

const EXAMPLE: OrderInput = {
  source: "shopify",
  reference: "1003",
  createdAt: "2026-11-20T10:00:00+01:00",
  consignee: { name: "Maria Bianchi", city: "Milano", postcode: "20121", country: "IT" },
  items: [{ sku: "A-1", name: "Shirt", quantity: 2 }],
};

const LineOutcome = Type.Object({
  line: Type.Integer({ description: "from 1" }),
  outcome: Type.Union([
    Type.Literal("created"),
    Type.Literal("updated"),
    Type.Literal("unchanged"),
    Type.Literal("deleted"),
    Type.Literal("rejected"),
  ]),
  id: Type.Union([Type.Integer(), Type.Null()]),
  violations: Type.Array(
    Type.Object({ path: Type.String(), code: Type.String(), message: Type.String() }),
  ),
});
type LineOutcome = Static<typeof LineOutcome>;

export const OrdersImport = Type.Object({
  summary: Type.Object({
    lines: Type.Integer(),
    created: Type.Integer(),
    updated: Type.Integer(),
    unchanged: Type.Integer(),
    deleted: Type.Integer(),
    rejected: Type.Integer(),
  }),
  items: Type.Array(LineOutcome, { description: "one a line that is not blank, in their order" }),
});

export function panelOrdersRoute(runtime: Runtime) {
  const { redis, live } = runtime;
  return panelRoutes(runtime, "panel-orders").post(
    "/panel/api/channels/:channelCode/orders",
    async ({ params, body }) => {
      const configuration = await live.refresh();
      const channel = channelOf(configuration, params.channelCode);
      const read = await readLines(body, configuration);
      const ready = read.flatMap(({ order }) => (order ? [order] : []));
      const owner = { companyId: channel.companyId, channelId: channel.id };
      const put = await putOrders(redis, owner, ready, live.now());
      return answer(read, put);
    },
    route({
      access: { can: "orders:write", of: "channel" },
      summary: "Import orders, idempotent by (source, reference)",
      description: `One order a line. At most ${LINES_LIMIT.toLocaleString("en")} lines of ${LINE_LIMIT_BYTES.toLocaleString("en")} bytes each.`,
      body: {
        // An export of no orders is an empty file.
        optional: true,
        mediaType: "application/x-ndjson",
        limitBytes: ORDERS_BODY_BYTES,
        read: (request: Request) => readBody(request, ORDERS_BODY_BYTES),
        schema: OrderInput,
        example: EXAMPLE,
      },
      answers: {
        200: {
          description: "the result of each line",
          content: { schema: OrdersImport },
        },
      },
    }),
  );
}

type NumberedLine = { readonly line: number } & ReadLine;

/**
 * Yields the lines that are not blank. The event loop turns between them.
 * @throws {Problem} 413
 */
async function readLines(bytes: Uint8Array, configuration: Configuration): Promise<NumberedLine[]> {
  const turn = turns();
  const read: NumberedLine[] = [];
  let line = 0;
  for (let from = 0; from < bytes.length; ) {
    const newline = bytes.indexOf(NEWLINE, from);
    const end = newline === -1 ? bytes.length : newline;
    line += 1;
    if (end - from > LINE_LIMIT_BYTES) {
      read.push({ line, ...refused("TOO_LONG", `At most ${LINE_LIMIT_BYTES} bytes.`) });
    } else if (!isBlank(bytes, from, end)) {
      read.push({ line, ...(await readLine(bytes.subarray(from, end), configuration)) });
    }
    if (read.length > LINES_LIMIT) throw tooManyLines();
    if (turn.due()) await turn.take();
    from = end + 1;
  }
  return read;
}

function tooManyLines(): Problem {
  return new Problem(413, "BODY_TOO_LARGE", `At most ${LINES_LIMIT} lines.`);
}

function isBlank(bytes: Uint8Array, from: number, end: number): boolean {
  for (let at = from; at < end; at += 1) if ((bytes[at] ?? 0) > 0x20) return false;
  return true;
}

type ReadLine =
  | { readonly order: OrderInput; readonly faults?: never }
  | { readonly order?: never; readonly faults: readonly Fault[] };

/** A line that is not strict JSON is refused on its own. */
async function readLine(bytes: Uint8Array, configuration: Configuration): Promise<ReadLine> {
  let parsed: ParsedJson;
  try {
    parsed = await parseInTurns(bytes);
  } catch (error) {
    if (!(error instanceof JsonFault)) throw error;
    return refused("BAD_FORMAT", error.message);
  }
  const illFormed = parsed.hasSurrogateEscapes ? illFormedText(parsed.value) : [];
  if (illFormed.length > 0) return { faults: illFormed };
  const value = withoutNullMembers(parsed.value);
  if (!checker.check(value)) return { faults: listFaults(checker.errors(value)) };
  const order = Value.Clean(OrderInput, value) as OrderInput;
  const faults = registryFaults(order, configuration);
  return faults.length > 0 ? { faults } : { order };
}

function refused(code: FaultCode, message: string): ReadLine {
  return { faults: [{ path: "", code, message }] };
}

/** Origins come from the platform registry, couriers from those that exist. */
function registryFaults({ source, courier }: OrderInput, configuration: Configuration): Fault[] {
  const { platforms, couriers } = configuration;
  const unknown = (path: string, message: string): Fault => ({
    path,
    code: "NOT_ALLOWED",
    message,
  });
  return [
    ...(platforms.has(source) ? [] : [unknown("source", "The source is no registered platform.")]),
    ...(courier === undefined || couriers.has(courier)
      ? []
      : [unknown("courier", "There is no such courier.")]),
  ];
}

/** Ten thousand lines with their violations make a long answer, which is written in turns. */
async function answer(
  read: readonly NumberedLine[],
  put: readonly PutOutcome[],
): Promise<Response> {
  let at = 0;
  const summary = { created: 0, updated: 0, unchanged: 0, deleted: 0, rejected: 0 };
  const items = await jsonList(read, ({ line, order, faults }): LineOutcome => {
    const done = order ? put[at++] : undefined;
    const outcome = done?.outcome ?? "rejected";
    summary[outcome] += 1;
    return { line, outcome, id: done?.id ?? null, violations: [...(faults ?? [])] };
  });
  const counts = JSON.stringify({ lines: read.length, ...summary });
  return jsonResponse(jsonObject({ summary: counts, items }));
}
