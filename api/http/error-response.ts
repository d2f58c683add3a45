/** The two error shapes of document 1, "Errors". */
import { Type } from "@sinclair/typebox";
import { Problem, problemResponse } from "#core/platform/errors/problem.ts";
import { explanationOf } from "#core/platform/http/errors-page.ts";
import { currentRequestId } from "#core/platform/http/request-id.ts";
import { counted } from "#core/platform/schema/counted.ts";
import {
  FAULT_CODES,
  FAULTS_COUNTED,
  FAULTS_LISTED,
  type Fault,
} from "#core/platform/schema/fault.ts";
import { rejectedValue } from "#core/platform/schema/rejected-value.ts";

const requestId = Type.String({ description: "as in the header X-Request-Id" });

export const ErrorBody = Type.Object({
  status: Type.Integer({ description: "HTTP status" }),
  code: Type.String({ description: "stable, upper snake case" }),
  message: Type.String(),
  requestId,
});

const nearest = Type.Union([Type.String(), Type.Null()], {
  description:
    "of UNKNOWN_PARAMETER: the parameter with the most similar name; null if none is similar",
});

export const Violation = Type.Object({
  path: Type.String({ description: "dotted: `parcels[0].weight`; empty for the whole" }),
  code: Type.Union(
    [...Object.keys(FAULT_CODES), "UNKNOWN_PARAMETER"].map((code) => Type.Literal(code)),
  ),
  message: Type.String(),
  value: Type.Optional(
    Type.Union([Type.String(), Type.Number(), Type.Boolean()], {
      description:
        "the rejected value, a text cut after 100 characters; absent for lists, objects and what may be a secret",
    }),
  ),
  nearest: Type.Optional(nearest),
});

export const ProblemDocument = Type.Object({
  type: Type.String({ description: "address of the explanation of the code" }),
  title: Type.String(),
  status: Type.Integer(),
  code: Type.String({ description: "stable, upper snake case" }),
  detail: Type.String({ description: "how many violations there are" }),
  violations: Type.Optional(
    Type.Array(Violation, { maxItems: FAULTS_LISTED, description: "the first of them" }),
  ),
  parameter: Type.Optional(
    Type.String({
      description: "of UNKNOWN_PARAMETER: the first name that the call does not have",
    }),
  ),
  nearest: Type.Optional(nearest),
  requestId,
});

/** `{status, code, message}`; validation failures and label errors are RFC 7807 problem documents. */
export function errorResponse(problem: Problem): Response {
  const { status, code, detail, members, headers } = problem;
  const explanation = explanationOf("merchant", code);
  const common = {
    // Header values are Latin-1 at the most.
    "x-error-message": detail.replaceAll(/[^\x20-\x7e]/g, "?"),
    ...(explanation !== null && { link: `<${explanation}>; rel="help"` }),
  };
  if (status === 422 || problem.asDocument) {
    return problemResponse(problem, common, explanation ?? undefined);
  }
  return Response.json(
    { status, code, message: detail, ...members, requestId: currentRequestId() },
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
