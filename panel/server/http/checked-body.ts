/** The body of a panel call, checked against its schema. */
import type { Static, TSchema } from "@sinclair/typebox";
import { Problem } from "#core/platform/errors/problem.ts";
import { type CompiledSchema, compileSchema } from "#core/platform/schema/compile-schema.ts";
import { listFaults } from "#core/platform/schema/fault.ts";
import { invalidBody, PANEL_BODY_BYTES, readJson } from "./read-json.ts";

/** @throws {Problem} 422 */
export function checkedBody<T extends TSchema>(
  body: unknown,
  checker: CompiledSchema<T>,
): Static<T> {
  if (checker.check(body)) return body;
  throw invalidBody(listFaults(checker.errors(body)));
}

/** What a new entity must be given. */
export function missingFields(fields: readonly string[]): Problem {
  const message = "It is new, and needs this.";
  return invalidBody(fields.map((path) => ({ path, code: "REQUIRED" as const, message })));
}

/** @throws {Problem} 422 where a parameter of the path is none that the thing can have */
export function checkedPath<T extends TSchema>(
  params: unknown,
  checker: CompiledSchema<T>,
): Static<T> {
  if (checker.check(params)) return params;
  const violations = listFaults(checker.errors(params));
  throw new Problem(422, "INVALID_PATH", "The path is invalid.", { members: { violations } });
}

interface Options {
  /** Default: `PANEL_BODY_BYTES`. */
  readonly limitBytes?: number;
  /** A call without a body then has one without members. */
  readonly optional?: true;
}

/** A body that is checked against its schema. */
export function jsonBody<T extends TSchema>(schema: T, example: Static<T>, options: Options = {}) {
  const checker = compileSchema(schema);
  const { limitBytes, optional } = options;
  /** @throws {Problem} 400, 408, 413, 422 */
  const read = async (request: Request): Promise<Static<T>> => {
    const body = await readJson(request, limitBytes);
    return checkedBody(optional && body === undefined ? {} : body, checker);
  };
  return { schema, example, ...options, read };
}

/** A body that its handler checks, against more than its schema. */
export function uncheckedBody<T extends TSchema>(
  schema: T,
  example: Static<T>,
  limitBytes: number = PANEL_BODY_BYTES,
) {
  const read = (request: Request): Promise<unknown> => readJson(request, limitBytes);
  return { schema, example, limitBytes, read };
}
