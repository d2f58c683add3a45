/** What a route says of itself: the OpenAPI document of its port is generated from it. */
import { type Static, type TSchema, Type } from "@sinclair/typebox";
import type { ErrorCode } from "#core/platform/errors/error-catalogue.ts";
import type { FaultCode } from "#core/platform/schema/fault.ts";

export interface Content {
  readonly schema: TSchema;
  readonly example?: unknown;
  /** Default: `application/json`. */
  readonly mediaType?: string;
}

/** A body that the port reads and checks, unless `read` is absent. */
export interface Body<T = unknown> extends Content {
  readonly limitBytes?: number;
  readonly optional?: boolean;
  readonly read?: (request: Request) => Promise<T>;
}

export interface Operation {
  /** `operationId`; default: made of method and path. */
  readonly id?: string;
  readonly summary: string;
  readonly description?: string;
  /** Not in the documents of the API, but added to them. */
  readonly extension?: true;
  /** Default: those of the path and of the route's `query`. */
  readonly parameters?: readonly Parameter[];
  /** Elysia checks them. */
  readonly query?: TSchema;
  readonly response?: TSchema | Readonly<Record<number, TSchema>>;
  readonly body?: Body;
  readonly rules?: readonly Rule[];
  /** By status, beside the route's `response`. */
  readonly answers?: Readonly<Record<number, Answer>>;
  /** Codes of errors beyond those of every call of its kind. */
  readonly errors?: readonly ErrorCode[];
  /** What the error bodies of some statuses are, where it is not the usual shape. */
  readonly problems?: {
    readonly statuses: readonly number[];
    readonly schema: TSchema;
  };
}

/** What no schema can say: a request that the schema allows may be refused with this violation. */
export interface Rule {
  /** As in a violation, with `[]` for any index. */
  readonly path: string;
  readonly code: FaultCode;
  readonly rule: string;
}

export interface Answer {
  readonly description: string;
  /** Absent: no body. */
  readonly content?: Content;
  /** The same in other media types. */
  readonly otherContents?: readonly Content[];
  readonly headers?: Readonly<Record<string, string>>;
}

export interface Parameter {
  readonly name: string;
  readonly in: "query" | "path" | "header";
  readonly description?: string;
  readonly required: boolean;
  readonly deprecated?: boolean;
  readonly schema: TSchema;
  readonly example?: unknown;
  /** Whether the code samples have it though it is optional. */
  readonly inSample?: boolean;
}

/** An answer in JSON. */
export function json<T extends TSchema>(
  description: string,
  schema: T,
  example: Static<T>,
  headers?: Answer["headers"],
): Answer {
  return { description, content: { schema, example }, ...(headers && { headers }) };
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

/** An optional parameter that the code samples have. */
export const inSamples = (parameter: Parameter): Parameter => ({ ...parameter, inSample: true });

export function inPath(name: string, schema: TSchema, example: unknown): Parameter {
  const description = name === "id" ? "The resource's id." : `The resource's ${name}.`;
  return { name, in: "path", description, required: true, schema, example };
}

export function inHeader(name: string, schema: TSchema): Parameter {
  return { name, in: "header", required: false, schema };
}

export const idInPath = (example: number) => inPath("id", Type.Integer({ minimum: 1 }), example);
