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
  const authorization = request.headers.get("authorization") ?? "";
  const token = /^Bearer +(\S+) *$/i.exec(authorization)?.[1];
  const nowMs = live.now();
  const claims = token === undefined ? null : await tokens.verify(token, nowMs);
  if (!claims) throw await refusedToken(tokens, authorization, token, nowMs);
  const apiKey = configuration.apiKeyById.get(claims.keyId);
  if (!apiKey?.active) throw unauthorized("The API key of the access token is not active");
  if (claims.channelId === null) {
    throw new Problem(403, "NO_CHANNEL_CONTEXT", "The token has no channel context.");
  }
  const channel = configuration.channels.get(claims.channelId);
  const company = channel && configuration.companies.get(channel.companyId);
  if (!channel?.active || !company || apiKey.channelId !== channel.id) {
    throw unauthorized("The channel of the access token is not active");
  }
  noteRequester(request, { tenant: `company ${company.code}`, key: apiKey.code });
  const admission = await admitRequest(redis, channel, apiKey, nowMs);
  announce(rateHeaders(admission, channel, nowMs));
  checkAdmission(admission, nowMs);
  if (scope !== null && !(claims.scopes.includes(scope) && apiKey.scopes.includes(scope))) {
    throw new Problem(403, "MISSING_SCOPE", `The token lacks the scope ${scope}.`);
  }
  return { apiKey, channel, company, configuration };
}

const GET_TOKEN =
  "Get a token with POST /v2/auth/token and send it as `Authorization: Bearer <token>`.";

/** RFC 6750, 3.1. Whoever sent no token gets no error code. */
async function refusedToken(
  tokens: Tokens,
  authorization: string,
  token: string | undefined,
  nowMs: number,
): Promise<Problem> {
  if (authorization === "") {
    return new Problem(401, "INVALID_TOKEN", `The access token is missing. ${GET_TOKEN}`, {
      headers: { "www-authenticate": "Bearer" },
    });
  }
  if (token === undefined) {
    return unauthorized("The header Authorization is malformed: it is not `Bearer` and a token");
  }
  if (!TOKEN_FORM.test(token)) {
    const looks = token.startsWith("key_") ? "an API key is not a token" : "it is not a JWT";
    return unauthorized(`The access token is malformed: ${looks}`);
  }
  const expired = await tokens.expiredAt(token, nowMs);
  return expired === null
    ? unauthorized("The access token is wrong: it was not issued here, or was changed")
    : unauthorized(`The access token expired at ${new Date(expired * 1000).toISOString()}`);
}

const TOKEN_FORM = /^[\w-]+\.[\w-]+\.[\w-]+$/;

/** @param reason without the full stop; in ASCII, without quotation marks */
function unauthorized(reason: string): Problem {
  const challenge = `Bearer error="invalid_token", error_description="${reason}"`;
  return new Problem(401, "INVALID_TOKEN", `${reason}. ${GET_TOKEN}`, {
    headers: { "www-authenticate": challenge },
  });
}

export const DRAFT_RATE_HEADERS = ["ratelimit", "ratelimit-policy"] as const;

/** Those of document 1, and those of the IETF's draft (draft-ietf-httpapi-ratelimit-headers): what is left, and the policies. */
function rateHeaders(
  { limit, remaining, refillAtMs }: Admission,
  { refillRate }: Channel,
  nowMs: number,
): Record<string, string> {
  return {
    ratelimit: `"bucket";r=${remaining};t=${secondsUntil(refillAtMs, nowMs)}`,
    "ratelimit-policy": `"bucket";q=${limit}, "refill";q=${refillRate};w=60`,
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
  const until = new Date(untilMs).toISOString();
  const detail = `The API key is suspended after abuse until ${until}.`;
  return new Problem(403, "KEY_SUSPENDED", detail, {
    headers: { "retry-after": secondsUntil(untilMs, nowMs) },
  });
}

function secondsUntil(untilMs: number, nowMs: number): string {
  return String(Math.max(1, Math.ceil((untilMs - nowMs) / 1000)));
}
