/** The two error shapes of document 1, "Errors". */
import type { Fault } from "#core/domain/fault.ts";
import { Problem, problemResponse } from "#core/problem.ts";

/** `{status, code, message}` with `X-Error-Message`; validation failures are RFC 7807 problem documents. */
export function errorResponse(problem: Problem): Response {
  if (problem.status === 422) return problemResponse(problem);
  const { status, code, detail, members, headers } = problem;
  return Response.json(
    { status, code, message: detail, ...members },
    { status, headers: { "x-error-message": detail, ...headers } },
  );
}

/** @param violations at least one */
export function validationFailed(violations: readonly Fault[]): Problem {
  const detail = `The request has ${violations.length} violation(s).`;
  return new Problem(422, "VALIDATION_FAILED", detail, { members: { violations } });
}
