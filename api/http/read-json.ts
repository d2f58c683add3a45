/** Reads a JSON body under the limit of its route and checks it against its compiled schema. */

import type { Static, TSchema } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { Problem } from "#core/platform/errors/problem.ts";
import { readJsonBody } from "#core/platform/http/body/read-json.ts";
import type { CompiledSchema } from "#core/platform/schema/compile-schema.ts";
import { FAULTS_COUNTED, listFaults } from "#core/platform/schema/fault.ts";
import { illFormedText } from "#core/platform/schema/ill-formed-text.ts";
import { validationFailed } from "./error-response.ts";

/** No schema of ours goes deeper; what lies below is not ours and stays as it is. */
export const DEPTH_LIMIT = 8;

/** @throws {Problem} 400 missing, invalid UTF-8 or not strict JSON; 408, 413; 422 text that is not valid Unicode */
export async function readJson(request: Request, limitBytes: number): Promise<unknown> {
  const parsed = await readJsonBody(request, limitBytes);
  if (parsed === null) throw missingBody();
  const faults = parsed.hasSurrogateEscapes ? illFormedText(parsed.value, "", FAULTS_COUNTED) : [];
  if (faults.length > 0) throw validationFailed(faults);
  return parsed.value;
}

/**
 * A null member counts as absent and a member that the schema does not know is left out.
 * @throws {Problem} 400, 408, 413 as `readJson`; 422 with every violation found
 */
export async function readChecked<T extends TSchema>(
  request: Request,
  checker: CompiledSchema<T>,
  limitBytes: number,
): Promise<Static<T>> {
  const body = withoutNulls(await readJson(request, limitBytes), DEPTH_LIMIT);
  if (!checker.check(body)) {
    throw validationFailed(listFaults(checker.errors(body), FAULTS_COUNTED), body);
  }
  return Value.Clean(checker.schema, body) as Static<T>;
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
