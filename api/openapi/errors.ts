/** The error shapes of document 1, "Errors", in the interface description. */
import { Type } from "@sinclair/typebox";
import { FAULT_CODES } from "#core/domain/fault.ts";
import { LabelFormat } from "#core/domain/label.ts";
import { TITLES } from "#core/problem.ts";
import type { ErrorStatus } from "./operation.ts";

export const ErrorBody = Type.Object({
  status: Type.Integer({ description: "HTTP status" }),
  code: Type.String({ description: "stable, upper snake case" }),
  message: Type.String(),
});

const Violation = Type.Object({
  path: Type.String({ description: "dotted: `parcels[0].weight`; empty for the whole" }),
  code: Type.String({ description: Object.keys(FAULT_CODES).join(", ") }),
  message: Type.String(),
});

export const ProblemDocument = Type.Object({
  type: Type.String(),
  title: Type.String(),
  status: Type.Integer(),
  code: Type.String({ description: "stable, upper snake case" }),
  detail: Type.String(),
  violations: Type.Optional(Type.Array(Violation)),
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

interface ErrorText {
  readonly description: string;
  readonly code: string;
  readonly message: string;
}

const TEXTS: Readonly<Record<ErrorStatus, ErrorText>> = {
  400: {
    description:
      "MALFORMED_BODY: the body is missing or is not JSON in UTF-8, contains a duplicate key or a key `__proto__`, or has more than 32 levels.",
    code: "MALFORMED_BODY",
    message: "The body is missing or is not valid JSON in UTF-8.",
  },
  401: {
    description: "INVALID_TOKEN; at the token call INVALID_API_KEY.",
    code: "INVALID_TOKEN",
    message: "The access token is missing or not valid.",
  },
  403: {
    description:
      "NO_CHANNEL_CONTEXT, MISSING_SCOPE, KEY_SUSPENDED, PRODUCT_NOT_OWNED, ADDRESS_CHECK_NOT_ENABLED, COMPANY_WIDE_READ_NOT_ENABLED.",
    code: "MISSING_SCOPE",
    message: "The token lacks the scope orders:read.",
  },
  404: {
    description:
      "Missing, or of another channel: SHIPMENT_NOT_FOUND, ORDER_NOT_FOUND, PARCEL_NOT_FOUND, JOB_NOT_FOUND, SANDBOX_NOT_FOUND.",
    code: "ORDER_NOT_FOUND",
    message: "There is no such order.",
  },
  408: {
    description: "BODY_TOO_SLOW: the body did not arrive within 60 s.",
    code: "BODY_TOO_SLOW",
    message: "The body did not arrive within 60 s.",
  },
  409: {
    description:
      "ORDER_EXISTS, NOT_HELD_IN_DEPOT, STOCK_RELEASE_UNDER_WAY, EMAILS_NOT_MANAGED, NOTIFICATION_REPEATED.",
    code: "ORDER_EXISTS",
    message: "The channel has an order with this origin and reference.",
  },
  413: {
    description:
      "BODY_TOO_LARGE: more bytes than the call takes, or a shipment of more than 524288 bytes in a list.",
    code: "BODY_TOO_LARGE",
    message: "At most 65536 bytes.",
  },
  422: {
    description: "VALIDATION_FAILED, PROVIDER_CANNOT_SERVE, CARRIER_REFUSED.",
    code: "VALIDATION_FAILED",
    message: "The request has 1 violation(s).",
  },
  429: {
    description:
      "RATE_LIMITED: honour Retry-After, with exponential backoff. At the token call: too many invalid API keys from one address.",
    code: "RATE_LIMITED",
    message: "The request budget is used up.",
  },
  502: {
    description:
      "CARRIER_UNREACHABLE, CARRIER_UNREADABLE, PROVIDER_UNREACHABLE, PROVIDER_UNREADABLE.",
    code: "PROVIDER_UNREACHABLE",
    message: "The address provider cannot be reached.",
  },
  503: {
    description:
      "STORE_UNAVAILABLE, IMPORT_QUEUE_FULL, NOTIFICATION_NOT_QUEUED, SEARCH_UNSTEADY: retry after Retry-After.",
    code: "STORE_UNAVAILABLE",
    message: "The store is unavailable; nothing was acknowledged.",
  },
};

const VIOLATION = { path: "limit", code: "OUT_OF_RANGE", message: "At most 100." };
const TOLD = { "X-Error-Message": header("The message, in ASCII.") };

function header(description: string) {
  return { description, schema: { type: "string" } };
}

export const errorResponseName = (status: ErrorStatus) => `Error${status}`;

/** `components.responses`: one a status. */
export function errorResponses(): Record<string, object> {
  const statuses = Object.keys(TEXTS).map((status) => Number(status) as ErrorStatus);
  return Object.fromEntries(statuses.map((status) => [errorResponseName(status), shapeOf(status)]));
}

function shapeOf(status: ErrorStatus): object {
  const { description, code, message } = TEXTS[status];
  if (status === 422) {
    const title = TITLES[status];
    const example = { type: "about:blank", title, status, code, detail: message };
    const schema = { $ref: "#/components/schemas/ProblemDocument" };
    const content = { schema, example: { ...example, violations: [VIOLATION] } };
    return { description, content: { "application/problem+json": content } };
  }
  const headers = status === 429 ? { ...TOLD, ...RATE_HEADERS } : TOLD;
  const schema = { $ref: "#/components/schemas/ErrorBody" };
  const content = { schema, example: { status, code, message } };
  return { description, headers, content: { "application/json": content } };
}

const RATE_HEADERS = {
  "Retry-After": header("Seconds until the next refill."),
  "X-RateLimit-Limit": header("Bucket size."),
  "X-RateLimit-Remaining": header("Always 0 here."),
  "X-RateLimit-Reset": header("Unix timestamp of the refill."),
};
