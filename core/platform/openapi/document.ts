/** The OpenAPI 3.1 document of a port, generated from its routes. */
import type { TSchema } from "@sinclair/typebox";
import type { ErrorEntry } from "#core/platform/errors/error-catalogue.ts";
import { TITLES } from "#core/platform/errors/problem.ts";
import { type Access, guardOf, publicRoutes } from "#core/platform/http/access.ts";
import { publicText } from "#core/platform/http/compression.ts";
import type { Route } from "#core/platform/http/no-route.ts";
import { PUBLIC_CACHE } from "#core/platform/http/reference-page.ts";
import { REQUEST_ID_LENGTH } from "#core/platform/http/request-ids.ts";
import {
  type Components,
  type Json,
  namedComponents,
  publishedSchema,
  schemaText,
} from "#core/platform/schema/published-schema.ts";
import { codeSamples, SAMPLES_WORDS } from "./code-samples.ts";
import { describeMembers, type MemberWords } from "./describe-members.ts";
import type { Answer, Content, Parameter, Rule } from "./operation.ts";
import { operationOf, type WholeOperation } from "./operation-of.ts";

export interface ErrorShape {
  readonly content: readonly Content[];
  readonly headers?: Readonly<Record<string, Header>>;
}

export interface Header {
  readonly description: string;
  readonly schema: Json;
}

/** What the routes do not say. */
export interface Api {
  readonly info: { readonly title: string; readonly version: string; readonly description: string };
  /** Of calls whose path has this segment after the version; the first is for all others. */
  readonly tags: Readonly<Record<string, Tag>>;
  /** Names of schemas; a schema without one is written out where it is used, or named after its call. */
  readonly components: Readonly<Record<string, TSchema>>;
  readonly namesAfterCalls?: boolean;
  /** Of members that their schemas do not describe. */
  readonly memberWords?: MemberWords;
  /** Of parameters whose operation has none, by name in braces; a code that stands for different things is found with the segment before it. */
  readonly parameterExamples?: Readonly<Record<string, string | number>>;
  /** What `TOKEN` of the code samples is. */
  readonly sampleToken: string;
  readonly securitySchemes: Json;
  /** Of a call that is not public. */
  readonly security: readonly Json[];
  readonly errors: readonly ErrorEntry[];
  /** The bodies of an error, and its headers. */
  readonly errorShape: (error: ErrorEntry, operation: WholeOperation) => ErrorShape;
  /** Of every answer that is no error. */
  readonly answerHeaders: (access: Access) => Readonly<Record<string, Header>>;
  readonly bodyLimitBytes: number;
  /** Whether a null member of a body counts as absent. */
  readonly nullIsAbsent: boolean;
}

export interface Tag {
  readonly name: string;
  readonly description: string;
}

/** A route as the document shows it. */
export interface DescribedRoute {
  readonly method: string;
  /** With `{id}` for what varies. */
  readonly path: string;
  readonly access: Access;
  readonly operation: WholeOperation;
}

/** Those that describe themselves. */
export function describedRoutes(routes: readonly Route[]): DescribedRoute[] {
  return routes.flatMap((route): DescribedRoute[] => {
    const operation = operationOf(route);
    const guard = guardOf(route);
    if (!operation || !guard) return [];
    const path = route.path.replaceAll(/:(\w+)/g, "{$1}");
    return [{ method: route.method.toLowerCase(), path, access: guard.access, operation }];
  });
}

/**
 * @param routes of the app, known once it is complete
 * @param headers that every answer of the port has
 */
export function openApiRoute(
  path: string,
  routes: () => readonly Route[],
  api: Api,
  headers: Readonly<Record<string, string>> = {},
) {
  let text: string | null = null;
  const document = publicText(() => {
    text ??= JSON.stringify(openApiDocument(routes(), api));
    return text;
  });
  const all = { "content-type": "application/json", ...PUBLIC_CACHE, ...headers };
  return publicRoutes(`openapi ${path}`).get(path, ({ request }) => document(request, all));
}

export function openApiDocument(routes: readonly Route[], api: Api) {
  const described = describedRoutes(routes);
  const named = api.namesAfterCalls ? withOwnNames(described, api.components) : api.components;
  const components = namedComponents(named);
  const published = described.map(
    (route) => [route, operationObject(route, api, components)] as const,
  );
  const byPath = Map.groupBy(published, ([{ path }]) => path);
  const tags = new Set(published.map(([{ path }]) => tagOf(path, api)));
  return {
    openapi: "3.1.0",
    info: { ...api.info, description: withSamples(api), license: LICENSE },
    servers: [{ url: "/", description: "The address that serves this document." }],
    tags: [...new Set(Object.values(api.tags))].filter((tag) => tags.has(tag)),
    paths: Object.fromEntries(
      [...byPath].map(([path, own]) => [
        path,
        Object.fromEntries(own.map(([{ method }, operation]) => [method, operation])),
      ]),
    ),
    components: {
      securitySchemes: api.securitySchemes,
      headers: { [REQUEST_ID_HEADER]: header(REQUEST_ID_WORDS) },
      schemas: Object.fromEntries(
        [...components.published]
          .toSorted(([one], [other]) => (one < other ? -1 : 1))
          .map(([name, schema]) => [name, describeMembers(schema, name, api.memberWords ?? {})]),
      ),
    },
  };
}

/** Marks what the product adds to the documents of its APIs. */
export const EXTENSION = "x-extension";

/** A body or an answer that has no name is named after its call. */
function withOwnNames(routes: readonly DescribedRoute[], given: Api["components"]) {
  const named: Record<string, TSchema> = { ...given };
  const known = new Set(Object.values(given).map(schemaText));
  for (const { operation } of routes) {
    const { id, body, answers } = operation;
    const capital = `${id.slice(0, 1).toUpperCase()}${id.slice(1)}`;
    const own = Object.values(answers).map(({ content }) => [`${capital}Answer`, content?.schema]);
    for (const [name, schema] of [[`${capital}Request`, body?.schema], ...own] as const) {
      if (typeof schema !== "object" || !hasParts(schema) || known.has(schemaText(schema)))
        continue;
      named[name as string] = schema;
      known.add(schemaText(schema));
    }
  }
  return named;
}

const hasParts = (schema: TSchema) =>
  ["properties", "items", "anyOf"].some((name) => schema[name] !== undefined);

const REQUEST_ID_HEADER = "X-Request-Id";
const REQUEST_ID_WORDS = `The request's own X-Request-Id if it has 1 to ${REQUEST_ID_LENGTH} letters, digits, dots, hyphens and underscores, else one that was made. Log lines of the service have it.`;
/** Of every answer. */
const REQUEST_ID = {
  [REQUEST_ID_HEADER]: { $ref: `#/components/headers/${REQUEST_ID_HEADER}` },
};

/** The description, and what its code samples read. */
function withSamples({ info, sampleToken }: Api): string {
  return `${info.description}\n\n${SAMPLES_WORDS}\n\n    export URL=https://… TOKEN=… # ${sampleToken}`;
}

const LICENSE = { name: "Proprietary", identifier: "LicenseRef-Proprietary" };

function tagOf(path: string, { tags }: Api): Tag | undefined {
  const segments = path.split("/");
  const own = Object.entries(tags).find(([segment]) => segments.includes(segment));
  return own?.[1] ?? Object.values(tags)[0];
}

function operationObject(route: DescribedRoute, api: Api, components: Components): Json {
  const { operation, access } = route;
  const { id, summary, rules = [], body, answers } = operation;
  const parameters = parametersOf(route, api);
  return {
    operationId: id,
    tags: [tagOf(route.path, api)?.name],
    summary,
    ...descriptionOf(route, rules),
    ...(operation.extension && { [EXTENSION]: true }),
    ...(rules.length > 0 && { "x-rules": rules }),
    security: access === "public" ? [] : api.security,
    ...(parameters && { parameters: parameters.map((one) => parameterObject(one, components)) }),
    ...(body && {
      requestBody: {
        required: body.optional !== true,
        description: `At most ${body.limitBytes ?? api.bodyLimitBytes} bytes.`,
        content: contentObject([body], components, api),
      },
    }),
    responses: {
      ...Object.fromEntries(
        Object.entries(answers).map(([status, answer]) => [
          status,
          answerObject(answer, api.answerHeaders(access), components),
        ]),
      ),
      ...errorObjects(route, api, components),
    },
    "x-codeSamples": codeSamples({
      method: route.method,
      path: route.path,
      isPublic: access === "public",
      parameters,
      body,
      answers,
    }),
  };
}

function descriptionOf({ operation, access }: DescribedRoute, rules: readonly Rule[]) {
  const scope = typeof access === "object" && "scope" in access ? access.scope : null;
  const needs = scope === null ? [] : [`Needs the scope \`${scope}\`.`];
  const beyond = rules.map(({ path, code, rule }) => `\`${path || "(body)"}\` ${code}: ${rule}`);
  const listed = beyond.length === 0 ? [] : [`422 beyond the schema: ${beyond.join("; ")}.`];
  const { description } = operation;
  const parts = [...(description === undefined ? [] : [description]), ...needs, ...listed];
  return parts.length === 0 ? {} : { description: parts.join(" ") };
}

function parametersOf({ path, operation }: DescribedRoute, { parameterExamples = {} }: Api) {
  return operation.parameters?.map((parameter): Parameter => {
    const before = path.split(`/{${parameter.name}}`)[0]?.split("/").at(-1);
    const name = `{${parameter.name}}`;
    const example = parameterExamples[`${before}/${name}`] ?? parameterExamples[name];
    const isGiven = parameter.in !== "path" || parameter.example !== undefined;
    return isGiven || example === undefined ? parameter : { ...parameter, example };
  });
}

function parameterObject(
  { schema, inSample: _, ...parameter }: Parameter,
  components: Components,
): Json {
  return { ...parameter, schema: publishedSchema(schema, { components }) };
}

function answerObject(
  { description, content, otherContents = [], headers = {} }: Answer,
  common: Readonly<Record<string, Header>>,
  components: Components,
): Json {
  const own = Object.entries(headers).map(([name, text]) => [name, header(text)]);
  const all = { ...Object.fromEntries(own), ...common, ...REQUEST_ID };
  return {
    description,
    headers: all,
    ...(content && { content: contentObject([content, ...otherContents], components) }),
  };
}

export const EXAMPLE_REQUEST_ID = "7d0f9a52-8a0f-4f0e-9a36-0d6f6f4c0b11";

export function header(description: string, schema: Json = { type: "string" }): Header {
  return { description, schema };
}

function contentObject(
  contents: readonly Content[],
  components: Components,
  { nullIsAbsent }: { readonly nullIsAbsent: boolean } = { nullIsAbsent: false },
): Json {
  return Object.fromEntries(
    contents.map(({ schema, example, mediaType = "application/json" }) => [
      mediaType,
      {
        schema: publishedSchema(schema, { nullIsAbsent, components }),
        ...(example !== undefined && { example }),
      },
    ]),
  );
}

/** One a status, with every code that the call can be answered with. */
function errorObjects(route: DescribedRoute, api: Api, components: Components): Json {
  const byStatus = Map.groupBy(errorsOfCall(route, api), ({ status }) => status);
  const statuses = [...byStatus].filter(
    ([status]) => route.operation.answers[status] === undefined,
  );
  return Object.fromEntries(
    statuses.map(([status, errors]) => {
      const shapes = errors.map((error) => api.errorShape(error, route.operation));
      const headers = Object.assign({}, ...shapes.map((shape) => shape.headers), REQUEST_ID);
      // The first error of a status is its example.
      const contents = shapes.flatMap(({ content }) => content).toReversed();
      return [
        status,
        {
          description: errors.map(({ code, meaning }) => `${code}: ${meaning}`).join("\n\n"),
          "x-codes": errors.map(({ code }) => code),
          headers,
          content: contentObject(contents, components),
        },
      ];
    }),
  );
}

/** In the order of the catalogue. @throws if the operation names a code that is not in it */
function errorsOfCall(
  { method, access, operation }: DescribedRoute,
  { errors }: Api,
): ErrorEntry[] {
  const own = new Set<string>(operation.errors);
  const possible = errors.filter(({ code, of }) => {
    const isOwn = own.delete(code);
    if (isOwn || of === "every call") return true;
    if (of === "calls with a body") return operation.body !== undefined;
    if (of === "calls with a query") return operation.parameters?.some(isInQuery) === true;
    if (access === "public" || of === undefined) return false;
    return of === "calls with credentials" || !/^get$/i.test(method);
  });
  if (own.size === 0) return possible;
  throw new Error(`${operation.id} names errors that no catalogue has: ${[...own].join(", ")}`);
}

const isInQuery = ({ in: place }: Parameter) => place === "query";

/** RFC 7807, of an error without violations. */
export function problemExample({ status, code, meaning }: ErrorEntry, type: string) {
  const requestId = EXAMPLE_REQUEST_ID;
  return { type, title: TITLES[status], status, code, detail: meaning, requestId };
}
