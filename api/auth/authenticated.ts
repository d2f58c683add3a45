/**
 * Who calls, at every call (document 1, "Authentication", "Limits"): JSON accepted, bearer token, standing of key and channel
 * now, request budget, scope.
 */
import { Elysia } from "elysia";
import { createTokens, type Tokens } from "#api/auth/tokens.ts";
import type { ApiDeps } from "#api/deps.ts";
import { refuseUnknownParameters } from "#api/http/unknown-parameters.ts";
import { withWarnings } from "#api/http/warnings.ts";
import type {
  ApiKey,
  Channel,
  Company,
  Configuration,
} from "#core/configuration/store/configuration.ts";
import { type Admission, admitRequest } from "#core/merchants/store/rate-limit.ts";
import { Problem } from "#core/platform/errors/problem.ts";
import { requireJsonAccepted } from "#core/platform/http/accept.ts";
import {
  type Declaration,
  type Declared,
  guard,
  type MerchantAccess,
} from "#core/platform/http/access.ts";
import { noteRequester } from "#core/platform/http/refused-requests.ts";
import { atWork } from "#core/platform/process/background.ts";
import type { Scope } from "#core/setup/rules/setup.ts";

/** The configuration is the one the caller was checked against. */
export interface Caller {
  readonly apiKey: ApiKey;
  readonly channel: Channel;
  readonly company: Company;
  readonly configuration: Configuration;
}

/** Clients poll their jobs, and wait for background work themselves: it does not rest after such a call. */
const POLLING: Scope = "jobs:read";

interface MerchantDeclaration extends Declaration {
  readonly access: MerchantAccess & {
    readonly scope: Scope | null;
    /** @throws {Problem} 403: what the caller must have besides */
    readonly check?: (caller: Caller) => void;
  };
}

/** A plugin whose routes answer those who may call them. */
export function merchantRoutes(deps: ApiDeps) {
  const tokens = createTokens(deps.secrets.jwtSecret);
  return new Elysia().macro({
    declared: (declared: Declared<MerchantDeclaration>) => ({
      detail: guard(declared().access),
      resolve: async (context) => {
        const { request, set } = context;
        const { access, body } = declared();
        requireJsonAccepted(request);
        const caller = await admit(deps, tokens, request, access.scope, (headers) => {
          Object.assign(set.headers, headers);
        });
        if (access.scope !== POLLING) atWork(caller.channel.id);
        access.check?.(caller);
        refuseUnknownParameters(request, declared());
        context.body = await body?.read?.(request);
        return { caller };
      },
      afterHandle: withWarnings,
    }),
  });
}

/**
 * @param announce takes the rate headers, for every answer to an authenticated caller
 * @throws {Problem} 401, 403 or 429
 */
async function admit(
  { redis, live }: ApiDeps,
  tokens: Tokens,
  request: Request,
  scope: Scope | null,
  announce: (headers: Record<string, string>) => void,
): Promise<Caller> {
  const configuration = await live.refresh();
  const token = /^Bearer +(\S+) *$/i.exec(request.headers.get("authorization") ?? "")?.[1];
  const nowMs = live.now();
  const claims = token === undefined ? null : await tokens.verify(token, nowMs);
  const apiKey = claims && configuration.apiKeyById.get(claims.keyId);
  if (!claims || !apiKey?.active) throw unauthorized();
  if (claims.channelId === null) {
    throw new Problem(403, "NO_CHANNEL_CONTEXT", "The token has no channel context.");
  }
  const channel = configuration.channels.get(claims.channelId);
  const company = channel && configuration.companies.get(channel.companyId);
  if (!channel?.active || !company || apiKey.channelId !== channel.id) throw unauthorized();
  noteRequester(request, { tenant: `company ${company.code}`, key: apiKey.code });
  const admission = await admitRequest(redis, channel, apiKey, nowMs);
  announce(rateHeaders(admission));
  checkAdmission(admission, nowMs);
  if (scope !== null && !(claims.scopes.includes(scope) && apiKey.scopes.includes(scope))) {
    throw new Problem(403, "MISSING_SCOPE", `The token lacks the scope ${scope}.`);
  }
  return { apiKey, channel, company, configuration };
}

function unauthorized(): Problem {
  return new Problem(401, "INVALID_TOKEN", "The access token is missing or not valid.", {
    headers: { "www-authenticate": "Bearer" },
  });
}

function rateHeaders({ limit, remaining, refillAtMs }: Admission): Record<string, string> {
  return {
    "x-ratelimit-limit": String(limit),
    "x-ratelimit-remaining": String(remaining),
    "x-ratelimit-reset": String(Math.ceil(refillAtMs / 1000)),
  };
}

/** @throws {Problem} 429, 403 */
function checkAdmission(admission: Admission, nowMs: number): void {
  switch (admission.verdict) {
    case "admitted":
      return;
    case "limited": {
      const headers = { "retry-after": secondsUntil(admission.refillAtMs, nowMs) };
      throw new Problem(429, "RATE_LIMITED", "The rate limit is exceeded.", { headers });
    }
    case "suspended":
      throw suspended(admission.suspendedUntilMs, nowMs);
  }
}

export function suspended(untilMs: number, nowMs: number): Problem {
  return new Problem(403, "KEY_SUSPENDED", "The API key is suspended after abuse.", {
    headers: { "retry-after": secondsUntil(untilMs, nowMs) },
  });
}

function secondsUntil(untilMs: number, nowMs: number): string {
  return String(Math.max(1, Math.ceil((untilMs - nowMs) / 1000)));
}
