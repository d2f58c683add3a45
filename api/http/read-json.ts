/** Reads a JSON body under the limit of its route and checks it against its compiled schema. */

import type { Static, TSchema } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { Problem } from "#core/platform/errors/problem.ts";
import { readJsonValue } from "#core/platform/http/body/read-json.ts";
import { type CompiledSchema, compileSchema } from "#core/platform/schema/compile-schema.ts";
import { FAULTS_COUNTED, listFaults } from "#core/platform/schema/fault.ts";
import { addUnknownMembers, type Warning } from "#core/platform/schema/unknown-members.ts";
import { SMALL_BODY_BYTES } from "./body-limits.ts";
import { validationFailed } from "./error-response.ts";
import { noteWarnings } from "./warnings.ts";

/** No schema of ours goes deeper; what lies below is not ours and stays as it is. */
export const DEPTH_LIMIT = 8;

/** @throws {Problem} 400 missing, invalid UTF-8 or not strict JSON; 408, 413; 422 text that is not valid Unicode */
export async function readJson(request: Request, limitBytes: number): Promise<unknown> {
  const value = await readJsonValue(request, limitBytes, validationFailed, FAULTS_COUNTED);
  if (value === undefined) throw missingBody();
  return value;
}

/** A body that is checked against its schema. */
export function jsonBody<T extends TSchema>(
  schema: T,
  example: Static<T>,
  limitBytes = SMALL_BODY_BYTES,
) {
  const checker = compileSchema(schema);
  const read = (request: Request) => readChecked(request, checker, limitBytes);
  return { schema, example, limitBytes, read };
}

/**
 * A null member counts as absent and a member that the schema does not know is left out.
 * @throws {Problem} 400, 408, 413 as `readJson`; 422 with every violation found
 */
async function readChecked<T extends TSchema>(
  request: Request,
  checker: CompiledSchema<T>,
  limitBytes: number,
): Promise<Static<T>> {
  const body = withoutNulls(await readJson(request, limitBytes), DEPTH_LIMIT);
  return cleanBody(request, body, checker);
}

/**
 * The body without the members that its schema does not know, which the answer warns of.
 * @throws {Problem} 422 with every violation found
 */
export function cleanBody<T extends TSchema>(
  request: Request,
  body: unknown,
  checker: CompiledSchema<T>,
): Static<T> {
  const checked = checkedBody(body, checker);
  const unknown: Warning[] = [];
  addUnknownMembers(checker.schema, checked, "", unknown);
  noteWarnings(request, unknown);
  return Value.Clean(checker.schema, checked) as Static<T>;
}

/** @throws {Problem} 422 with every violation found */
function checkedBody<T extends TSchema>(body: unknown, checker: CompiledSchema<T>): Static<T> {
  if (checker.check(body)) return body;
  throw validationFailed(listFaults(checker.errors(body), FAULTS_COUNTED), body);
}

export function missingBody(): Problem {
  return new Problem(400, "MALFORMED_BODY", "The body is missing.");
}

export function withoutNulls(value: unknown, depth: number): unknown {
  if (typeof value !== "object" || value === null || depth === 0) return value;
  if (Array.isArray(value)) {
    for (const item of value) withoutNulls(item, depth - 1);
    return value;
  }
  const members = value as Record<string, unknown>;
  for (const key of Object.keys(members)) {
    if (members[key] === null) delete members[key];
    else withoutNulls(members[key], depth - 1);
  }
  return value;
}
