/** Errors of labels: problem documents (document 1, "Errors"). */
import { type Static, type TSchema, Type } from "@sinclair/typebox";
import { ProblemDocument } from "#api/http/error-response.ts";
import { jsonBody } from "#api/http/read-json.ts";
import { LabelFormat } from "#core/merchants/rules/label.ts";
import type { ErrorCode, StatusOf } from "#core/platform/errors/error-catalogue.ts";
import { Problem } from "#core/platform/errors/problem.ts";
import type { CarrierAnswer } from "./label-carrier.ts";

/** What the carrier refused of a confirmation. */
export const RefusedLabels = Type.Array(
  Type.Object({ labelId: Type.Integer(), code: Type.String(), message: Type.String() }),
  { description: "labels that the carrier refused, and LABEL_VOIDED for those that were voided" },
);

export const LabelProblem = Type.Object({
  ...ProblemDocument.properties,
  errorLabel: Type.Optional(
    Type.Object(
      {
        format: LabelFormat,
        label: Type.String({ description: "PDF as base64 or ZPL as plain text, 10x15 cm" }),
      },
      {
        description:
          "where the channel has it switched on and the carrier refuses, cannot be reached or answers unreadably",
      },
    ),
  ),
  errors: Type.Optional(RefusedLabels),
  alreadyConfirmedIds: Type.Optional(Type.Array(Type.Integer())),
  notFoundIds: Type.Optional(Type.Array(Type.Integer())),
});

/** Statuses of problem documents at the calls of labels. */
export const LABEL_PROBLEMS = { statuses: [400, 422, 423, 502], schema: LabelProblem } as const;

type Failure = Exclude<CarrierAnswer<unknown>, { readonly kind: "ok" }>;

/** What the merchant is answered, and what the error label says. */
export interface Failed {
  readonly status: 422 | 502;
  readonly code: "CARRIER_REFUSED" | "CARRIER_UNREADABLE" | "CARRIER_UNREACHABLE";
  readonly message: string;
}

export function failed(failure: Failure): Failed {
  if (failure.kind === "refused") {
    return { status: 422, code: "CARRIER_REFUSED", message: failure.message };
  }
  return failure.unreadable
    ? { status: 502, code: "CARRIER_UNREADABLE", message: "The carrier answered unreadably." }
    : { status: 502, code: "CARRIER_UNREACHABLE", message: "The carrier cannot be reached." };
}

export function labelProblem<Code extends ErrorCode>(
  status: StatusOf<Code>,
  code: Code,
  detail: string,
  members: Readonly<Record<string, unknown>> = {},
  headers: Readonly<Record<string, string>> = {},
): Problem<Code> {
  return new Problem(status, code, detail, { members, headers, asDocument: true });
}

export function unknownCarrier(): Problem {
  const detail = "The carrier code is not known or not available on this channel.";
  return labelProblem(400, "UNKNOWN_CARRIER", detail);
}

export function labelNotFound(): Problem {
  return new Problem(404, "LABEL_NOT_FOUND", "There is no such label.");
}

/** A body that cannot be read is a label error too. */
export function labelBody<T extends TSchema>(schema: T, example: Static<T>, limitBytes?: number) {
  const body = jsonBody(schema, example, limitBytes);
  return { ...body, read: (request: Request) => body.read(request).catch(refuseAsLabel) };
}

function refuseAsLabel(error: unknown): never {
  if (!(error instanceof Problem) || error.status !== 400) throw error;
  throw labelProblem(400, error.code, error.detail, error.members);
}
