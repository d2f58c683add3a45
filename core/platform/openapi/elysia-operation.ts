/** What a route that validates with Elysia's own schemas says of itself, from those and its `detail`. */
import { type TSchema, Type } from "@sinclair/typebox";
import { detailOf, needsOf, ROUTE_MEMBERS, takesKey } from "#core/platform/http/access.ts";
import { KEY_ERRORS, KEY_PARAMETER } from "#core/platform/http/idempotency-key.ts";
import type { Route } from "#core/platform/http/no-route.ts";
import type { Answer, Operation, Parameter } from "./operation.ts";

interface Hooks {
  readonly query?: TSchema;
  readonly response?: TSchema | Readonly<Record<number, TSchema>>;
}

interface Detail {
  readonly summary?: string;
  readonly description?: string;
  readonly requestBody?: {
    readonly required?: boolean;
    /** Of a route that declares no `bodyBytes`, since anybody may call it. */
    readonly limitBytes?: number;
    readonly content: Readonly<
      Record<string, { readonly schema: TSchema; readonly example?: unknown }>
    >;
  };
  readonly responses?: Readonly<Record<number, DetailAnswer>>;
}

interface DetailAnswer {
  readonly description: string;
  /** By media type; code samples and clients take the first. */
  readonly content?: Readonly<Record<string, { readonly schema: TSchema }>>;
}

const LIST_HEADERS = { Link: "The page `next`, if there is one, relative to this address." };

/** Null if it has no summary: a page or a probe. */
export function elysiaOperation(route: Route): Operation | null {
  const { summary, description, requestBody, responses = {} } = detailOf(route) as Detail;
  if (summary === undefined) return null;
  const { query, response } = route.hooks as Hooks;
  const [body] = Object.entries(requestBody?.content ?? {});
  const answers = { ...answersOf(response, summary), ...answersOfDetail(responses) };
  const needs = needsOf(route);
  const hasKey = takesKey(route.method, needs);
  const limitBytes = needs?.bodyBytes ?? requestBody?.limitBytes;
  return {
    id: idOf(route),
    summary,
    ...(description !== undefined && { description }),
    parameters: [
      ...pathParameters(route.path),
      ...queryParameters(query),
      ...(hasKey ? [KEY_PARAMETER] : []),
    ],
    ...(body && {
      body: {
        mediaType: body[0],
        ...body[1],
        optional: !requestBody?.required,
        ...(limitBytes !== undefined && { limitBytes }),
      },
    }),
    answers,
    errors: [
      ...[ROUTE_MEMBERS.notFound, ROUTE_MEMBERS.errors].flatMap(
        (name) => (detailOf(route)[name] as readonly string[] | undefined) ?? [],
      ),
      ...(hasKey ? [...KEY_ERRORS, "TOO_MANY_IDEMPOTENCY_KEYS", "INVALID_HEADER"] : []),
    ],
  };
}

/** `GET /panel/api/couriers/:code/tokens` -> `getCouriersCodeTokens` */
function idOf({ method, path }: Route): string {
  const words = path.replace(/^\/panel\/api/, "").split(/[^A-Za-z0-9]+/);
  const capital = (word: string) => `${word.slice(0, 1).toUpperCase()}${word.slice(1)}`;
  return `${method.toLowerCase()}${words.map(capital).join("")}`;
}

function answersOf(response: Hooks["response"], description: string): Record<number, Answer> {
  if (!response) return {};
  if ("type" in response || "anyOf" in response) {
    const content = { schema: response as TSchema };
    const isList = "nextCursor" in (content.schema["properties"] ?? {});
    return { 200: { description, content, ...(isList && { headers: LIST_HEADERS }) } };
  }
  return Object.fromEntries(
    Object.entries(response as Record<number, TSchema>).map(([status, schema]) => [
      status,
      { description, content: { schema } },
    ]),
  );
}

function answersOfDetail(responses: Readonly<Record<number, DetailAnswer>>) {
  const answers = Object.entries(responses).map(([status, { description, content }]) => {
    const [first, ...otherContents] = Object.entries(content ?? {}).map(
      ([mediaType, { schema }]) => ({ mediaType, schema }),
    );
    return [status, { description, ...(first && { content: first, otherContents }) }] as const;
  });
  return Object.fromEntries(answers) as Record<number, Answer>;
}

function pathParameters(path: string): Parameter[] {
  return [...path.matchAll(/:(\w+)/g)].map(([, name = ""]) => ({
    name,
    in: "path",
    required: true,
    schema: Type.String(),
  }));
}

function queryParameters(schema: TSchema | undefined): Parameter[] {
  const properties: Readonly<Record<string, TSchema>> = schema?.["properties"] ?? {};
  const required: readonly string[] = schema?.["required"] ?? [];
  return Object.entries(properties).map(([name, member]) => {
    const { description, deprecated } = member;
    const [example] = (member["examples"] ?? []) as readonly unknown[];
    return {
      name,
      in: "query",
      required: required.includes(name),
      schema: member,
      ...(description !== undefined && { description }),
      ...(deprecated === true && { deprecated }),
      ...(example !== undefined && { example, inSample: true }),
    };
  });
}
