/** The answer to a request that the router has found no route for. */
import { Problem } from "#core/problem.ts";

interface Route {
  readonly method: string;
  readonly path: string;
}

/**
 * 405 for another method on an existing path, 404 for any other path.
 * @param path as the router saw it
 */
export function noRoute(routes: readonly Route[], path: string): Problem {
  const methods = routes.filter((route) => matches(route.path, path)).map(({ method }) => method);
  if (methods.length === 0) return new Problem(404, "NOT_FOUND", "There is no such path.");
  const allow = [...new Set(methods)].join(", ");
  return new Problem(405, "METHOD_NOT_ALLOWED", `Only ${allow} is allowed here.`, {
    headers: { allow },
  });
}

/** The router accepts a path with and without a trailing slash. */
function matches(pattern: string, path: string): boolean {
  const parts = path.replace(/(?<=.)\/$/, "").split("/");
  const expected = pattern.split("/");
  return (
    parts.length === expected.length &&
    expected.every((part, at) => (part.startsWith(":") ? parts[at] !== "" : part === parts[at]))
  );
}
