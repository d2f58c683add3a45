/**
 * Operators in a browser: the login page takes `PANEL_TOKEN` once and gives a cookie for the working day. Nothing is kept
 * on our side: the cookie is signed with a key made of the token, so a new token ends all sessions.
 */
import { createHmac, timingSafeEqual } from "node:crypto";
import { join } from "node:path";
import { Elysia } from "elysia";
import { Problem } from "#core/problem.ts";
import { takeCourierRate } from "#core/redis/courier-rate.ts";
import type { Runtime } from "#core/runtime.ts";
import { authorizeOperator } from "#panel/authorize.ts";
import { html, pageResponse } from "#panel/html.ts";

const STYLE = join(import.meta.dir, "style.css");
const COOKIE = "waybill_session";
const SESSION_MS = 12 * 3_600_000;
/** Tries to log in from one address. */
const LOGIN_RATE = { perSecond: 0.2, burst: 10 };
const FORM_LENGTH = 4_096;
const READING = new Set(["GET", "HEAD"]);

function mac(panelToken: string, expiresMs: number): string {
  return createHmac("sha256", `waybill session ${panelToken}`).update(`${expiresMs}`).digest("hex");
}

function cookieOf(request: Request): string {
  const pairs = (request.headers.get("cookie") ?? "").split(/; */);
  return pairs.find((pair) => pair.startsWith(`${COOKIE}=`))?.slice(COOKIE.length + 1) ?? "";
}

export function isSignedIn(request: Request, panelToken: string, nowMs: number): boolean {
  const [expires = "", given = ""] = cookieOf(request).split(".");
  if (!/^\d{13}$/.test(expires) || Number(expires) <= nowMs) return false;
  const expected = Buffer.from(mac(panelToken, Number(expires)));
  const actual = Buffer.from(given);
  return actual.length === expected.length && timingSafeEqual(actual, expected);
}

/**
 * Lets in who has the bearer token or a session; what a session changes must come from our own pages.
 * @throws {Problem} 401, 403
 */
export function authorizeCall(request: Request, panelToken: string, nowMs: number): void {
  if (request.headers.has("authorization") || !isSignedIn(request, panelToken, nowMs)) {
    authorizeOperator(request.headers.get("authorization"), panelToken);
    return;
  }
  const site = request.headers.get("sec-fetch-site");
  if (READING.has(request.method) || site === "same-origin") return;
  throw new Problem(403, "CROSS_SITE", "A session works from the panel's own pages only.");
}

export function sessionRoutes({ config, secrets, redis, live }: Runtime) {
  const isSecure = config.publicUrl?.startsWith("https:") ?? false;
  const attributes = `Path=/panel; HttpOnly; SameSite=Strict${isSecure ? "; Secure" : ""}`;

  async function logIn(request: Request, address: string): Promise<Response> {
    const verdict = await takeCourierRate(redis, `login ${address}`, LOGIN_RATE, live.now());
    if (!verdict.allowed) return loginPage(429, "Too many tries. Wait a minute.");
    const token = new URLSearchParams(await formOf(request)).get("token") ?? "";
    try {
      authorizeOperator(`Bearer ${token}`, secrets.panelToken);
    } catch {
      return loginPage(401, "This is not the operator's token.");
    }
    const expiresMs = live.now() + SESSION_MS;
    const value = `${expiresMs}.${mac(secrets.panelToken, expiresMs)}`;
    const cookie = `${COOKIE}=${value}; Max-Age=${SESSION_MS / 1000}; ${attributes}`;
    return seeOther("/panel/explorer", cookie);
  }

  return new Elysia({ name: "session" })
    .get("/panel/style.css", () => {
      const headers = { "content-type": "text/css; charset=utf-8", "cache-control": "max-age=300" };
      return new Response(Bun.file(STYLE), { headers });
    })
    .get("/panel/login", () => loginPage(200, null))
    .post(
      "/panel/login",
      ({ request, server }) => logIn(request, server?.requestIP(request)?.address ?? ""),
      { parse: "none" },
    )
    .post("/panel/logout", () => seeOther("/panel/login", `${COOKIE}=; Max-Age=0; ${attributes}`), {
      parse: "none",
    });
}

/** @throws {Problem} 413 */
async function formOf(request: Request): Promise<string> {
  if (Number(request.headers.get("content-length") ?? FORM_LENGTH + 1) > FORM_LENGTH) {
    throw new Problem(413, "BODY_TOO_LARGE", `At most ${FORM_LENGTH} bytes.`);
  }
  return request.text();
}

function seeOther(location: string, cookie: string): Response {
  return new Response(null, { status: 303, headers: { location, "set-cookie": cookie } });
}

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
  return pageResponse("Log in", body, { status });
}
