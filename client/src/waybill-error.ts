/** An answer of the API that is no success. */
export class WaybillError extends Error {
  override readonly name = "WaybillError";
  readonly status: number;
  /** Stable; every code is explained in the API's reference. */
  readonly code: string;
  /** The whole body: a problem document, or `{status, code, message}`. */
  readonly body: unknown;

  constructor(status: number, body: unknown) {
    const { code, detail, message } = Object(body) as Record<string, unknown>;
    const text = typeof detail === "string" ? detail : message;
    super(typeof text === "string" ? text : `The API answered ${status}.`);
    this.status = status;
    this.code = typeof code === "string" ? code : "UNKNOWN";
    this.body = body;
  }
}

/** The data of an answer of `api.GET` and its like. @throws {WaybillError} */
export function unwrap<T>(answer: {
  readonly data?: T;
  readonly error?: unknown;
  readonly response: Response;
}): T {
  const { data, error, response } = answer;
  if (!response.ok) throw new WaybillError(response.status, error);
  return data as T;
}
