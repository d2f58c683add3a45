import type { Violation } from "./generated/types.gen.ts";

/** An answer of the API that is no success. */
export class WaybillError extends Error {
  override readonly name = "WaybillError";
  readonly status: number;
  /** Stable; every code is explained in the API's reference. */
  readonly code: string;
  /** What is wrong with the request, by path; empty where the code says it all. */
  readonly violations: readonly Violation[];
  /** To quote to whoever runs the service; null if a proxy answered. */
  readonly requestId: string | null;
  /** The whole body: a problem document, or `{status, code, message}`. */
  readonly body: unknown;

  constructor(status: number, body: unknown) {
    const { code, detail, message, violations, requestId } = Object(body) as Problem;
    const [first] = violations ?? [];
    const text = detail ?? message ?? `The API answered ${status}.`;
    super(first === undefined ? text : `${text} ${first.path}: ${first.message}`);
    this.status = status;
    this.code = code ?? "UNKNOWN";
    this.violations = violations ?? [];
    this.requestId = requestId ?? null;
    this.body = body;
  }
}

/** What the API's two kinds of error bodies have; a proxy's has none of it. */
interface Problem {
  readonly code?: string;
  readonly detail?: string;
  readonly message?: string;
  readonly violations?: readonly Violation[];
  readonly requestId?: string;
}
