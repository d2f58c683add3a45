/** OpenAPI 3.1 description of `/v1`, made of the schemas that the service itself checks with. */
import type { TSchema } from "@sinclair/typebox";
import { CourierEvent, Envelope, SCHEMA_VERSIONS } from "#core/domain/courier-events/event.ts";
import { FAULT_CODES } from "#core/domain/schema/fault.ts";
import { type Json, publishedSchema } from "#core/domain/schema/published-schema.ts";
import { TITLES } from "#core/problem.ts";
import { TOKEN_LIFE_SECONDS } from "#ingest/oauth/access-token.ts";
import {
  FaultItem,
  Ping,
  ProblemDocument,
  Report,
  Result,
  TokenAnswer,
  TokenError,
  TokenRequest,
} from "#ingest/reference/answers.ts";
import { EXAMPLE_ANSWER, VALID_MESSAGE } from "#ingest/reference/example.ts";
import { LIMITS } from "#ingest/reference/limits.ts";
import { PROBLEM_CODES, type ProblemCode } from "#ingest/reference/problem-codes.ts";
import { TOKEN_ERRORS } from "#ingest/routes/token.ts";

const ref = (name: string) => ({ $ref: `#/components/schemas/${name}` });
const json = (schema: Json, example: unknown) => ({ "application/json": { schema, example } });

const RATE_HEADERS = {
  "X-RateLimit-Limit": integerHeader(
    "Requests a burst may have: of the courier whose token the request bears, else of its address.",
  ),
  "X-RateLimit-Remaining": integerHeader("Requests left of the burst."),
};

export function openapi(): Json {
  return {
    openapi: "3.1.0",
    info: {
      title: "Courier Event Ingestion API",
      version: "1.0",
      description: `Carriers push tracking events. /v1/docs says the same for people, /v1/guide walks through a first integration.\n\n${limitsText()}\n\n${faultsText()}`,
      license: { name: "Proprietary", identifier: "LicenseRef-Proprietary" },
    },
    servers: [{ url: "/", description: "The address that serves this document." }],
    paths: {
      "/v1/events": { post: messages("Send events", "sendEvents", true) },
      "/v1/events/validate": {
        post: messages("Judge a message and store nothing", "validateEvents", false),
      },
      "/v1/ping": { get: ping() },
      "/v1/oauth/token": { post: token() },
    },
    components: { schemas: schemas(), securitySchemes: securitySchemes() },
  };
}

function schemas(): Json {
  const event = publishedSchema(CourierEvent);
  const anyOf = [{ required: ["trackingNumber"] }, { required: ["externalId", "senderAccount"] }];
  return {
    Envelope: withItems(publishedSchema(Envelope), "events", "Event"),
    Event: { ...event, anyOf },
    Report: withItems(answerSchema(Report), "results", "Result"),
    Result: withItems(answerSchema(Result), "errors", "Fault"),
    Fault: answerSchema(FaultItem),
    Ping: answerSchema(Ping),
    Problem: withItems(answerSchema(ProblemDocument), "errors", "Fault"),
    TokenRequest: publishedSchema(TokenRequest),
    TokenAnswer: answerSchema(TokenAnswer),
    TokenError: answerSchema(TokenError),
  };
}

/** A minor version may add fields to an answer, so a client must not refuse them (document 2, "Versioning"). */
function answerSchema(schema: TSchema): Json {
  const { additionalProperties, ...open } = publishedSchema(schema);
  return open;
}

/** The elements of a list by the name of their schema. */
function withItems(schema: Json, list: string, name: string): Json {
  const properties = schema["properties"] as Record<string, Json>;
  return {
    ...schema,
    properties: { ...properties, [list]: { ...properties[list], items: ref(name) } },
  };
}

function securitySchemes(): Json {
  return {
    token: { type: "http", scheme: "bearer", description: "Issued at onboarding." },
    oauth: {
      type: "oauth2",
      description: "On request.",
      flows: { clientCredentials: { tokenUrl: "/v1/oauth/token", scopes: { events: "Push." } } },
    },
    certificate: { type: "mutualTLS", description: "On request, beside the token." },
  };
}

const security = [{ token: [] }, { oauth: ["events"] }, { token: [], certificate: [] }];

function messages(summary: string, operationId: string, stores: boolean): Json {
  return {
    summary,
    operationId,
    security,
    parameters: [
      header("Content-Encoding", { type: "string", enum: ["gzip", "identity"] }),
      header("X-Service-Signature", {
        type: "string",
        description:
          "t=<unix_seconds>,v1=<hex>; v1 is the HMAC-SHA256 of <t>.<body as transmitted>. There may be more than one v1.",
      }),
    ],
    requestBody: { required: true, content: json(ref("Envelope"), VALID_MESSAGE) },
    responses: {
      200: {
        description: "Processed.",
        headers: RATE_HEADERS,
        content: json(ref("Report"), EXAMPLE_ANSWER),
      },
      ...problems(stores ? [] : ["NOT_ACCEPTING", "LOG_FULL"]),
    },
  };
}

function ping(): Json {
  const statuses = [401, 403, 405, 429, 500, 503];
  const others = PROBLEM_CODES.filter(({ status }) => !statuses.includes(status));
  const ofMessages = [
    "SIGNATURE_REQUIRED",
    "BAD_SIGNATURE",
    "COURIER_MISMATCH",
    "BODY_TOO_SLOW",
    "LOG_FULL",
  ];
  return {
    summary: "Check credentials; no side effects",
    operationId: "ping",
    security,
    responses: {
      200: {
        description: "Known.",
        headers: RATE_HEADERS,
        content: json(ref("Ping"), {
          ...{ courier: "GLS_ITA", environment: "production", schemaVersions: SCHEMA_VERSIONS },
        }),
      },
      ...problems([...others.map(({ code }) => code), ...ofMessages]),
    },
  };
}

function token(): Json {
  const failed = (error: keyof typeof TOKEN_ERRORS) => ({
    headers: RATE_HEADERS,
    content: json(ref("TokenError"), { error, error_description: TOKEN_ERRORS[error] }),
  });
  return {
    summary: "Get an access token (RFC 6749, client credentials)",
    operationId: "getToken",
    security: [],
    requestBody: {
      required: true,
      content: {
        "application/x-www-form-urlencoded": {
          schema: ref("TokenRequest"),
          example: {
            ...{ grant_type: "client_credentials", scope: "events" },
            ...{ client_id: "gls-push", client_secret: "a+b/c" },
          },
        },
      },
    },
    responses: {
      200: {
        description: "A token.",
        headers: RATE_HEADERS,
        content: json(ref("TokenAnswer"), {
          ...{ access_token: "eyJhbGciOiJIUzI1NiJ9.e30.c2lnbmF0dXJl", token_type: "Bearer" },
          ...{ expires_in: TOKEN_LIFE_SECONDS, scope: "events" },
        }),
      },
      400: {
        description: "invalid_request, unsupported_grant_type, invalid_scope",
        ...failed("invalid_request"),
      },
      401: { description: "invalid_client", ...failed("invalid_client") },
      ...problems(
        PROBLEM_CODES.map(({ code }) => code).filter(
          (code) => !["RATE_LIMITED", "BODY_TOO_SLOW", "STORE_UNAVAILABLE"].includes(code),
        ),
      ),
    },
  };
}

/** Every status with its codes, without those that cannot happen here. */
function problems(without: readonly string[]): Json {
  const possible = PROBLEM_CODES.filter(({ code }) => !without.includes(code));
  const byStatus = Map.groupBy(possible, ({ status }) => status);
  return Object.fromEntries(
    [...byStatus].map(([status, rows]) => [status, problemResponse(status, rows)]),
  );
}

function problemResponse(status: number, rows: readonly ProblemCode[]): Json {
  const waits = status === 429 || status === 503;
  const [first] = rows;
  const retryAfter = { "Retry-After": integerHeader("Seconds to wait.") };
  return {
    description: rows.map(({ code, meaning }) => `${code}: ${meaning}`).join("\n\n"),
    "x-codes": rows.map(({ code }) => code),
    headers: { ...RATE_HEADERS, ...(waits && retryAfter) },
    content: {
      "application/problem+json": {
        schema: ref("Problem"),
        ...(first && { example: { ...exampleOf(first) } }),
      },
    },
  };
}

function exampleOf({ status, code, meaning }: ProblemCode): Json {
  return { type: "about:blank", title: TITLES[status], status, code, detail: meaning };
}

function header(name: string, schema: Json): Json {
  return { name, in: "header", required: false, schema };
}

function integerHeader(description: string): Json {
  return { description, schema: { type: "integer", minimum: 0 } };
}

function limitsText(): string {
  const rows = LIMITS.map(({ what, limit, then }) => `| ${what} | ${limit} | ${then} |`);
  return ["| What | Limit | At the limit |", "|---|---|---|", ...rows].join("\n");
}

function faultsText(): string {
  const rows = Object.entries(FAULT_CODES).map(([code, meaning]) => `| ${code} | ${meaning} |`);
  return ["| errors[].code | Meaning |", "|---|---|", ...rows].join("\n");
}
