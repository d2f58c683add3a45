/** Query parameters that a call does not have are refused: an ignored filter would answer everything. */
import { Problem } from "#core/platform/errors/problem.ts";
import { searchParamsOf } from "#core/platform/http/search-params.ts";
import type { Operation } from "#core/platform/openapi/operation.ts";
import { FAULTS_LISTED } from "#core/platform/schema/fault.ts";
import { nearest } from "#core/platform/schema/nearest.ts";

/** In UTF-16 units; what follows is cut off. */
const NAME_LENGTH = 100;

/** @throws {Problem} 422 */
export function refuseUnknownParameters(
  request: Request,
  { parameters = [] }: Pick<Operation, "parameters">,
): void {
  const given = new Set(searchParamsOf(request).keys());
  if (given.size === 0) return;
  const known = parameters.flatMap(({ name, in: place }) => (place === "query" ? [name] : []));
  const unknown = [...given].filter((name) => !known.includes(name)).slice(0, FAULTS_LISTED);
  if (unknown.length === 0) return;
  const violations = unknown.map((name) => violationOf(name, known));
  const [first] = violations;
  const members = { parameter: first?.path, nearest: first?.nearest, violations };
  throw new Problem(422, "UNKNOWN_PARAMETER", first?.message ?? "", { members });
}

function violationOf(name: string, known: readonly string[]) {
  const path = name.slice(0, NAME_LENGTH).toWellFormed();
  const near = nearest(name, known);
  const hint = near === null ? knownText(known) : ` Did you mean ${near}?`;
  const message = `The call has no query parameter ${JSON.stringify(path)}.${hint}`;
  return { path, code: "UNKNOWN_PARAMETER" as const, message, nearest: near };
}

function knownText(known: readonly string[]): string {
  return known.length === 0 ? "" : ` It has ${known.join(", ")}.`;
}
