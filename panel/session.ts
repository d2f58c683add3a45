/**
 * Log-in and log-out: the login page for browsers, `/panel/api/session` for programs. Both take `PANEL_TOKEN` and give the
 * cookie of a session for a working day.
 */

import { join } from "node:path";
import { type Static, Type } from "@sinclair/typebox";
import { compileSchema } from "#core/domain/schema/compile-schema.ts";
import { publicRoutes } from "#core/http/access.ts";
import { peerOfConnection, subscriberOf } from "#core/http/peer.ts";
import { readBody } from "#core/http/read-body.ts";
import { Problem } from "#core/problem.ts";
import { endSession, openSession, SESSION_MS } from "#core/redis/config/sessions.ts";
import { takeCourierRate } from "#core/redis/intake/courier-rate.ts";
import { html, pageResponse } from "#panel/html.ts";
import {
  cookieOf,
  credentialOf,
  isOperatorToken,
  isOwnPage,
  loginPathFor,
  type OperatorDeps,
  originOf,
  sessionIdOf,
  unknownOperator,
} from "#panel/operators.ts";
import { readJson } from "#panel/read-json.ts";

const STYLE = join(import.meta.dir, "style.css");
/** Tries to log in from one address. */
const LOGIN_RATE = { perSecond: 0.2, burst: 10 };
const LOGIN_LIMIT_BYTES = 4_096;
/** Where a log-in leads when no page was asked for. */
const FIRST_PAGE = "/panel/explorer";

/** An operator's token, or an account's e-mail address and password. */
const Credentials = Type.Union([
  Type.Object({ token: Type.String() }),
  Type.Object({ email: Type.String(), password: Type.String() }),
]);
type Credentials = Static<typeof Credentials>;
const checker = compileSchema(Credentials);

type Server = Bun.Server<unknown> | null;

/** The routes are public: this is where callers authenticate. */
export function sessionRoutes(deps: OperatorDeps) {
  return publicRoutes("session")
    .get("/panel/style.css", () => {
      const headers = { "content-type": "text/css; charset=utf-8", "cache-control": "max-age=300" };
      return new Response(Bun.file(STYLE), { headers });
    })
    .get("/panel/login", ({ request }) => loginPage(200, null, nextOf(request)))
    .post("/panel/login", ({ request, server }) => logInByForm(deps, request, server), {
      parse: "none",
    })
    .post(
      "/panel/logout",
      async ({ request }) => seeOther("/panel/login", await logOut(deps, request)),
      { parse: "none" },
    )
    .post("/panel/api/session", ({ request, server }) => logInByCall(deps, request, server), {
      parse: "none",
      detail: { summary: "Open a session: {token}, or {email, password} of an account" },
    })
    .delete("/panel/api/session", async ({ request }) => noContent(await logOut(deps, request)), {
      parse: "none",
      detail: { summary: "End the session of the cookie" },
    });
}

async function logInByForm(deps: OperatorDeps, request: Request, server: Server) {
  const next = nextOf(request);
  try {
    await admitLogin(deps, request, server);
    const token = new URLSearchParams(await readForm(request)).get("token") ?? "";
    return seeOther(next, await logIn(deps, { token }));
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    if (error.status === 429) return loginPage(429, "Too many tries. Wait a minute.", next);
    if (error.status === 401) return loginPage(401, "This is not the operator's token.", next);
    throw error;
  }
}

/** The page that was asked for before the log-in. */
function nextOf({ url }: Request): string {
  const next = new URL(url).searchParams.get("next") ?? FIRST_PAGE;
  return isOwnPage(next) ? next : FIRST_PAGE;
}

async function logInByCall(deps: OperatorDeps, request: Request, server: Server) {
  await admitLogin(deps, request, server);
  const credentials = await readJson(request, LOGIN_LIMIT_BYTES);
  if (!checker.check(credentials)) {
    throw new Problem(422, "INVALID_BODY", "Send either a token, or an email and a password.");
  }
  return noContent(await logIn(deps, credentials));
}

/**
 * All visitors behind a proxy would share its address, so a trusted proxy's `X-Forwarded-For` counts.
 * @throws {Problem} 403 from a page of another site, 429
 */
async function admitLogin(deps: OperatorDeps, request: Request, server: Server): Promise<void> {
  refuseOtherSites(deps, request);
  const { redis, live, config } = deps;
  await live.followTestClock();
  const subscriber = subscriberOf(peerOfConnection(request, server, config).address);
  const verdict = await takeCourierRate(redis, `login ${subscriber}`, LOGIN_RATE, live.now());
  if (verdict.allowed) return;
  const seconds = Math.max(1, Math.ceil(verdict.retryAfterMs / 1000));
  throw new Problem(429, "RATE_LIMITED", `Too many log-ins; retry after ${seconds} s.`, {
    headers: { "retry-after": String(seconds) },
  });
}

/**
 * There are no accounts yet, so an e-mail address gets the same answer as a wrong token.
 * @returns the cookie
 * @throws {Problem} 401
 */
async function logIn(deps: OperatorDeps, credentials: Credentials): Promise<string> {
  const { redis, live } = deps;
  if (!("token" in credentials && isOperatorToken(deps, credentials.token))) {
    throw unknownOperator();
  }
  const id = await openSession(redis, credentialOf(deps), live.now());
  return cookieOf(deps, id, SESSION_MS / 1000);
}

/**
 * Anyone with the cookie may end its session.
 * @returns a header that deletes the cookie
 */
async function logOut(deps: OperatorDeps, request: Request): Promise<string> {
  refuseOtherSites(deps, request);
  await endSession(deps.redis, sessionIdOf(deps, request));
  return cookieOf(deps, "", 0);
}

/** @throws {Problem} 403: another site must neither log our visitors in nor out */
function refuseOtherSites(deps: OperatorDeps, request: Request): void {
  if (originOf(deps, request) !== "other") return;
  throw new Problem(403, "CROSS_SITE", "Log-in and log-out work from the panel's own pages.");
}

/** @throws {Problem} 400, 408, 413 */
async function readForm(request: Request): Promise<string> {
  return new TextDecoder().decode(await readBody(request, LOGIN_LIMIT_BYTES));
}

function seeOther(location: string, cookie: string): Response {
  const headers = { location, "set-cookie": cookie, "cache-control": "no-store" };
  return new Response(null, { status: 303, headers });
}

function noContent(cookie: string): Response {
  const headers = { "set-cookie": cookie, "cache-control": "no-store" };
  return new Response(null, { status: 204, headers });
}

function loginPage(status: number, fault: string | null, next: string): Response {
  const body = html`<main>
<h1>Waybill</h1>
${fault === null ? null : html`<p class="fault" role="alert">${fault}</p>`}
<form method="post" action="${loginPathFor(next)}">
<input name="username" value="operator" autocomplete="username" hidden>
<label>Operator's token
<input name="token" type="password" required autocomplete="current-password" autofocus>
</label>
<button>Log in</button>
</form>
</main>`;
  return pageResponse("Log in", body, { status });
}
