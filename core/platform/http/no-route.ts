/** The answer to a request that the router has found no route for, or whose route has nothing at that path. */
import { Elysia } from "elysia";
import { Problem } from "#core/platform/errors/problem.ts";

export interface Route {
  readonly method: string;
  readonly path: string;
  /** As Elysia keeps them. */
  readonly hooks: unknown;
}

/**
 * 405 for another method on an existing path, 404 for any other path.
 * @param path as the router saw it
 */
export function noRoute(routes: readonly Route[], path: string, method: string): Problem {
  const methods = methodSet(methodsOf(routes, path));
  if (methods.size === 0 || methods.has(method)) {
    return new Problem(404, "NOT_FOUND", "There is no such path.");
  }
  const allow = [...methods].sort().join(", ");
  return new Problem(405, "METHOD_NOT_ALLOWED", `Allowed here: ${allow}.`, {
    headers: { allow },
  });
}

/** A path that is written out hides the patterns that match it too: `/shipments/import` is no `/shipments/:id`. */
function methodsOf(routes: readonly Route[], path: string): string[] {
  const matching = routes.filter((route) => matches(route.path, path));
  const literal = matching.filter((route) => !route.path.includes(":"));
  return (literal.length > 0 ? literal : matching).map(({ method }) => method);
}

/**
 * Refuses methods that a written-out path lacks and a pattern would take for it: the router looks for a method first.
 * @param routes of the app, known once it is complete
 */
export function literalPaths(routes: () => readonly Route[]) {
  let known: ReadonlyMap<string, ReadonlySet<string>> | null = null;
  return new Elysia({ name: "literal-paths" }).onRequest((context) => {
    // Set before the first hook runs, although its type says otherwise.
    const { path } = context as typeof context & { readonly path: string };
    known ??= literalMethods(routes());
    const methods = known.get(withoutSlash(path));
    if (methods && !methods.has(context.request.method)) {
      throw noRoute(routes(), path, context.request.method);
    }
  });
}

function literalMethods(routes: readonly Route[]): ReadonlyMap<string, ReadonlySet<string>> {
  const literal = routes.filter(({ path }) => !path.includes(":"));
  const byPath = Map.groupBy(literal, ({ path }) => path);
  return new Map(
    [...byPath].map(([path, own]) => [path, methodSet(own.map(({ method }) => method))]),
  );
}

/** The router answers HEAD wherever it answers GET. */
function methodSet(methods: readonly string[]): ReadonlySet<string> {
  return new Set(methods.includes("GET") ? [...methods, "HEAD"] : methods);
}

/** The router accepts a path with and without a trailing slash. */
function withoutSlash(path: string): string {
  return path.length > 1 && path.endsWith("/") ? path.slice(0, -1) : path;
}

function matches(pattern: string, path: string): boolean {
  const parts = withoutSlash(path).split("/");
  const expected = pattern.split("/");
  return (
    parts.length === expected.length &&
    expected.every((part, at) => (part.startsWith(":") ? parts[at] !== "" : part === parts[at]))
  );
}
