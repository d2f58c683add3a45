/** Errors of labels: problem documents (document 1, "Errors"). */
import { Problem } from "#core/problem.ts";
import type { CarrierAnswer } from "./label-carrier.ts";

type Failure = Exclude<CarrierAnswer<unknown>, { readonly kind: "ok" }>;

/** What the merchant is answered, and what the error label says. */
export interface Failed {
  readonly status: 422 | 502;
  readonly code: string;
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

export function labelProblem(
  status: number,
  code: string,
  detail: string,
  members: Readonly<Record<string, unknown>> = {},
  headers: Readonly<Record<string, string>> = {},
): Problem {
  return new Problem(status, code, detail, { members, headers, asDocument: true });
}

export function unknownCarrier(): Problem {
  const detail = "The carrier code is not known or not available on this channel.";
  return labelProblem(400, "UNKNOWN_CARRIER", detail);
}

/** A body that cannot be read is a label error too. */
export function asLabelProblem(error: unknown): unknown {
  if (!(error instanceof Problem) || error.status !== 400) return error;
  return labelProblem(400, error.code, error.detail, error.members);
}
