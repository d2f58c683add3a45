/**
 * What a request asks for. Bun hands out a URL that is made of the Host header and of the path, and the router cuts the
 * path out of it again by counting slashes: with a Host that is short, empty or no host name both went astray. Requests
 * for which the two do not agree are refused before the router looks at them, and so is a path or a query whose
 * percent-encoding is no text: the router gives null for such a part of a path, and a filter would look for other text.
 */
import { Elysia } from "elysia";
import { Problem } from "#core/platform/errors/problem.ts";

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
  // As a form is read, a percent sign before anything but two hexadecimal digits stands for itself.
  if (!isDecodable(target.search.replaceAll(/%(?![0-9a-f]{2})/gi, ""))) {
    throw new Problem(400, "BAD_REQUEST_TARGET", "The query is not UTF-8.");
  }
  if (isRelative) Object.defineProperty(request, "url", { value: url });
}

function isDecodable(path: string): boolean {
  if (!path.includes("%")) return true;
  try {
    decodeURIComponent(path);
    return true;
  } catch {
    return false;
  }
}
