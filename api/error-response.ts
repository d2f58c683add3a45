/** The two error shapes of document 1, "Errors". */
import type { Fault } from "#core/domain/fault.ts";
import { Problem, problemResponse } from "#core/problem.ts";

/** `{status, code, message}`; validation failures and label errors are RFC 7807 problem documents. */
export function errorResponse(problem: Problem): Response {
  const { status, code, detail, members, headers } = problem;
  if (status === 422 || problem.asDocument) return problemResponse(problem);
  // Header values are Latin-1 at the most.
  const told = { "x-error-message": detail.replaceAll(/[^\x20-\x7e]/g, "?") };
  return Response.json(
    { status, code, message: detail, ...members },
    { status, headers: { ...told, ...headers } },
  );
}

/** @param violations at least one */
export function validationFailed(violations: readonly Fault[]): Problem {
  const detail = `The request has ${violations.length} violation(s).`;
  return new Problem(422, "VALIDATION_FAILED", detail, { members: { violations } });
}
