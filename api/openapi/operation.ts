/** One call of the interface description: what is asked, what is answered, with an example of each. */
import { type TSchema, Type } from "@sinclair/typebox";
import type { Scope } from "#core/domain/setup.ts";

export interface Operation {
  readonly id: string;
  readonly method: "get" | "post" | "put" | "patch" | "delete";
  /** With `{id}` for what varies. */
  readonly path: string;
  readonly tag: string;
  readonly summary: string;
  readonly description?: string;
  /** "public": no token; null: any token of a channel. */
  readonly scope: Scope | "public" | null;
  readonly parameters?: readonly Parameter[];
  readonly body?: Content;
  /** Limit of the body. */
  readonly limitBytes?: number;
  readonly answers: Readonly<Record<number, Answer>>;
  /**
   * Statuses with the shared error shapes; 401, 403 and 429 are added to every call with a token, 400, 408, 413 and 422 to
   * every call with a body.
   */
  readonly errors: readonly ErrorStatus[];
}

export type ErrorStatus = 400 | 401 | 403 | 404 | 408 | 409 | 413 | 422 | 429 | 502 | 503;

export interface Content {
  /** Name of the component. */
  readonly name: string;
  readonly schema: TSchema;
  readonly example: unknown;
}

export interface Answer {
  readonly description: string;
  /** Absent = no body. */
  readonly content?: Content;
  readonly headers?: Readonly<Record<string, string>>;
  /** Instead of `application/json`. */
  readonly mediaType?: string;
}

export interface Parameter {
  readonly name: string;
  readonly in: "query" | "path";
  readonly description: string;
  readonly required: boolean;
  readonly schema: TSchema;
  readonly example: unknown;
}

export function query(
  name: string,
  schema: TSchema,
  description: string,
  example: unknown,
  required = false,
): Parameter {
  return { name, in: "query", description, required, schema, example };
}

export function inPath(name: string, schema: TSchema, example: unknown): Parameter {
  const description = name === "id" ? "The resource's id." : `The resource's ${name}.`;
  return { name, in: "path", description, required: true, schema, example };
}

export const text = Type.String();
export const id = Type.Integer({ minimum: 1 });
export const nullableInteger = Type.Union([Type.Integer(), Type.Null()]);
