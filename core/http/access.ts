/**
 * Who may call a route. A plugin says it for all of its routes, and an app with a route that says nothing does not start:
 * whoever adds one cannot forget the question. The rule stands where the route is; no path is ever compared.
 */
import { type AnyElysia, Elysia } from "elysia";

/** `public`: anybody. The others name whose credentials are asked for. */
export type Access = "public" | "operator" | "merchant" | "courier";

const MEMBER = "x-access";

/** What a plugin or a macro carries to say who may call its routes. */
export const declared = (access: Access) => ({ [MEMBER]: access }) as object;

/** A plugin whose routes anybody may call: what they answer is meant for everybody, or they ask for a secret themselves. */
export function publicRoutes(name: string) {
  return new Elysia({ name, detail: declared("public") });
}

/** Null where a route says nothing. */
export function accessOf({ hooks }: { readonly hooks: unknown }): Access | null {
  const { detail } = hooks as { readonly detail?: Readonly<Record<string, Access>> };
  return detail?.[MEMBER] ?? null;
}

/** @throws when a route does not say who may call it */
export function everyRouteDeclared<App extends AnyElysia>(app: App): App {
  const open = app.routes.filter((route) => accessOf(route) === null);
  if (open.length === 0) return app;
  const names = open.map(({ method, path }) => `${method} ${path}`).join(", ");
  throw new Error(`Routes that do not say who may call them: ${names}`);
}
