/** `POST /panel/api/channels/{code}/orders`: thousands of orders at once, one JSON object a line (NDJSON). */
import { type Static, Type } from "@sinclair/typebox";
import { TypeCompiler } from "@sinclair/typebox/compiler";
import { Value } from "@sinclair/typebox/value";
import { type Fault, listFaults } from "#core/domain/fault.ts";
import { OrderInput, withoutNullMembers } from "#core/domain/order.ts";
import { Problem } from "#core/problem.ts";
import type { Configuration } from "#core/redis/configuration.ts";
import { type PutOutcome, putOrders } from "#core/redis/orders.ts";
import type { Runtime } from "#core/runtime.ts";
import { operatorRoutes } from "#panel/operators.ts";

/** 10,000 orders of some 3 KB. */
const BODY_LIMIT_BYTES = 32 * 1024 * 1024;
const LINES_LIMIT = 10_000;

const checker = TypeCompiler.Compile(OrderInput);
const utf8 = new TextDecoder("utf-8", { fatal: true });

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
type OrdersImport = Static<typeof OrdersImport>;

export function panelOrdersRoute(runtime: Runtime) {
  const { redis, live } = runtime;
  return operatorRoutes(runtime, "panel-orders").post(
    "/panel/api/channels/:channelCode/orders",
    async ({ params, request }): Promise<OrdersImport> => {
      const configuration = await live.refresh();
      const channel = configuration.channelByCode.get(params.channelCode);
      if (!channel) throw new Problem(404, "CHANNEL_NOT_FOUND", "There is no such channel.");
      const lines = linesOf(await readText(request));
      const read = lines.map(({ line, text }) => ({ line, ...readLine(text, configuration) }));
      const ready = read.flatMap(({ order }) => (order ? [order] : []));
      const owner = { companyId: channel.companyId, channelId: channel.id };
      const put = await putOrders(redis, owner, ready, live.now());
      return answer(read, put);
    },
    {
      parse: "none",
      response: OrdersImport,
      detail: { summary: "Import orders, idempotent by (source, reference)" },
    },
  );
}

/** @throws {Problem} 400, 413 */
async function readText(request: Request): Promise<string> {
  if (Number(request.headers.get("content-length") ?? 0) > BODY_LIMIT_BYTES) throw tooLarge();
  const bytes = await request.arrayBuffer();
  if (bytes.byteLength > BODY_LIMIT_BYTES) throw tooLarge();
  try {
    return utf8.decode(bytes);
  } catch {
    throw new Problem(400, "MALFORMED_BODY", "The body is not valid UTF-8.");
  }
}

function tooLarge(): Problem {
  const detail = `At most ${BODY_LIMIT_BYTES} bytes and ${LINES_LIMIT} lines.`;
  return new Problem(413, "BODY_TOO_LARGE", detail);
}

/** @throws {Problem} 413 */
function linesOf(text: string): { line: number; text: string }[] {
  const lines = text
    .split("\n")
    .map((one, at) => ({ line: at + 1, text: one.trim() }))
    .filter((one) => one.text !== "");
  if (lines.length > LINES_LIMIT) throw tooLarge();
  return lines;
}

type ReadLine =
  | { readonly order: OrderInput; readonly faults?: never }
  | { readonly order?: never; readonly faults: readonly Fault[] };

function readLine(text: string, configuration: Configuration): ReadLine {
  let value: unknown;
  try {
    value = withoutNullMembers(JSON.parse(text));
  } catch {
    return { faults: [{ path: "", code: "BAD_FORMAT", message: "The line is not valid JSON." }] };
  }
  if (!checker.Check(value)) return { faults: listFaults(checker.Errors(value)) };
  const order = Value.Clean(OrderInput, value) as OrderInput;
  const faults = registryFaults(order, configuration);
  return faults.length > 0 ? { faults } : { order };
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

function answer(
  read: ReadonlyArray<{ readonly line: number } & ReadLine>,
  put: readonly PutOutcome[],
): OrdersImport {
  let at = 0;
  const items = read.map(({ line, order, faults }): LineOutcome => {
    const done = order ? put[at++] : undefined;
    return done
      ? { line, outcome: done.outcome, id: done.id, violations: [] }
      : { line, outcome: "rejected", id: null, violations: [...(faults ?? [])] };
  });
  const count = (name: LineOutcome["outcome"]) =>
    items.filter(({ outcome }) => outcome === name).length;
  return {
    summary: {
      lines: items.length,
      created: count("created"),
      updated: count("updated"),
      unchanged: count("unchanged"),
      deleted: count("deleted"),
      rejected: count("rejected"),
    },
    items,
  };
}
