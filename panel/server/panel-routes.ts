/**
 * Routes of the panel. The access of each is a capability and whose the thing is that it names; a route without is refused at
 * the start. The check comes before anything else of the request is read, and every change is written to the audit log.
 */
import { Elysia } from "elysia";
import { masked } from "#core/accounts/rules/masked.ts";
import { hasAuditCapacity, writeAudit } from "#core/accounts/store/audit-log.ts";
import {
  expectVersion,
  setAuthor,
  writtenVersion,
} from "#core/configuration/store/change-context.ts";
import { Problem } from "#core/platform/errors/problem.ts";
import {
  type Declaration,
  type Declared,
  guard,
  type PanelAccess,
  takesKey,
} from "#core/platform/http/access.ts";
import { refuseTooMany } from "#panel/server/http/call-rate.ts";
import { answeredBefore, keepAnswer } from "#panel/server/http/idempotency.ts";
import { linkOf } from "#panel/server/http/list-page.ts";
import { PANEL_BODY_BYTES } from "#panel/server/http/read-json.ts";
import { authenticate, type Caller, type PanelDeps, READING, tenantOf } from "./caller.ts";
import { notFoundCodes } from "./not-found.ts";
import { refuseOthers } from "./owners.ts";

/** What a handler tells of its change; without it the answer is what there is after, and nothing before. */
interface Change {
  readonly before: unknown;
  readonly after: unknown;
}

const callers = new WeakMap<Request, Caller>();
const changes = new WeakMap<Request, Change | "none">();

/** For the audit log: what the call has changed. Secrets are masked. What is equal is no change. */
export function noteChange(request: Request, before: unknown, after: unknown): void {
  changes.set(request, { before, after });
}

/** For the audit log: the call has changed nothing, such as a preview. */
export function noteNoChange(request: Request): void {
  changes.set(request, "none");
}

/** A plugin whose routes answer those who may call them: 401, 403, 404 for what is somebody else's, 429. */
export function panelRoutes(deps: PanelDeps, name: string) {
  return new Elysia({ name }).macro({
    declared: (declared: Declared<PanelDeclaration>) => ({
      detail: guard(declared().access, notFoundCodes(declared().access.of)),
      transform: async ({ request, server, path, params, set }) => {
        // Answers hold secrets that are shown once, and personal data.
        set.headers["cache-control"] = "no-store";
        const { access } = declared();
        const caller = await admit(deps, access, { request, server, params });
        access.check?.(caller);
        await refuseUnlogged(deps, caller, request.method);
        setAuthor(authorOf(caller));
        const { headers } = request;
        expectVersion(headers.get("if-match"), headers.get("if-none-match"));
        callers.set(request, caller);
        deps.log.debug({ method: request.method, path }, "panel call");
      },
      resolve: ({ request }) => ({ caller: callerOf(request) }),
      beforeHandle: async (context) => {
        const { request, set } = context;
        if (takesKey(request.method, declared())) {
          const bodyBytes = declared().body?.limitBytes ?? PANEL_BODY_BYTES;
          const answer = await answeredBefore(deps, request, callerOf(request), set, bodyBytes);
          if (answer !== null) {
            noteNoChange(request);
            // A `never`, so that the types of the routes' answers stay those of their handlers.
            return answer as never;
          }
        }
        context.body = await declared().body?.read?.(request);
      },
      afterHandle: async ({ request, set, route, path, responseValue }) => {
        const link = linkOf(request, responseValue);
        if (link !== null) set.headers["link"] = link;
        const version = versionOf(request, responseValue);
        if (version !== null) set.headers["etag"] = `"${version}"`;
        await keepAnswer(deps, request, set, responseValue);
        await audit(deps, request, { route, path, answer: responseValue });
      },
    }),
  });
}

/** Operators do not wait behind each other. */
function authorOf(caller: Caller) {
  const tenant = tenantOf(caller);
  return { party: caller.kind === "operator" ? "" : tenant, tenant, name: caller.actor };
}

/** Of the entity that an answer is about: of the one that was read, or as the change has left it. */
function versionOf({ method }: Request, answer: unknown): string | null {
  if (!READING.has(method)) return writtenVersion();
  const { version } = (answer ?? {}) as { readonly version?: unknown };
  return typeof version === "string" ? version : null;
}

interface PanelDeclaration extends Declaration {
  readonly access: PanelAccess & {
    /** @throws {Problem}: what the caller must have besides */
    readonly check?: (caller: Caller) => unknown;
  };
}

interface Call {
  readonly request: Request;
  readonly server: Bun.Server<unknown> | null;
  readonly params: unknown;
}

/** Whether a caller who was admitted would be again, for an answer that goes on: their session may have ended since. */
export async function mayStill(
  deps: PanelDeps,
  { can, of }: PanelAccess,
  request: Request,
  server: Bun.Server<unknown> | null,
): Promise<boolean> {
  try {
    const { capabilities, kind } = await authenticate(deps, request, server);
    return capabilities.includes(can) && (kind === "operator" || of !== "installation");
  } catch (error) {
    if (error instanceof Problem && (error.status === 401 || error.status === 403)) return false;
    throw error;
  }
}

/** @throws {Problem} 401, 403, 404, 429 */
async function admit(deps: PanelDeps, { can, of }: PanelAccess, call: Call): Promise<Caller> {
  const caller = await authenticate(deps, call.request, call.server);
  await refuseTooMany(deps, caller, call.request.method);
  if (!caller.capabilities.includes(can)) throw forbidden();
  if (caller.kind === "operator") return caller;
  if (of === "installation") throw forbidden();
  const params = (call.params ?? {}) as Readonly<Record<string, string>>;
  if (of !== "caller") await refuseOthers(deps, caller, of, params);
  return caller;
}

/**
 * A change that is made is written down, so none is made while it cannot be.
 * @throws {Problem} 503
 */
async function refuseUnlogged({ redis }: PanelDeps, caller: Caller, method: string): Promise<void> {
  if (READING.has(method) || (await hasAuditCapacity(redis, tenantOf(caller)))) return;
  const detail = "The audit log has no room for another change until ClickHouse takes its entries.";
  throw new Problem(503, "AUDIT_LOG_FULL", detail, { headers: { "retry-after": "60" } });
}

export function forbidden(detail = "Your role does not include this."): Problem {
  return new Problem(403, "FORBIDDEN", detail);
}

/** Who has been admitted. */
function callerOf(request: Request): Caller {
  const caller = callers.get(request);
  if (!caller) throw new Error("a route of the panel has not admitted its caller");
  return caller;
}

interface Answered {
  readonly route: string;
  readonly path: string;
  readonly answer: unknown;
}

async function audit(deps: PanelDeps, request: Request, answered: Answered): Promise<void> {
  const change = changes.get(request);
  if (READING.has(request.method) || change === "none") return;
  if (change && Bun.deepEquals(change.before, change.after)) return;
  const { route, path, answer } = answered;
  const isText = answer === undefined || answer instanceof Response;
  const { before, after } = change ?? { before: null, after: isText ? null : answer };
  const caller = callerOf(request);
  const { account, actor } = caller;
  const short = (text: string) => text.replace(/^\/panel\/api/, "");
  const action = `${request.method} ${short(route)}`;
  const target = decodeURI(short(path));
  deps.log.info({ actor: account?.id ?? actor, action, target }, "changed in the panel");
  await writeAudit(deps.redis, {
    tenant: tenantOf(caller),
    atMs: deps.live.now(),
    actor,
    action,
    target,
    before: masked(withoutVersion(before)),
    after: masked(withoutVersion(after)),
  });
}

/** It is another one after each change, and tells nothing. */
function withoutVersion(value: unknown): unknown {
  if (value === null || typeof value !== "object" || !("version" in value)) return value;
  const { version: _, ...rest } = value;
  return rest;
}
