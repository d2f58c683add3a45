/** One call of the interface description: what is asked, what is answered, with an example of each. */
import { type TSchema, Type } from "@sinclair/typebox";
import type { ErrorStatus } from "#api/reference/error-codes.ts";
import type { FaultCode } from "#core/domain/schema/fault.ts";
import type { Scope } from "#core/domain/setup/setup.ts";

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
  readonly rules?: readonly Rule[];
  /** Limit of the body. */
  readonly limitBytes?: number;
  readonly answers: Readonly<Record<number, Answer>>;
  /**
   * Statuses with the shared error shapes. Added are 400, 406, 500 and 503 to every call, 401, 403 and 429 to every call with
   * a token, 408, 413 and 422 to every call with a body.
   */
  readonly errors: readonly ErrorStatus[];
}

/** What no schema can say: a request that the schema allows may be refused with this violation. */
export interface Rule {
  /** As in a violation, with `[]` for any index. */
  readonly path: string;
  readonly code: FaultCode;
  readonly rule: string;
}

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
  /** Some of its codes come in the shorter error body, as `application/json`. */
  readonly isErrorBodyToo?: true;
  /** Of an error. */
  readonly codes?: readonly string[];
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
