/** Compares every answer of an app with the OpenAPI document that is generated from its routes. */
import { Ajv2020 } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import type { Route } from "#core/platform/http/no-route.ts";
import { type Api, openApiDocument } from "#core/platform/openapi/document.ts";
import type { Json } from "#core/platform/schema/published-schema.ts";

export interface GivenAnswer {
  readonly method: string;
  /** With or without a query. */
  readonly path: string;
  readonly status: number;
  readonly headers: Headers;
  /** Parsed; null = none. */
  readonly body: unknown;
}

export interface AnswerChecker {
  /** @throws if the document does not describe the answer; answers to calls that it does not describe are not looked at */
  readonly check: (answer: GivenAnswer) => void;
  /** `<operationId> <status>` of the answers seen. */
  readonly seen: ReadonlySet<string>;
}

export function answerChecker(routes: readonly Route[], api: Api): AnswerChecker {
  const { paths, templates, fits } = describedBy(routes, api);
  const seen = new Set<string>();

  function check({ method, path: target, status, headers, body }: GivenAnswer): void {
    if (!headers.has("x-request-id")) throw new Error(`${method} ${target}: no request id`);
    const [pathname = ""] = target.split("?");
    const path = templates.find(({ form }) => form.test(pathname))?.path ?? "";
    const operation = paths[path]?.[method.toLowerCase()];
    if (!operation) return;
    const fault = faultOf(operation, status, headers, body);
    if (fault !== null) throw new Error(`${method} ${target} ${status}: ${fault}`);
    seen.add(`${operation.operationId} ${status}`);
  }

  function faultOf(operation: DescribedOperation, status: number, headers: Headers, body: unknown) {
    const described = operation.responses[status];
    if (!described) return "the document has no such status";
    if (body === null) return described.content ? "the document describes a body" : null;
    const type = headers.get("content-type")?.split(";")[0] ?? "";
    const content = described.content?.[type];
    if (!content) return `the document has no ${type}`;
    const { code } = body as { readonly code?: unknown };
    if (described["x-codes"]?.includes(String(code)) === false) {
      return `the document does not list the code ${code}`;
    }
    return fits(content.schema, body);
  }

  return { check, seen };
}

type Described = ReturnType<typeof describe>;

/** Of the apps of this process, by their routes: a document and the validators of its schemas take a quarter of a second. */
const described = new Map<Api, Map<string, Described>>();

function describedBy(routes: readonly Route[], api: Api): Described {
  const known = described.getOrInsertComputed(api, () => new Map());
  const key = routes.map(({ method, path }) => `${method} ${path}`).join("\n");
  return known.getOrInsertComputed(key, () => describe(routes, api));
}

function describe(routes: readonly Route[], api: Api) {
  const document = openApiDocument(routes, api);
  const paths = document.paths as unknown as Record<string, Record<string, DescribedOperation>>;
  const templates = Object.keys(paths)
    .toSorted((one, other) => one.split("{").length - other.split("{").length)
    .map((path) => ({ path, form: new RegExp(`^${path.replaceAll(/\{\w+\}/g, "[^/]+")}/?$`) }));
  return { paths, templates, fits: validator(document) };
}

interface DescribedOperation {
  readonly operationId: string;
  readonly responses: Readonly<
    Record<
      number,
      {
        readonly "x-codes"?: readonly string[];
        readonly content?: Readonly<Record<string, { readonly schema: Json }>>;
      }
    >
  >;
}

/** @returns what is wrong; null = nothing. A member that the document does not name is wrong too. */
function validator(document: object): (schema: Json, value: unknown) => string | null {
  const ajv = new Ajv2020({ strict: false, allErrors: true });
  addFormats(ajv);
  ajv.addSchema({ $id: "document", ...closed(document) });
  const compiled = new Map<Json, ReturnType<typeof ajv.compile>>();
  return (schema, value) => {
    const validate = compiled.getOrInsertComputed(schema, () =>
      ajv.compile(JSON.parse(JSON.stringify(closed(schema)).replaceAll('"#/', '"document#/'))),
    );
    return validate(value) ? null : ajv.errorsText(validate.errors);
  };
}

/** The objects of a schema take no members but those named. */
function closed<T>(schema: T): T {
  if (typeof schema !== "object" || schema === null) return schema;
  if (Array.isArray(schema)) return schema.map(closed) as T;
  const members = Object.entries(schema).map(([name, value]) => [
    name,
    name === "example" ? value : closed(value),
  ]);
  const isOpen = "properties" in schema && !("additionalProperties" in schema);
  return {
    ...Object.fromEntries(members),
    ...(isOpen && schema["type" as never] === "object" && { additionalProperties: false }),
  };
}
