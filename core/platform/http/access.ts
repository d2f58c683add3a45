/**
 * The declaration of a route, on every port: who may call it, what it takes and what it answers. Access checks, the check of the
 * body, the OpenAPI document and the tests that ask every route come from it. An app with a route that nobody guards does not
 * start, and no path is ever compared.
 */
import { type AnyElysia, Elysia } from "elysia";
import type { Capability } from "#core/accounts/rules/roles.ts";
import type { ErrorCode } from "#core/platform/errors/error-catalogue.ts";
import type { Body, Operation } from "#core/platform/openapi/operation.ts";

/** `public`: anybody. The others name the credentials that are required. */
export type Access = "public" | "courier" | MerchantAccess | PanelAccess;

export interface MerchantAccess {
  /** That the caller's token must have; null = any token of a channel. */
  readonly scope: string | null;
}

/** Deny by default. */
export interface PanelAccess {
  readonly can: Capability;
  /**
   * Whose the thing is that the path names. Members of a company or a courier get 404 for what is not theirs. `caller`: the
   * handler shows its caller what is theirs. `installation`: operators only.
   */
  readonly of: OwnedThing | "caller" | "installation";
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
  | "account"
  | "alarmReceiver"
  | "incident";

export interface Declaration extends Operation {
  /** Absent: that of all routes of its plugin. */
  readonly access?: Access;
  /** Of a POST of the panel that changes and sends nothing, or notes only when it was last made. All others but those
   * with `hasPassword` take an `Idempotency-Key`. */
  readonly reads?: true;
  /** Of a POST whose body has a password: a key would keep a digest of it, and answer again without checking it. */
  readonly hasPassword?: true;
}

/** Behind a function, since Elysia copies and compares the values of options. */
export type Declared<D extends Declaration = Declaration> = () => D;

type Options<D extends Declaration> = {
  readonly parse: "none";
  readonly detail: object;
} & Pick<D, Extract<keyof D, "query" | "response">> &
  // For the plugin that guards it: a public route within an app must not meet the guard of another plugin.
  (D extends { readonly access: Access } ? { readonly declared: Declared<D> } : object) &
  // Its type alone: Elysia would read the body before the caller is admitted. Public routes read it themselves.
  (D extends { readonly access: object; readonly body: Body<infer T> }
    ? { readonly body: Typed<T> }
    : object);

interface Typed<T> {
  readonly "~standard": { readonly types?: { readonly input: T; readonly output: T } };
}

/** For a declaration that stands apart from its route. */
export const declared = <const D extends Declaration>(declaration: D): D => declaration;

/** The options of one route: Elysia changes them, so another app needs others. */
export function route<const D extends Declaration>(declaration: D): Options<D> {
  const { access, query, response } = declaration;
  const declared = () => declaration;
  return {
    ...(access && { declared }),
    parse: "none",
    detail: { [DECLARATION]: declared },
    ...(query && { query }),
    ...(response && { response }),
  } as unknown as Options<D>;
}

const DECLARATION = "x-declaration";
const GUARD = "x-guard";

/** Says what a plugin checks of the calls of its routes, for the `detail` of the plugin or of its macro. */
export function guard(access: Access, errors: readonly ErrorCode[] = []): object {
  return { [GUARD]: { access, errors } satisfies Guard };
}

interface Guard {
  readonly access: Access;
  /** Codes of the refusals that no other call has. */
  readonly errors: readonly ErrorCode[];
}

/** A plugin whose routes anybody may call: their answers are meant for everybody, or they check a secret themselves. */
export function publicRoutes(name: string) {
  return new Elysia({ name, detail: guard("public") });
}

interface RouteWithHooks {
  readonly hooks: unknown;
}

/** Null if nobody checks who calls. */
export function guardOf(route: RouteWithHooks): Guard | null {
  return (detailOf(route)[GUARD] as Guard | undefined) ?? null;
}

/** Null of a page or a probe. */
export function declarationOf(route: RouteWithHooks): Declaration | null {
  return (detailOf(route)[DECLARATION] as Declared | undefined)?.() ?? null;
}

/** A call of the panel that is carried out once under an `Idempotency-Key`. */
export function takesKey(method: string, { access, reads, hasPassword }: Declaration): boolean {
  return method === "POST" && isOfPanel(access) && !reads && !hasPassword;
}

export function isOfPanel(access: Access | undefined): access is PanelAccess {
  return typeof access === "object" && "can" in access;
}

function detailOf({ hooks }: RouteWithHooks): Readonly<Record<string, unknown>> {
  return (hooks as { readonly detail?: Readonly<Record<string, unknown>> }).detail ?? {};
}

/** @throws if nobody checks who calls a route */
export function everyRouteDeclared<App extends AnyElysia>(app: App): App {
  const open = app.routes.filter((route) => guardOf(route) === null);
  if (open.length === 0) return app;
  const names = open.map(({ method, path }) => `${method} ${path}`).join(", ");
  throw new Error(`Routes that do not say who may call them: ${names}`);
}
