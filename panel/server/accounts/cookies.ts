/** The session cookie, and whether a page of ours has sent a request. */
import type { Config } from "#core/platform/environment/config.ts";

interface CookieDeps {
  readonly config: Pick<Config, "publicUrl">;
}

/**
 * Behind HTTPS the browser itself keeps a cookie with this prefix from being set by, or sent to, another host or over
 * plain HTTP.
 */
function cookieName(deps: CookieDeps): string {
  return isSecure(deps) ? "__Host-waybill_session" : "waybill_session";
}

/** A cookie with a value, for so many seconds; 0 takes it back. */
export function cookieOf(deps: CookieDeps, value: string, seconds: number): string {
  const attributes = `Path=/; HttpOnly; SameSite=Strict${isSecure(deps) ? "; Secure" : ""}`;
  return `${cookieName(deps)}=${value}; Max-Age=${seconds}; ${attributes}`;
}

function isSecure({ config }: CookieDeps): boolean {
  return config.publicUrl.startsWith("https:");
}

/** Empty without a cookie. */
export function sessionIdOf(deps: CookieDeps, request: Request): string {
  const name = `${cookieName(deps)}=`;
  const pairs = (request.headers.get("cookie") ?? "").split(/; */);
  return pairs.find((pair) => pair.startsWith(name))?.slice(name.length) ?? "";
}

/**
 * Whether a page of ours, one of another site or nobody in a browser has made the request. Browsers send `Sec-Fetch-Site`
 * over HTTPS and to localhost, and `Origin` with every request that may change something.
 */
export function originOf(
  { config }: CookieDeps,
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
