/** The body of a panel call, checked against its schema. */
import type { Static, TSchema } from "@sinclair/typebox";
import { Problem } from "#core/platform/errors/problem.ts";
import type { CompiledSchema } from "#core/platform/schema/compile-schema.ts";
import { listFaults } from "#core/platform/schema/fault.ts";
import { invalidBody, readJson } from "./read-json.ts";

/** @throws {Problem} 400, 408, 413, 422 */
export async function readChecked<T extends TSchema>(
  request: Request,
  checker: CompiledSchema<T>,
  limitBytes?: number,
): Promise<Static<T>> {
  return checkedBody(await readJson(request, limitBytes), checker);
}

/** @throws {Problem} 422 */
export function checkedBody<T extends TSchema>(
  body: unknown,
  checker: CompiledSchema<T>,
): Static<T> {
  if (checker.check(body)) return body;
  throw invalidBody(listFaults(checker.errors(body)));
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

/** For the OpenAPI document: handlers read their bodies themselves, after their caller was admitted. */
export function jsonBody<T extends TSchema>(
  schema: T,
  example: Static<T>,
  options: { readonly limitBytes?: number; readonly optional?: true } = {},
) {
  return { schema, example, ...options };
}
