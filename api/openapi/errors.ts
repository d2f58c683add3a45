/** The error shapes of document 1, "Errors", in the interface description. */
import { Type } from "@sinclair/typebox";
import { ERROR_CODES, type ErrorCode, type ErrorStatus } from "#api/reference/error-codes.ts";
import { explanationOf } from "#api/reference/errors.ts";
import { LabelFormat } from "#core/domain/labels/label.ts";
import { FAULT_CODES, FAULTS_LISTED } from "#core/domain/schema/fault.ts";
import { TITLES } from "#core/problem.ts";

export const ErrorBody = Type.Object({
  status: Type.Integer({ description: "HTTP status" }),
  code: Type.String({ description: "stable, upper snake case" }),
  message: Type.String(),
});

const Violation = Type.Object({
  path: Type.String({ description: "dotted: `parcels[0].weight`; empty for the whole" }),
  code: Type.String({ description: Object.keys(FAULT_CODES).join(", ") }),
  message: Type.String(),
  value: Type.Optional(
    Type.Union([Type.String(), Type.Number(), Type.Boolean()], {
      description:
        "the rejected value, a text cut after 100 characters; absent for lists, objects and what may be a secret",
    }),
  ),
});

export const ProblemDocument = Type.Object({
  type: Type.String({ description: "address of the explanation of the code" }),
  title: Type.String(),
  status: Type.Integer(),
  code: Type.String({ description: "stable, upper snake case" }),
  detail: Type.String({ description: "tells how many violations there are" }),
  violations: Type.Optional(
    Type.Array(Violation, { maxItems: FAULTS_LISTED, description: "the first of them" }),
  ),
});

export const LabelProblem = Type.Object({
  ...ProblemDocument.properties,
  errorLabel: Type.Optional(
    Type.Object({
      format: LabelFormat,
      label: Type.String({ description: "PDF as base64 or ZPL as plain text, 10x15 cm" }),
    }),
  ),
  errors: Type.Optional(
    Type.Array(
      Type.Object({ labelId: Type.Integer(), code: Type.String(), message: Type.String() }),
      { description: "labels that the carrier refused to confirm" },
    ),
  ),
  alreadyConfirmedIds: Type.Optional(Type.Array(Type.Integer())),
  notFoundIds: Type.Optional(Type.Array(Type.Integer())),
});

/** In the order of the reference. */
const BY_STATUS = Map.groupBy(ERROR_CODES, ({ status }) => status);

const VIOLATION = { path: "limit", code: "OUT_OF_RANGE", message: "At most 100.", value: "101" };
/** Headers of every error. */
export const ERROR_HEADERS = {
  "X-Error-Message": "The message, in ASCII.",
  Link: "Leads to the explanation of the code.",
} as const;
const HEADER_OBJECTS = Object.fromEntries(
  Object.entries(ERROR_HEADERS).map(([name, text]) => [name, header(text)]),
);

function header(description: string) {
  return { description, schema: { type: "string" } };
}

export const errorResponseName = (status: ErrorStatus) => `Error${status}`;

/** `components.responses`: one a status. */
export function errorResponses(statuses: Iterable<ErrorStatus>): Record<string, object> {
  return Object.fromEntries(
    [...new Set(statuses)].map((status) => [
      errorResponseName(status),
      shapeOf(status, BY_STATUS.get(status) ?? []),
    ]),
  );
}

function shapeOf(status: ErrorStatus, codes: readonly ErrorCode[]): object {
  const description = codes.map(({ code, meaning }) => `${code}: ${meaning}`).join("\n\n");
  const names = codes.map(({ code }) => code);
  const [{ code, meaning } = { code: "", meaning: "" }] = codes;
  if (status === 422) {
    const title = TITLES[status];
    const example = {
      ...{ type: explanationOf(code), title, status, code, detail: "The request has 1 violation." },
      violations: [VIOLATION],
    };
    const schema = { $ref: "#/components/schemas/ProblemDocument" };
    const content = { "application/problem+json": { schema, example } };
    return { description, "x-codes": names, headers: HEADER_OBJECTS, content };
  }
  const headers = status === 429 ? { ...HEADER_OBJECTS, ...RATE_HEADERS } : HEADER_OBJECTS;
  const schema = { $ref: "#/components/schemas/ErrorBody" };
  const content = { schema, example: { status, code, message: meaning } };
  return { description, "x-codes": names, headers, content: { "application/json": content } };
}

const RATE_HEADERS = {
  "Retry-After": header("Seconds until the next refill."),
  "X-RateLimit-Limit": header("Bucket size."),
  "X-RateLimit-Remaining": header("Always 0 here."),
  "X-RateLimit-Reset": header("Unix timestamp of the refill."),
};
