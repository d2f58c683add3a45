/**
 * Log-in and log-out: a login page without scripts, which takes `PANEL_TOKEN`, and `/panel/api/session` for programs and the
 * application, which takes an account's password too. Both give the cookie of a session for a working day.
 */

import { Type } from "@sinclair/typebox";
import { endSession } from "#core/accounts/store/sessions.ts";
import { Problem } from "#core/platform/errors/problem.ts";
import { publicRoutes, route } from "#core/platform/http/access.ts";
import { readBody } from "#core/platform/http/body/read-body.ts";
import { html, htmlPage } from "#core/platform/http/html.ts";
import { ownFile } from "#core/platform/process/own-files.ts";
import { compileSchema } from "#core/platform/schema/compile-schema.ts";
import { limit } from "#core/platform/schema/limit.ts";
import type { PanelDeps } from "#panel/server/caller.ts";
import { uncheckedBody } from "#panel/server/http/checked-body.ts";
import { cookieOf, sessionIdOf } from "./cookies.ts";
import { admitLogin, logInByPassword, logInByToken, refuseOtherSites } from "./log-in.ts";

const STYLE = ownFile("panel/server/pages/style.css");
export const LOGIN_LIMIT_BYTES = limit(4_096, "body of a log-in", "413");
/** Where a log-in by the form leads: the application. */
const FIRST_PAGE = "/";

export const Credentials = Type.Union([
  Type.Object({ token: Type.String({ description: "of the operator: PANEL_TOKEN" }) }),
  Type.Object({
    email: Type.String(),
    password: Type.String(),
    code: Type.Optional(
      Type.String({ description: "of the second factor, where the account has one" }),
    ),
  }),
]);
const checker = compileSchema(Credentials);
const CREDENTIALS = uncheckedBody(
  Credentials,
  { email: "dev@example.com", password: "correct horse battery staple" },
  LOGIN_LIMIT_BYTES,
);

type Server = Bun.Server<unknown> | null;

/** The routes are public: this is where callers authenticate. */
export function sessionRoutes(deps: PanelDeps) {
  return publicRoutes("session")
    .get("/panel/style.css", () => {
      const headers = { "content-type": "text/css; charset=utf-8", "cache-control": "max-age=300" };
      return new Response(Bun.file(STYLE), { headers });
    })
    .get("/panel/login", () => loginPage(200, null))
    .post("/panel/login", ({ request, server }) => logInByForm(deps, request, server), {
      parse: "none",
    })
    .post(
      "/panel/logout",
      async ({ request }) => seeOther("/panel/login", await logOut(deps, request)),
      { parse: "none" },
    )
    .post(
      "/panel/api/session",
      ({ request, server }) => logInByCall(deps, request, server),
      route({
        summary: "Open a session: {token}, or {email, password, code} of an account",
        body: CREDENTIALS,
        answers: { 204: { description: "the session cookie" } },
        errors: ["UNKNOWN_OPERATOR", "TOTP_REQUIRED", "CROSS_SITE", "RATE_LIMITED", "LOGINS_BUSY"],
      }),
    )
    .delete(
      "/panel/api/session",
      async ({ request }) => noContent(await logOut(deps, request)),
      route({
        summary: "End the session of the cookie",
        answers: { 204: { description: "ended" } },
        errors: ["CROSS_SITE"],
      }),
    );
}

async function logInByForm(deps: PanelDeps, request: Request, server: Server) {
  try {
    const admitted = await admitLogin(deps, request, server);
    const token = new URLSearchParams(await readForm(request)).get("token") ?? "";
    return seeOther(FIRST_PAGE, await logInByToken(deps, admitted, token));
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    if (error.status === 429) return loginPage(429, "Too many tries. Wait a minute.");
    if (error.status === 401) return loginPage(401, "This is not the operator's token.");
    throw error;
  }
}

async function logInByCall(deps: PanelDeps, request: Request, server: Server) {
  const admitted = await admitLogin(deps, request, server);
  const credentials = await CREDENTIALS.read(request);
  if (!checker.check(credentials)) {
    throw new Problem(422, "INVALID_BODY", "Send either a token, or an email and a password.");
  }
  const cookie =
    "token" in credentials
      ? await logInByToken(deps, admitted, credentials.token)
      : await logInByPassword(deps, admitted, credentials);
  return noContent(cookie);
}

/**
 * Anyone with the cookie may end its session.
 * @returns a header that deletes the cookie
 */
async function logOut(deps: PanelDeps, request: Request): Promise<string> {
  refuseOtherSites(deps, request);
  await endSession(deps.redis, sessionIdOf(deps, request));
  return cookieOf(deps, "", 0);
}

/** @throws {Problem} 400, 408, 413 */
async function readForm(request: Request): Promise<string> {
  return new TextDecoder().decode(await readBody(request, LOGIN_LIMIT_BYTES));
}

function seeOther(location: string, cookie: string): Response {
  const headers = { location, "set-cookie": cookie, "cache-control": "no-store" };
  return new Response(null, { status: 303, headers });
}

export function noContent(cookie: string): Response {
  const headers = { "set-cookie": cookie, "cache-control": "no-store" };
  return new Response(null, { status: 204, headers });
}

/** Nothing from anywhere else, no scripts, no frames. */
const LOGIN_POLICY =
  "default-src 'none'; style-src 'self'; img-src data:; form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

function loginPage(status: number, fault: string | null): Response {
  const body = html`<main>
<h1>Waybill</h1>
${fault === null ? null : html`<p class="fault" role="alert">${fault}</p>`}
<form method="post" action="/panel/login">
<input name="username" value="operator" autocomplete="username" hidden>
<label>Operator's token
<input name="token" type="password" required autocomplete="current-password" autofocus>
</label>
<button>Log in</button>
</form>
</main>`;
  const style = html`<link rel="stylesheet" href="/panel/style.css">`;
  const headers = {
    "content-type": "text/html; charset=utf-8",
    "content-security-policy": LOGIN_POLICY,
    "cache-control": "no-store",
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
  };
  return new Response(htmlPage("Log in · Waybill", body, style), { status, headers });
}
