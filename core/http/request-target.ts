/**
 * Validates the Host and path of a request. Bun builds a URL from the Host header and the path, and the router extracts the
 * path again by counting slashes: with a Host that is short, empty or not a host name, both went wrong. Requests for which
 * the two disagree are refused before routing.
 */
import { Elysia } from "elysia";
import { Problem } from "#core/problem.ts";

/**
 * The configuration of every app. A single router, since Bun's own matches the raw path and Elysia's the normalized one;
 * and hosts shorter than four characters are valid too.
 */
export const ONE_ROUTER = { systemRouter: false, handler: { standardHostname: false } } as const;

/** An HTTP/1.0 request, such as a load balancer's health check, may omit Host. */
const NO_HOST = "localhost";

/** Runs before every route of the app that uses it. */
export function requestTarget() {
  return new Elysia({ name: "request-target" }).onRequest((context) => {
    // Set before the first hook runs, although its type says otherwise.
    const { path } = context as typeof context & { readonly path: string };
    checkTarget(context.request, path);
  });
}

/**
 * @param path the path that the router will match
 * @throws {Problem} 400
 */
function checkTarget(request: Request, path: string): void {
  const host = request.headers.get("host");
  const isRelative = request.url.startsWith("/");
  // Two Host headers arrive as one, with a comma between them.
  const isHost = host === null || !(isRelative || host.includes(","));
  const url = isRelative ? `http://${NO_HOST}${request.url}` : request.url;
  const target = isHost && URL.canParse(url) ? new URL(url) : null;
  if (target?.protocol !== "http:" || target.pathname !== path || !isDecodable(path)) {
    throw new Problem(400, "BAD_REQUEST_TARGET", "The Host header or the path is malformed.");
  }
  if (isRelative) Object.defineProperty(request, "url", { value: url });
}

/** The router passes a parameter that it cannot decode as null. */
function isDecodable(path: string): boolean {
  if (!path.includes("%")) return true;
  try {
    decodeURIComponent(path);
    return true;
  } catch {
    return false;
  }
}
