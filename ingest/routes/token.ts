/** `POST /v1/oauth/token`: OAuth 2.0 client credentials for couriers that have a client (RFC 6749, 4.4). */
import { timingSafeEqual } from "node:crypto";
import { type Static, Type } from "@sinclair/typebox";
import type { Courier } from "#core/configuration/store/configuration.ts";
import { Problem } from "#core/platform/errors/problem.ts";
import { declared, publicRoutes, route } from "#core/platform/http/access.ts";
import { readBody } from "#core/platform/http/body/read-body.ts";
import { type Peer, subscriberOf } from "#core/platform/http/peer.ts";
import { json } from "#core/platform/openapi/operation.ts";
import { limit } from "#core/platform/schema/limit.ts";
import { hashToken } from "#core/platform/secrets/secrets.ts";
import { refuseGuess } from "#core/platform/secrets/wrong-secrets.ts";
import {
  type AuthenticateDeps,
  admit,
  bearerOf,
  refusalOf,
  tooManyRequests,
  withHeaders,
} from "#ingest/authenticate.ts";
import { COURIER_TERMS } from "#ingest/messages/read-body.ts";
import { TOKEN_LIFE_SECONDS } from "#ingest/oauth/access-token.ts";

export const FORM_LIMIT_BYTES = limit(8_192, "form of an OAuth token request", "400");
/** The only scope; it may be left out. */
const SCOPE = "events";

/** RFC 6749, 5.2. */
export const TOKEN_ERRORS = {
  invalid_request: "The form is not as RFC 6749 says; see error_description.",
  invalid_client:
    "The client id or secret is wrong, or the client may not ask from here. Form-encode the id and the secret, each by itself, before HTTP Basic puts them together (RFC 6749, 2.3.1), and as values of the form.",
  unsupported_grant_type: "grant_type must be client_credentials.",
  invalid_scope: "The only scope is events.",
} as const;

export const TokenRequest = Type.Object({
  grant_type: Type.Literal("client_credentials"),
  scope: Type.Optional(Type.Literal(SCOPE)),
  client_id: Type.Optional(Type.String({ description: "unless sent by HTTP Basic" })),
  client_secret: Type.Optional(Type.String({ description: "unless sent by HTTP Basic" })),
});

export const TokenAnswer = Type.Object({
  access_token: Type.String(),
  token_type: Type.Literal("Bearer"),
  expires_in: Type.Integer({ description: "seconds" }),
  scope: Type.Literal(SCOPE),
});

type TokenErrorName = keyof typeof TOKEN_ERRORS;
export const TokenError = Type.Object({
  error: Type.Union(Object.keys(TOKEN_ERRORS).map((name) => Type.Literal(name as TokenErrorName))),
  error_description: Type.String(),
});

const failed = (description: string, error: TokenErrorName) =>
  json(description, TokenError, { error, error_description: TOKEN_ERRORS[error] });

const operation = declared({
  id: "getToken",
  summary: "Get an access token (RFC 6749, client credentials)",
  body: {
    schema: TokenRequest,
    mediaType: "application/x-www-form-urlencoded",
    limitBytes: FORM_LIMIT_BYTES,
    example: {
      grant_type: "client_credentials",
      scope: SCOPE,
      client_id: "gls-push",
      client_secret: "a+b/c",
    },
  },
  answers: {
    200: json("A token.", TokenAnswer, {
      access_token: "eyJhbGciOiJIUzI1NiJ9.e30.c2lnbmF0dXJl",
      token_type: "Bearer",
      expires_in: TOKEN_LIFE_SECONDS,
      scope: SCOPE,
    }),
    400: failed("invalid_request, unsupported_grant_type, invalid_scope", "invalid_request"),
    401: failed("invalid_client", "invalid_client"),
  },
  errors: ["BODY_TOO_SLOW"],
});

interface Refusal {
  readonly error: TokenErrorName;
  readonly description: string;
}

interface Credentials {
  readonly clientId: string;
  readonly clientSecret: string;
}

/** @param findPeer the far end of a request */
export function tokenRoute(
  deps: AuthenticateDeps,
  findPeer: (request: Request, server: Bun.Server<unknown> | null) => Peer,
) {
  return publicRoutes("token").post(
    "/v1/oauth/token",
    async ({ request, server }) => {
      const peer = findPeer(request, server);
      const { rateHeaders } = await admit(deps, await bearerOf(deps, null), () => peer);
      const usesBasic = request.headers.has("authorization");
      const asked = await readRequest(request).catch((error) => {
        throw error instanceof Problem ? withHeaders(error, rateHeaders) : error;
      });
      if ("error" in asked) return refuse(asked, usesBasic, rateHeaders);
      const courier = clientOf(deps, asked, peer);
      const shown = {
        kind: "oauth-client",
        network: subscriberOf(peer.address),
        holder: courier?.code ?? null,
        isRight: Boolean(courier),
      } as const;
      const retryAfterMs = await refuseGuess(deps.redis, shown, deps.live.now());
      if (retryAfterMs > 0) throw withHeaders(tooManyRequests({ retryAfterMs }), rateHeaders);
      if (!courier) {
        const description = TOKEN_ERRORS.invalid_client;
        return refuse({ error: "invalid_client", description }, usesBasic, rateHeaders);
      }
      const token: Static<typeof TokenAnswer> = {
        access_token: await deps.accessTokens.mint(courier, deps.live.now()),
        token_type: "Bearer",
        expires_in: TOKEN_LIFE_SECONDS,
        scope: SCOPE,
      };
      return Response.json(token, { headers: { ...noStore, ...rateHeaders } });
    },
    route(operation),
  );
}

const noStore = { "cache-control": "no-store", pragma: "no-cache" };

function refuse(
  { error, description }: Refusal,
  usesBasic: boolean,
  rateHeaders: Readonly<Record<string, string>>,
): Response {
  const isClient = error === "invalid_client";
  return Response.json(
    { error, error_description: description },
    {
      status: isClient ? 401 : 400,
      headers: {
        ...noStore,
        ...rateHeaders,
        ...(isClient && usesBasic && { "www-authenticate": 'Basic realm="courier events"' }),
      },
    },
  );
}

async function readRequest(request: Request): Promise<Credentials | Refusal> {
  const type = request.headers.get("content-type") ?? "";
  if (!/^application\/x-www-form-urlencoded *(;|$)/i.test(type)) {
    return invalid("Content-Type must be application/x-www-form-urlencoded.");
  }
  const body = await readBody(request, FORM_LIMIT_BYTES, COURIER_TERMS).catch((error) => {
    if (!(error instanceof Problem) || error.status !== 413) throw error;
    return null;
  });
  if (body === null) return invalid(`The form has more than ${FORM_LIMIT_BYTES} bytes.`);
  const form = new URLSearchParams(new TextDecoder().decode(body));
  const names = [...form.keys()];
  if (new Set(names).size < names.length) return invalid("A parameter is duplicated.");
  const grantType = form.get("grant_type");
  if (!grantType) return invalid("grant_type is missing.");
  if (grantType !== "client_credentials") {
    return { error: "unsupported_grant_type", description: TOKEN_ERRORS.unsupported_grant_type };
  }
  if (![SCOPE, "", null].includes(form.get("scope"))) {
    return { error: "invalid_scope", description: TOKEN_ERRORS.invalid_scope };
  }
  return credentialsOf(request.headers.get("authorization"), form);
}

const NO_BASIC =
  "No HTTP Basic credentials: form-encode the id and the secret, join them by a colon, and encode the result in base64.";

/** HTTP Basic or the form, and not both (RFC 6749, 2.3). */
function credentialsOf(authorization: string | null, form: URLSearchParams): Credentials | Refusal {
  const clientId = form.get("client_id");
  const clientSecret = form.get("client_secret");
  if (authorization === null) {
    return clientId && clientSecret
      ? { clientId, clientSecret }
      : {
          error: "invalid_client",
          description: "Neither HTTP Basic nor client_id and client_secret.",
        };
  }
  if (clientSecret !== null) return invalid("Credentials in the header and in the form.");
  const basic = readBasic(authorization);
  if (basic === null) return { error: "invalid_client", description: NO_BASIC };
  const isOther = clientId !== null && clientId !== basic.clientId;
  return isOther ? invalid("client_id is not the one of the header.") : basic;
}

/** Both halves are form-encoded before they are put together (RFC 6749, 2.3.1). */
function readBasic(authorization: string): Credentials | null {
  const text = /^Basic +([A-Za-z0-9+/=]+) *$/i.exec(authorization)?.[1];
  const plain = Buffer.from(text ?? "", "base64").toString();
  const colon = plain.indexOf(":");
  if (colon < 1) return null;
  try {
    const decode = (part: string) => decodeURIComponent(part.replaceAll("+", " "));
    return {
      clientId: decode(plain.slice(0, colon)),
      clientSecret: decode(plain.slice(colon + 1)),
    };
  } catch {
    return null;
  }
}

/** Undefined when id or secret is wrong, or the courier may not send from there. */
function clientOf(
  { live }: AuthenticateDeps,
  { clientId, clientSecret }: Credentials,
  peer: Peer,
): Courier | undefined {
  const courier = live.configuration().courierByClientId.get(clientId);
  const given = Buffer.from(hashToken(clientSecret));
  const expected = Buffer.from(courier?.oauth?.secretHash ?? hashToken(""));
  const same = timingSafeEqual(given, expected);
  return courier && same && refusalOf(courier, () => peer) === null ? courier : undefined;
}

function invalid(description: string): Refusal {
  return { error: "invalid_request", description };
}
