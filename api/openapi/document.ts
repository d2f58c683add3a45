/** `GET /v2/openapi.json`: the merchant API as OpenAPI 3.1, from the schemas that validate and type it. */
import { SMALL_BODY_BYTES } from "#api/body-limits.ts";
import type { ErrorStatus } from "#api/reference/error-codes.ts";
import { publishedSchema } from "#core/domain/schema/published-schema.ts";
import { publicRoutes } from "#core/http/access.ts";
import { ACCESS_OPERATIONS } from "./access.ts";
import { COURIER_OPERATIONS } from "./couriers.ts";
import { ErrorBody, errorResponseName, errorResponses, ProblemDocument } from "./errors.ts";
import { LABEL_OPERATIONS } from "./labels.ts";
import type { Answer, Content, Operation, Parameter, Rule } from "./operation.ts";
import { ORDER_OPERATIONS } from "./orders.ts";
import { SHIPMENT_OPERATIONS } from "./shipments.ts";

export const OPERATIONS: readonly Operation[] = [
  ...ACCESS_OPERATIONS.filter(({ scope }) => scope === "public"),
  ...SHIPMENT_OPERATIONS,
  ...ORDER_OPERATIONS,
  ...LABEL_OPERATIONS,
  ...COURIER_OPERATIONS,
  ...ACCESS_OPERATIONS.filter(({ scope }) => scope !== "public"),
];

const TAGS: Readonly<Record<string, string>> = {
  Authentication: "API keys are exchanged for access tokens.",
  Shipments: "Shipments of the channel: create, search, read, release, notify.",
  Orders: "Orders of the channel, read only.",
  "Order parcels": "Parcels of orders, by hash. The company must own the product api-parcels.",
  Labels: "Carrier labels and their confirmation.",
  Addresses: "Postal addresses, checked against a geocoder or the national carrier's registry.",
  Couriers: "Anonymous benchmarks of couriers on a lane.",
  Jobs: "Background jobs.",
  Sandbox: "An entity for integration tests.",
};

/** Possible for every call. */
const CALL_ERRORS: readonly ErrorStatus[] = [400, 406, 500, 503];

/** Every call with a token can be refused so. */
const TOKEN_ERRORS: readonly ErrorStatus[] = [401, 403, 429];

/** Possible for every call with a body. */
const BODY_ERRORS: readonly ErrorStatus[] = [408, 413, 422];

export function openApiRoute() {
  const document = JSON.stringify(openApiDocument());
  return publicRoutes("openapi").get(
    "/v2/openapi.json",
    () => new Response(document, { headers: { "content-type": "application/json" } }),
  );
}

export function openApiDocument() {
  return {
    openapi: "3.1.0",
    info: {
      title: "Waybill merchant API",
      version: "2.0.0",
      description:
        "Shipments, orders, labels, order parcels, address checks and courier benchmarks of a merchant channel. Tracking times are Europe/Rome local time without offset; other date-times are ISO 8601. A null member of a request counts as absent, unless the call says otherwise.",
      license: { name: "Proprietary", identifier: "LicenseRef-Proprietary" },
    },
    servers: [{ url: "/", description: "The address that serves this document." }],
    tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
    paths: paths(),
    components: {
      securitySchemes: { accessToken: { type: "http", scheme: "bearer", bearerFormat: "JWT" } },
      schemas: schemas(),
      responses: errorResponses(OPERATIONS.flatMap(errorsOf)),
    },
  };
}

function paths(): Record<string, Record<string, object>> {
  const found: Record<string, Record<string, object>> = {};
  for (const operation of OPERATIONS) {
    const path = found[operation.path] ?? {};
    path[operation.method] = operationObject(operation);
    found[operation.path] = path;
  }
  return found;
}

function operationObject(operation: Operation): object {
  const { id, tag, summary, description, scope, parameters, body, answers } = operation;
  const { limitBytes = SMALL_BODY_BYTES, rules = [] } = operation;
  const own = Object.entries(answers).map(([status, answer]) => [status, answerObject(answer)]);
  const shared = errorsOf(operation).map((status) => [
    status,
    { $ref: `#/components/responses/${errorResponseName(status)}` },
  ]);
  return {
    operationId: id,
    tags: [tag],
    summary,
    ...describe(description, scope, rules),
    ...(rules.length > 0 && { "x-rules": rules }),
    security: scope === "public" ? [] : [{ accessToken: [] }],
    ...(parameters && { parameters: parameters.map(parameterObject) }),
    ...(body && { requestBody: bodyObject(body, limitBytes) }),
    responses: Object.fromEntries([...own, ...shared]),
  };
}

/** Those in the shared shapes: an operation may describe a status itself. */
function errorsOf({ scope, body, answers, errors }: Operation): ErrorStatus[] {
  const ofToken = scope === "public" ? [] : TOKEN_ERRORS;
  const common = [...CALL_ERRORS, ...ofToken, ...(body ? BODY_ERRORS : [])];
  const missing = common.filter((status) => answers[status] === undefined);
  return [...new Set([...errors, ...missing])].sort((one, other) => one - other);
}

function bodyObject(body: Content, limitBytes: number): object {
  return {
    required: true,
    description: `At most ${limitBytes} bytes.`,
    content: contentObject(body),
  };
}

function describe(
  description: string | undefined,
  scope: Operation["scope"],
  rules: readonly Rule[],
) {
  const needs = scope === null || scope === "public" ? [] : [`Needs the scope \`${scope}\`.`];
  const beyond = rules.map(({ path, code, rule }) => `\`${path || "(body)"}\` ${code}: ${rule}`);
  const listed = beyond.length === 0 ? [] : [`422 beyond the schema: ${beyond.join("; ")}.`];
  const parts = [...(description === undefined ? [] : [description]), ...needs, ...listed];
  return parts.length === 0 ? {} : { description: parts.join(" ") };
}

function parameterObject({ schema, ...parameter }: Parameter): object {
  return { ...parameter, schema: publishedSchema(schema) };
}

function answerObject(answer: Answer): object {
  const { description, content, headers, mediaType, isErrorBodyToo, codes } = answer;
  const described = Object.entries(headers ?? {}).map(([name, text]) => [
    name,
    { description: text, schema: { type: "string" } },
  ]);
  return {
    description,
    ...(codes && { "x-codes": codes }),
    ...(headers && { headers: Object.fromEntries(described) }),
    ...(content && {
      content: {
        ...contentObject(content, mediaType),
        ...(isErrorBodyToo && {
          "application/json": { schema: { $ref: "#/components/schemas/ErrorBody" } },
        }),
      },
    }),
  };
}

function contentObject({ name, example }: Content, mediaType = "application/json"): object {
  return { [mediaType]: { schema: { $ref: `#/components/schemas/${name}` }, example } };
}

function schemas(): Record<string, object> {
  const contents = OPERATIONS.flatMap(({ body, answers }) => [
    ...(body ? [body] : []),
    ...Object.values(answers).flatMap(({ content }) => (content ? [content] : [])),
  ]);
  const bodies = new Set(OPERATIONS.map(({ body }) => body?.name));
  const named = contents.map(({ name, schema }) => {
    return [name, publishedSchema(schema, { nullIsAbsent: bodies.has(name) })] as const;
  });
  const shared = {
    ErrorBody: publishedSchema(ErrorBody),
    ProblemDocument: publishedSchema(ProblemDocument),
  };
  return { ...shared, ...Object.fromEntries(named) };
}
