/**
 * Operators and what they may call: the bearer token `PANEL_TOKEN`, or the cookie of a session that the token has opened.
 * The check belongs to the routes and comes before anything of the request is read.
 */
import { timingSafeEqual } from "node:crypto";
import { Elysia } from "elysia";
import { declared } from "#core/http/access.ts";
import { peerOfConnection, subscriberOf } from "#core/http/peer.ts";
import { refuseGuesses } from "#core/http/refuse-guesses.ts";
import { Problem } from "#core/problem.ts";
import { isSessionOpen } from "#core/redis/config/sessions.ts";
import type { Runtime } from "#core/runtime.ts";
import { hashToken } from "#core/secrets.ts";

export type OperatorDeps = Pick<Runtime, "config" | "secrets" | "redis" | "live" | "log">;

/** Methods that change nothing. */
const READING = new Set(["GET", "HEAD"]);

/** Whose token `PANEL_TOKEN` is. */
const OPERATOR = "operator";

type Server = Bun.Server<unknown> | null;

/** A plugin whose routes answer operators only: 401, 429, and 403 where a session is used from another site. */
export function operatorRoutes(deps: OperatorDeps, name: string) {
  return new Elysia({ name, detail: declared("operator") }).onTransform(
    async ({ request, server, path, set }) => {
      // Answers hold secrets that are shown once, and personal data.
      set.headers["cache-control"] = "no-store";
      await authorizeOperator(deps, request, server);
      deps.log.debug({ method: request.method, path }, "panel call");
    },
  );
}

/** The same for pages: a browser without a session is led to the login page, and after it to the page it asked for. */
export function operatorPages(deps: OperatorDeps, name: string) {
  return new Elysia({ name, detail: declared("operator") }).onBeforeHandle(
    async ({ request, server }) => {
      try {
        await authorizeOperator(deps, request, server);
      } catch (error) {
        if (!(error instanceof Problem && error.status === 401)) throw error;
        const { pathname, search } = new URL(request.url);
        const location = loginPathFor(pathname + search);
        return new Response(null, { status: 303, headers: { location } });
      }
    },
  );
}

/** Pages that a log-in may lead to: paths of ours only, since anybody can write the link. */
const OWN_PAGE = /^\/panel\/[\w./~?=&%:+,-]{1,500}$/;

export function isOwnPage(path: string): boolean {
  return OWN_PAGE.test(path);
}

/** The login page that leads to this page. */
export function loginPathFor(page: string): string {
  return isOwnPage(page) ? `/panel/login?next=${encodeURIComponent(page)}` : "/panel/login";
}

/** @throws {Problem} 401, 403, 429 */
async function authorizeOperator(
  deps: OperatorDeps,
  request: Request,
  server: Server,
): Promise<void> {
  const { redis, live } = deps;
  const authorization = request.headers.get("authorization");
  if (authorization !== null) {
    const given = /^Bearer +(\S+) *$/i.exec(authorization)?.[1] ?? "";
    const isRight = isOperatorToken(deps, given);
    const network = subscriberOf(peerOfConnection(request, server, deps.config).address);
    const shown = { door: "operator", network, holder: isRight ? OPERATOR : null } as const;
    await refuseGuesses(redis, shown, () => live.followTestClock().then(live.now));
    if (isRight) return;
    throw unknownOperator();
  }
  await live.followTestClock();
  const id = sessionIdOf(deps, request);
  if (!(await isSessionOpen(redis, id, credentialOf(deps), live.now()))) throw unknownOperator();
  if (READING.has(request.method) || originOf(deps, request) === "own") return;
  throw new Problem(403, "CROSS_SITE", "A session works from the panel's own pages only.");
}

export function isOperatorToken({ secrets }: Pick<OperatorDeps, "secrets">, given: string) {
  return timingSafeEqual(Buffer.from(hashToken(given)), Buffer.from(hashToken(secrets.panelToken)));
}

export function unknownOperator(): Problem {
  return new Problem(401, "UNKNOWN_OPERATOR", "The credentials are missing or wrong.", {
    headers: { "www-authenticate": "Bearer" },
  });
}

/** A new token is another credential, so it ends every session of the old one. */
export function credentialOf({ secrets }: Pick<OperatorDeps, "secrets">): string {
  return secrets.vault.mac(`operator ${secrets.panelToken}`);
}

/**
 * Behind HTTPS the browser itself keeps a cookie with this prefix from being set by, or sent to, another host or over
 * plain HTTP.
 */
export function cookieName(deps: Pick<OperatorDeps, "config">): string {
  return isSecure(deps) ? "__Host-waybill_session" : "waybill_session";
}

/** A cookie with a value, for so many seconds; 0 takes it back. */
export function cookieOf(
  deps: Pick<OperatorDeps, "config">,
  value: string,
  seconds: number,
): string {
  const attributes = `Path=/; HttpOnly; SameSite=Strict${isSecure(deps) ? "; Secure" : ""}`;
  return `${cookieName(deps)}=${value}; Max-Age=${seconds}; ${attributes}`;
}

function isSecure({ config }: Pick<OperatorDeps, "config">): boolean {
  return config.publicUrl.startsWith("https:");
}

/** Empty without a cookie. */
export function sessionIdOf(deps: Pick<OperatorDeps, "config">, request: Request): string {
  const name = `${cookieName(deps)}=`;
  const pairs = (request.headers.get("cookie") ?? "").split(/; */);
  return pairs.find((pair) => pair.startsWith(name))?.slice(name.length) ?? "";
}

/**
 * Whether a page of ours, one of another site or nobody in a browser has made the request. Browsers send `Sec-Fetch-Site`
 * over HTTPS and to localhost, and `Origin` with every request that may change something.
 */
export function originOf(
  { config }: Pick<OperatorDeps, "config">,
  { headers, url }: Request,
): "own" | "other" | "untold" {
  const site = headers.get("sec-fetch-site");
  if (site !== null) return site === "same-origin" ? "own" : "other";
  const origin = headers.get("origin");
  if (origin === null) return "untold";
  // Not the scheme: a proxy may have ended TLS.
  const own = [config.publicUrl, url].map((one) => new URL(one).host);
  return URL.canParse(origin) && own.includes(new URL(origin).host) ? "own" : "other";
}
