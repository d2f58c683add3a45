/** Calls of the panel's HTTP API with the session's cookie. */
import type { Reply } from "./routes.ts";

interface Violation {
  readonly path: string;
  readonly code: string;
  readonly message: string;
}

/** An answer that is no success: the problem document of the API, or 0 when no answer came. */
export class ApiProblem extends Error {
  readonly status: number;
  readonly code: string;
  readonly violations: readonly Violation[];

  constructor(status: number, code: string, detail: string, violations: readonly Violation[] = []) {
    super(detail);
    this.status = status;
    this.code = code;
    this.violations = violations;
  }
}

type Params = Readonly<Record<string, string | number>>;
export type Query = Readonly<Record<string, string | number | undefined | null>>;

export interface CallOptions {
  readonly params?: Params;
  readonly query?: Query;
  readonly body?: unknown;
  readonly signal?: AbortSignal;
}

/** @throws {ApiProblem} */
export async function call<
  Method extends "get" | "post" | "put" | "patch" | "delete",
  Path extends string,
>(method: Method, path: Path, options: CallOptions = {}): Promise<Reply<Method, Path>> {
  const response = await send(method, path, options);
  const text = await response.text();
  return (text === "" ? null : JSON.parse(text)) as Reply<Method, Path>;
}

/** @throws {ApiProblem} */
export async function send(
  method: string,
  path: string,
  options: CallOptions = {},
): Promise<Response> {
  const { body, signal } = options;
  const response = await fetch(addressOf(path, options), {
    method: method.toUpperCase(),
    ...(signal && { signal }),
    ...(body !== undefined && {
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    }),
  }).catch((error: unknown) => {
    if (signal?.aborted) throw error;
    throw new ApiProblem(0, "UNREACHABLE", "The server does not answer.");
  });
  if (response.ok) return response;
  throw await problemOf(response);
}

function addressOf(path: string, { params = {}, query = {} }: CallOptions): string {
  const filled = path.replace(/:(\w+)/g, (_, name: string) =>
    encodeURIComponent(params[name] ?? ""),
  );
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== null && value !== "") search.set(name, String(value));
  }
  return search.size === 0 ? filled : `${filled}?${search}`;
}

async function problemOf(response: Response): Promise<ApiProblem> {
  const body = (await response.json().catch(() => null)) as Partial<Record<string, unknown>> | null;
  const code = typeof body?.["code"] === "string" ? body["code"] : "UNKNOWN";
  const detail = typeof body?.["detail"] === "string" ? body["detail"] : response.statusText;
  const violations = Array.isArray(body?.["violations"]) ? (body["violations"] as Violation[]) : [];
  return new ApiProblem(response.status, code, detail, violations);
}
