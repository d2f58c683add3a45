/**
 * Who may call a route. A plugin declares it for all of its routes, and an app with an undeclared route does not start, so
 * nobody can forget to. The declaration is part of the route; no path is ever compared.
 */
import { type AnyElysia, Elysia } from "elysia";
import type { Capability } from "#core/accounts/rules/roles.ts";
import type { ErrorCode } from "#core/platform/errors/error-catalogue.ts";

/** `public`: anybody. The others name the credentials that are required. */
export type Access = "public" | "panel" | "merchant" | "courier";

/** Members of a route's `detail`. */
export const ROUTE_MEMBERS = {
  access: "x-access",
  scope: "x-scope",
  operation: "x-operation",
  needs: "x-needs",
  notFound: "x-not-found",
} as const;

/**
 * Declares who may call the routes of a plugin or a macro.
 * @param scope that the caller's token must have; null = none
 */
export const declared = (access: Access, scope: string | null = null) =>
  ({ [ROUTE_MEMBERS.access]: access, [ROUTE_MEMBERS.scope]: scope }) as object;

/** What each route of the panel declares besides: deny by default. */
export interface Needs {
  readonly can: Capability;
  /**
   * Whose the thing is that the path names. Members of a company or a courier get 404 for what is not theirs. `caller`: the
   * handler shows its caller what is theirs. `installation`: operators only.
   */
  readonly of: OwnedThing | "caller" | "installation";
  /** Of a POST that changes and sends nothing, or notes only when it was last made. All others but those
   * with `hasPassword` take an `Idempotency-Key`. */
  readonly reads?: true;
  /** Of a POST whose body has a password: a key would keep a digest of it, and answer again without checking it. */
  readonly hasPassword?: true;
  /**
   * The largest body that its handler reads, where it is not the usual one: the reference says it, and with an `Idempotency-Key`
   * it is read before.
   */
  readonly bodyBytes?: number;
}

export type OwnedThing =
  | "company"
  | "channel"
  | "apiKey"
  | "endpoint"
  | "delivery"
  | "shipment"
  | "courier"
  | "remap"
  | "account";

/**
 * Declares what a route of the panel needs.
 * @param notFound codes of its answers about things that do not exist, or that are not the caller's
 */
export const needed = (needs: Needs, notFound: readonly ErrorCode[]) =>
  ({ [ROUTE_MEMBERS.needs]: needs, [ROUTE_MEMBERS.notFound]: notFound }) as object;

/** A plugin whose routes anybody may call: their answers are meant for everybody, or they check a secret themselves. */
export function publicRoutes(name: string) {
  return new Elysia({ name, detail: declared("public") });
}

/** Null if a route declares nothing. */
export function accessOf(route: { readonly hooks: unknown }): Access | null {
  return (detailOf(route)[ROUTE_MEMBERS.access] as Access | undefined) ?? null;
}

/** Null of a route that is none of the panel's, or declares nothing. */
export function needsOf(route: { readonly hooks: unknown }): Needs | null {
  return (detailOf(route)[ROUTE_MEMBERS.needs] as Needs | undefined) ?? null;
}

/** A call of the panel that is carried out once under an `Idempotency-Key`. */
export function takesKey(method: string, needs: Needs | null): boolean {
  return method === "POST" && needs !== null && !needs.reads && !needs.hasPassword;
}

export function detailOf({
  hooks,
}: {
  readonly hooks: unknown;
}): Readonly<Record<string, unknown>> {
  return (hooks as { readonly detail?: Readonly<Record<string, unknown>> }).detail ?? {};
}

/** @throws if a route does not declare who may call it */
export function everyRouteDeclared<App extends AnyElysia>(app: App): App {
  const open = app.routes.filter((route) => {
    const access = accessOf(route);
    return access === null || (access === "panel" && needsOf(route) === null);
  });
  if (open.length === 0) return app;
  const names = open.map(({ method, path }) => `${method} ${path}`).join(", ");
  throw new Error(`Routes that do not say who may call them: ${names}`);
}
