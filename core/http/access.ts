/**
 * Who may call a route. A plugin declares it for all of its routes, and an app with an undeclared route does not start, so
 * nobody can forget to. The declaration is part of the route; no path is ever compared.
 */
import { type AnyElysia, Elysia } from "elysia";

/** `public`: anybody. The others name the credentials that are required. */
export type Access = "public" | "operator" | "merchant" | "courier";

const MEMBER = "x-access";

/** Declares who may call the routes of a plugin or a macro. */
export const declared = (access: Access) => ({ [MEMBER]: access }) as object;

/** A plugin whose routes anybody may call: their answers are meant for everybody, or they check a secret themselves. */
export function publicRoutes(name: string) {
  return new Elysia({ name, detail: declared("public") });
}

/** Null if a route declares nothing. */
export function accessOf({ hooks }: { readonly hooks: unknown }): Access | null {
  const { detail } = hooks as { readonly detail?: Readonly<Record<string, Access>> };
  return detail?.[MEMBER] ?? null;
}

/** @throws if a route does not declare who may call it */
export function everyRouteDeclared<App extends AnyElysia>(app: App): App {
  const open = app.routes.filter((route) => accessOf(route) === null);
  if (open.length === 0) return app;
  const names = open.map(({ method, path }) => `${method} ${path}`).join(", ");
  throw new Error(`Routes that do not say who may call them: ${names}`);
}
