/** An answer that tells the caller what is wrong. Thrown; every role's app turns it into its own error body. */

import { currentRequestId } from "#core/platform/http/request-id.ts";
import type { ErrorCode, StatusOf } from "./error-catalogue.ts";

export interface ProblemOptions {
  /** Extra members of the problem document, such as `violations`. */
  readonly members?: Readonly<Record<string, unknown>>;
  readonly headers?: Readonly<Record<string, string>>;
  /** Answered as a problem document, also by a role that has a shorter error body. */
  readonly asDocument?: boolean;
}

export class Problem<Code extends ErrorCode = ErrorCode> extends Error {
  readonly members: Readonly<Record<string, unknown>>;
  readonly headers: Readonly<Record<string, string>>;
  readonly asDocument: boolean;

  /**
   * @param status HTTP status
   * @param code listed in the catalogue
   * @param detail one sentence for the caller; never a secret or personal data
   */
  constructor(
    readonly status: StatusOf<Code>,
    readonly code: Code,
    readonly detail: string,
    options: ProblemOptions = {},
  ) {
    super(detail);
    this.members = options.members ?? {};
    this.headers = options.headers ?? {};
    this.asDocument = options.asDocument ?? false;
  }
}

/**
 * RFC 7807 problem document with a stable `code`.
 * @param type where the code is explained
 */
export function problemResponse(
  { status, code, detail, members, headers }: Problem,
  extraHeaders: Readonly<Record<string, string>> = {},
  type = "about:blank",
): Response {
  const body = { type, title: TITLES[status] ?? "Error", status, code, detail };
  const requestId = currentRequestId();
  return new Response(JSON.stringify({ ...body, ...members, requestId }), {
    status,
    headers: { "content-type": "application/problem+json", ...extraHeaders, ...headers },
  });
}

export const TITLES: Readonly<Record<number, string>> = {
  400: "Bad Request",
  401: "Unauthorized",
  403: "Forbidden",
  404: "Not Found",
  405: "Method Not Allowed",
  406: "Not Acceptable",
  408: "Request Timeout",
  409: "Conflict",
  412: "Precondition Failed",
  413: "Payload Too Large",
  415: "Unsupported Media Type",
  422: "Unprocessable Content",
  423: "Locked",
  429: "Too Many Requests",
  500: "Internal Server Error",
  502: "Bad Gateway",
  503: "Service Unavailable",
};
