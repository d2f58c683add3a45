/**
 * ClickHouse's HTTP interface, as far as drivers and BI tools speak it: a statement in the address or the body, the user in
 * `Authorization: Basic`, `X-ClickHouse-User` or the address, and errors with their code in a header. What a statement may do is decided
 * by SQL access; settings and parameters of a request have no effect.
 */
import { Readable } from "node:stream";
import type { SqlAccess } from "#analytics/sql-access.ts";
import { Problem } from "#core/platform/errors/problem.ts";
import { publicRoutes } from "#core/platform/http/access.ts";
import { readBounded } from "#core/platform/http/body/read-body.ts";
import { limit } from "#core/platform/schema/limit.ts";
import { hashToken } from "#core/platform/secrets/secrets.ts";
import { SIDE_BY_SIDE } from "./statement-places.ts";

/** Name of the user on a server too (`read-only-user.sql`). */
export const SQL_USER = "waybill_reader";
/** A statement has at most 20,000 characters, as in the panel. */
export const STATEMENT_CHARACTERS = limit(
  20_000,
  "a statement to the SQL port, in characters",
  "refused",
);
export const STATEMENT_BODY_BYTES = 4 * STATEMENT_CHARACTERS;

interface Exception {
  readonly status: number;
  /** ClickHouse's number and name. */
  readonly code: number;
  readonly type: string;
  readonly message: string;
}

/** By our codes. */
const EXCEPTIONS: ReadonlyMap<string, Omit<Exception, "message">> = new Map([
  ["UNAUTHORIZED", { status: 403, code: 516, type: "AUTHENTICATION_FAILED" }],
  ["SQL_REFUSED", { status: 403, code: 497, type: "ACCESS_DENIED" }],
  ["SQL_BUSY", { status: 503, code: 202, type: "TOO_MANY_SIMULTANEOUS_QUERIES" }],
  ["BODY_TOO_LARGE", { status: 400, code: 62, type: "SYNTAX_ERROR" }],
  ["ANALYTICS_UNAVAILABLE", { status: 503, code: 210, type: "NETWORK_ERROR" }],
  ["SQL_DOOR_SHUT", { status: 503, code: 497, type: "ACCESS_DENIED" }],
]);

export function clickhouseRoutes(access: SqlAccess, password: string) {
  const expected = { user: hashToken(SQL_USER), password: hashToken(password) };
  let turn = 0;

  async function answer(request: Request): Promise<Response> {
    const { searchParams } = new URL(request.url);
    const queryId = searchParams.get("query_id") ?? crypto.randomUUID();
    try {
      const given = credentialsOf(request, searchParams);
      const isUser = hashToken(given.user) === expected.user;
      const isPassword = hashToken(given.password) === expected.password;
      if (!isUser || !isPassword) {
        throw new Problem(401, "UNAUTHORIZED", `${SQL_USER}: the user or the password is wrong.`);
      }
      const statement = await statementOf(request, searchParams);
      const wanted =
        request.headers.get("x-clickhouse-format") ??
        searchParams.get("default_format") ??
        "TabSeparated";
      turn = (turn + 1) % SIDE_BY_SIDE;
      const { stream, format } = await access.askInFormat(statement, wanted, `port ${turn}`);
      return new Response(Readable.toWeb(stream) as ReadableStream, {
        headers: { ...headersOf(queryId), "x-clickhouse-format": format },
      });
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      return exceptionResponse(exceptionOf(error), queryId);
    }
  }

  return publicRoutes("clickhouse")
    .get("/ping", () => new Response("Ok.\n"))
    .get("/", ({ request }) =>
      new URL(request.url).searchParams.has("query") ? answer(request) : new Response("Ok.\n"),
    )
    .post("/", ({ request }) => answer(request), { parse: "none" });
}

function credentialsOf({ headers }: Request, params: URLSearchParams) {
  const basic = /^Basic ([A-Za-z0-9+/=]+)$/i.exec(headers.get("authorization") ?? "")?.[1];
  if (basic !== undefined) {
    const text = Buffer.from(basic, "base64").toString("utf8");
    const colon = text.indexOf(":");
    return { user: text.slice(0, colon), password: text.slice(colon + 1) };
  }
  return {
    user: headers.get("x-clickhouse-user") ?? params.get("user") ?? "",
    password: headers.get("x-clickhouse-key") ?? params.get("password") ?? "",
  };
}

/** @throws {Problem} 422 */
async function statementOf(request: Request, params: URLSearchParams): Promise<string> {
  const bytes = request.method === "GET" ? new Uint8Array() : await bodyOf(request);
  const body = new TextDecoder().decode(bytes);
  const query = params.get("query");
  const statement = query === null ? body : `${query}\n${body}`;
  if (statement.length > STATEMENT_CHARACTERS) throw tooLong();
  return statement;
}

async function bodyOf(request: Request): Promise<Uint8Array> {
  if (request.headers.has("content-encoding")) {
    throw new Problem(422, "SQL_REFUSED", "A compressed statement is not allowed here.");
  }
  return (await readBounded(request, STATEMENT_BODY_BYTES)) ?? Promise.reject(tooLong());
}

function tooLong(): Problem {
  const detail = `A statement of more than ${STATEMENT_CHARACTERS} characters is not allowed here.`;
  return new Problem(422, "SQL_REFUSED", detail);
}

/** `UNKNOWN_IDENTIFIER: Unknown expression …`, as SQL access words it. */
const FAILED = /^([A-Z][A-Z0-9_]+): ([\s\S]*)$/;

function exceptionOf({ code, detail }: Problem): Exception {
  const known = EXCEPTIONS.get(code);
  if (known) return { ...known, message: detail };
  const [, type = "UNKNOWN_EXCEPTION", message = detail] = FAILED.exec(detail) ?? [];
  return { status: 400, code: 1002, type, message };
}

function exceptionResponse({ status, code, type, message }: Exception, queryId: string): Response {
  return new Response(`Code: ${code}. DB::Exception: ${message} (${type})\n`, {
    status,
    headers: { ...headersOf(queryId), "x-clickhouse-exception-code": String(code) },
  });
}

/** Nobody counts rows; the JDBC driver reads an answer only where this says that it has any, and then until its end. */
const SUMMARY = JSON.stringify({ read_rows: "0", read_bytes: "0", result_rows: "1" });

function headersOf(queryId: string) {
  return {
    "content-type": "text/plain; charset=UTF-8",
    "cache-control": "no-store",
    "x-clickhouse-query-id": queryId.replace(/[^\x20-\x7e]/g, "").slice(0, 100),
    "x-clickhouse-timezone": "UTC",
    "x-clickhouse-server-display-name": "waybill",
    "x-clickhouse-summary": SUMMARY,
  };
}
