/** What a route says of itself, with what its path, its schemas and its port say already. */
import { type TSchema, Type } from "@sinclair/typebox";
import { declarationOf, guardOf, takesKey } from "#core/platform/http/access.ts";
import { KEY_ERRORS, KEY_PARAMETER } from "#core/platform/http/idempotency-key.ts";
import type { Route } from "#core/platform/http/no-route.ts";
import type { Answer, Operation, Parameter } from "./operation.ts";

export type WholeOperation = Operation & Required<Pick<Operation, "id" | "answers">>;

const LIST_HEADERS = { Link: "The page `next`, if there is one, relative to this address." };

/** Null of a route that says nothing: a page or a probe. */
export function operationOf(route: Route): WholeOperation | null {
  const said = declarationOf(route);
  if (said === null) return null;
  const hasKey = takesKey(route.method, said);
  const { id = idOf(route), summary, query, response, answers, errors = [] } = said;
  const parameters = said.parameters ?? [
    ...pathParameters(route.path),
    ...queryParameters(query),
    ...(hasKey ? [KEY_PARAMETER] : []),
  ];
  return {
    ...said,
    id,
    ...(parameters.length > 0 && { parameters }),
    answers: { ...answersOf(response, summary), ...answers },
    errors: [...(guardOf(route)?.errors ?? []), ...errors, ...(hasKey ? ERRORS_WITH_KEY : [])],
  };
}

const ERRORS_WITH_KEY = [...KEY_ERRORS, "TOO_MANY_IDEMPOTENCY_KEYS", "INVALID_HEADER"] as const;

/** `GET /panel/api/couriers/:code/tokens` -> `getCouriersCodeTokens` */
function idOf({ method, path }: Route): string {
  const words = path.replace(/^\/panel\/api/, "").split(/[^A-Za-z0-9]+/);
  const capital = (word: string) => `${word.slice(0, 1).toUpperCase()}${word.slice(1)}`;
  return `${method.toLowerCase()}${words.map(capital).join("")}`;
}

function answersOf(response: Operation["response"], description: string): Record<number, Answer> {
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
