/** What a route that validates with Elysia's own schemas says of itself, from those and its `detail`. */
import { type TSchema, Type } from "@sinclair/typebox";
import { detailOf } from "#core/http/access.ts";
import type { Route } from "#core/http/no-route.ts";
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
    readonly content: Readonly<Record<string, { readonly schema: TSchema }>>;
  };
  readonly responses?: Readonly<Record<number, { readonly description: string }>>;
}

/** Null if it has no summary: a page or a probe. */
export function elysiaOperation(route: Route): Operation | null {
  const { summary, description, requestBody, responses = {} } = detailOf(route) as Detail;
  if (summary === undefined) return null;
  const { query, response } = route.hooks as Hooks;
  const [body] = Object.entries(requestBody?.content ?? {});
  const answers = { ...answersOf(response, summary), ...responses };
  return {
    id: idOf(route),
    summary,
    ...(description !== undefined && { description }),
    parameters: [...pathParameters(route.path), ...queryParameters(query)],
    ...(body && {
      body: { mediaType: body[0], schema: body[1].schema, optional: !requestBody?.required },
    }),
    answers,
  };
}

/** `GET /panel/api/couriers/:code/tokens` -> `getCouriersCodeTokens` */
function idOf({ method, path }: Route): string {
  const words = path.split(/[^A-Za-z0-9]+/).filter((word) => !["", "panel", "api"].includes(word));
  const capital = (word: string) => `${word.slice(0, 1).toUpperCase()}${word.slice(1)}`;
  return `${method.toLowerCase()}${words.map(capital).join("")}`;
}

function answersOf(response: Hooks["response"], description: string): Record<number, Answer> {
  if (!response) return {};
  if ("type" in response || "anyOf" in response) {
    return { 200: { description, content: { schema: response as TSchema } } };
  }
  return Object.fromEntries(
    Object.entries(response as Record<number, TSchema>).map(([status, schema]) => [
      status,
      { description, content: { schema } },
    ]),
  );
}

function pathParameters(path: string): Parameter[] {
  return [...path.matchAll(/:(\w+)/g)].map(([, name = ""]) => ({
    ...{ name, in: "path", required: true, schema: Type.String() },
  }));
}

function queryParameters(schema: TSchema | undefined): Parameter[] {
  const properties: Readonly<Record<string, TSchema>> = schema?.["properties"] ?? {};
  const required: readonly string[] = schema?.["required"] ?? [];
  return Object.entries(properties).map(([name, member]) => {
    const { description } = member;
    return {
      ...{ name, in: "query", required: required.includes(name), schema: member },
      ...(description !== undefined && { description }),
    };
  });
}
