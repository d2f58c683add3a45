/** Calls of the panel's HTTP API with the session's cookie. */
import { limit } from "#core/platform/schema/limit.ts";
import { forgetGuest } from "./guest.ts";
import type { Reply } from "./routes.ts";

export interface Violation {
  readonly path: string;
  readonly code: string;
  readonly message: string;
}

/** A file may be long under way, anything else is not. */
const ANSWER_WAIT_MS = limit(
  60_000,
  "wait of a panel page for an answer",
  "the page says that none came",
);
/** No answer came: to a question, and to something that may have been done all the same. */
export const UNREACHABLE = "UNREACHABLE";
const UNANSWERED = "UNANSWERED";

interface ProblemMembers {
  readonly violations?: readonly Violation[];
  readonly changedBy?: string;
  readonly changedAt?: string | null;
}

/** An answer that is no success: the problem document of the API, or 0 when no answer came. */
export class ApiProblem extends Error {
  readonly status: number;
  readonly code: string;
  readonly violations: readonly Violation[];
  /** Of a conflict of versions: who changed it, and when (ISO 8601). */
  readonly changedBy: string;
  readonly changedAt: string | null;

  constructor(status: number, code: string, detail: string, members: ProblemMembers = {}) {
    super(detail);
    this.status = status;
    this.code = code;
    this.violations = members.violations ?? [];
    this.changedBy = members.changedBy ?? "";
    this.changedAt = members.changedAt ?? null;
  }
}

type Params = Readonly<Record<string, string | number>>;
export type Query = Readonly<Record<string, string | number | undefined | null>>;

/**
 * The version that a change is made to: null = the entity must not exist yet, absent = any. The new version replaces it, for the next
 * change from the same form.
 */
export interface Match {
  version?: string | null | undefined;
}

export interface CallOptions {
  readonly match?: Match;
  readonly params?: Params;
  readonly query?: Query;
  /** A file is sent as it is, anything else as JSON. */
  readonly body?: unknown;
  readonly signal?: AbortSignal;
}

/** @throws {ApiProblem} */
export async function call<
  Method extends "get" | "post" | "put" | "patch" | "delete",
  Path extends string,
>(method: Method, path: Path, options: CallOptions = {}): Promise<Reply<Method, Path>> {
  const { response, done } = await ask(method, path, options);
  const text = await response.text().catch((error: unknown) => {
    throw noAnswer(method, options, error);
  });
  done();
  return (text === "" ? null : JSON.parse(text)) as Reply<Method, Path>;
}

/** For an answer that is not read as JSON. @throws {ApiProblem} */
export async function send(
  method: string,
  path: string,
  options: CallOptions = {},
): Promise<Response> {
  const { response, done } = await ask(method, path, options);
  done();
  return response;
}

interface Asked {
  readonly response: Response;
  /** To be called when the answer is there. */
  readonly done: () => void;
}

async function ask(method: string, path: string, options: CallOptions): Promise<Asked> {
  const { body } = options;
  const address = addressOf(path, options);
  const isFile = body instanceof Blob;
  const text = body === undefined || isFile ? undefined : JSON.stringify(body);
  const headers = new Headers();
  if (body !== undefined) headers.set("content-type", isFile ? "text/csv" : "application/json");
  const request = `${address} ${text}`;
  const done = () => void unanswered.delete(request);
  if (method === "post" && !isFile) headers.set("idempotency-key", keyOf(request));
  const { match = {} } = options;
  if (match.version === null) headers.set("if-none-match", "*");
  if (typeof match.version === "string") headers.set("if-match", `"${match.version}"`);
  const sent = isFile ? body : text;
  const response = await fetch(address, {
    method: method.toUpperCase(),
    signal: waitOf(options),
    headers,
    ...(sent !== undefined && { body: sent }),
  }).catch((error: unknown) => {
    if (options.signal?.aborted) done();
    throw noAnswer(method, options, error);
  });
  if (response.ok) {
    if (method !== "get") forgetGuest();
    const tag = response.headers.get("etag");
    if (tag !== null) match.version = tag.slice(1, -1);
    return { response, done };
  }
  // It may still be under way, or a proxy may have given up waiting.
  if (response.status < 500 && response.status !== 409) done();
  throw await problemOf(response);
}

/** Keys of requests that no answer has come to, by the request: it may have been carried out, and is so once. */
const unanswered = new Map<string, string>();

function keyOf(request: string): string {
  const known = unanswered.get(request);
  if (known !== undefined) return known;
  // Not a UUID: a page that comes without TLS cannot make one.
  const key = [...crypto.getRandomValues(new Uint32Array(4))].join("-");
  unanswered.set(request, key);
  return key;
}

/** What was called off by its asker stays that. */
function noAnswer(method: string, { signal }: CallOptions, error: unknown): unknown {
  if (signal?.aborted) return error;
  return new ApiProblem(0, method === "get" ? UNREACHABLE : UNANSWERED, "No answer came.");
}

function waitOf({ body, signal }: CallOptions): AbortSignal | null {
  const waits = [signal, body instanceof Blob ? undefined : AbortSignal.timeout(ANSWER_WAIT_MS)];
  const given = waits.filter((one) => one !== undefined);
  return given.length === 0 ? null : AbortSignal.any(given);
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
  // A proxy in front of the panel answers in its own words, or in none.
  const detail = typeof body?.["detail"] === "string" ? body["detail"] : `HTTP ${response.status}`;
  const { violations, changedBy, changedAt } = (body ?? {}) as Record<string, unknown>;
  return new ApiProblem(response.status, code, detail, {
    ...(Array.isArray(violations) && { violations: violations as Violation[] }),
    ...(typeof changedBy === "string" && { changedBy }),
    ...(typeof changedAt === "string" && { changedAt }),
  });
}
