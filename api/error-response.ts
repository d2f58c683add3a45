/** The two error shapes of document 1, "Errors". */
import { explanationOf } from "#api/reference/errors.ts";
import { counted } from "#core/domain/schema/counted.ts";
import { FAULTS_COUNTED, FAULTS_LISTED, type Fault } from "#core/domain/schema/fault.ts";
import { rejectedValue } from "#core/domain/schema/rejected-value.ts";
import { Problem, problemResponse } from "#core/problem.ts";

/** `{status, code, message}`; validation failures and label errors are RFC 7807 problem documents. */
export function errorResponse(problem: Problem): Response {
  const { status, code, detail, members, headers } = problem;
  const explanation = explanationOf(code);
  const common = {
    // Header values are Latin-1 at the most.
    "x-error-message": detail.replaceAll(/[^\x20-\x7e]/g, "?"),
    ...(explanation !== null && { link: `<${explanation}>; rel="help"` }),
  };
  if (status === 422 || problem.asDocument) {
    return problemResponse(problem, common, explanation ?? undefined);
  }
  return Response.json(
    { status, code, message: detail, ...members },
    { status, headers: { ...common, ...headers } },
  );
}

/**
 * @param faults at least one; only the first are listed, and `FAULTS_COUNTED` or more are not counted exactly
 * @param request what the faults' paths lead into, if the rejected values may be shown
 */
export function validationFailed(faults: readonly Fault[], request?: unknown): Problem {
  const violations = faults.slice(0, FAULTS_LISTED).map((fault) => {
    const value = rejectedValue(request, fault.path);
    return value === undefined ? fault : { ...fault, value };
  });
  return new Problem(422, "VALIDATION_FAILED", countText(faults.length), {
    members: { violations },
  });
}

function countText(count: number): string {
  const least = count < FAULTS_COUNTED ? "" : "at least ";
  const listed = count > FAULTS_LISTED ? `; the first ${FAULTS_LISTED} are listed` : "";
  return `The request has ${least}${counted(count, "violation")}${listed}.`;
}
