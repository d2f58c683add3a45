/** OpenAPI 3.1 description of `/v1`, made of the schemas that the service itself checks with. */
import type { TSchema } from "@sinclair/typebox";
import { CourierEvent, Envelope } from "#core/domain/event.ts";
import { FAULT_CODES } from "#core/domain/fault.ts";
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
import { LIMITS } from "#ingest/reference/limits.ts";
import { PROBLEM_CODES, type ProblemCode } from "#ingest/reference/problem-codes.ts";

type Json = Record<string, unknown>;

const ref = (name: string) => ({ $ref: `#/components/schemas/${name}` });
const json = (schema: Json) => ({ "application/json": { schema } });

/** Our own formats in the words of JSON Schema. */
const FORMATS: Readonly<Record<string, string>> = {
  "offset-date-time": "date-time",
  "calendar-date": "date",
  "http-uri": "uri",
};

const RATE_HEADERS = {
  "X-RateLimit-Limit": integerHeader("Requests a burst may have."),
  "X-RateLimit-Remaining": integerHeader("Requests left of the burst."),
};

export function openapi(): Json {
  return {
    openapi: "3.1.0",
    info: {
      title: "Courier Event Ingestion API",
      version: "1.0",
      description: `Carriers push tracking events.\n\n${limitsText()}\n\n${faultsText()}`,
    },
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
  const event = plain(CourierEvent);
  const anyOf = [{ required: ["trackingNumber"] }, { required: ["externalId", "senderAccount"] }];
  const envelope = plain(Envelope);
  const properties = envelope["properties"] as Record<string, Json>;
  const events = { ...properties["events"], items: ref("Event") };
  return {
    Envelope: { ...envelope, properties: { ...properties, events } },
    Event: { ...event, anyOf },
    Report: plain(Report),
    Result: plain(Result),
    Fault: plain(FaultItem),
    Ping: plain(Ping),
    Problem: plain(ProblemDocument),
    TokenRequest: plain(TokenRequest),
    TokenAnswer: plain(TokenAnswer),
    TokenError: plain(TokenError),
  };
}

function plain(schema: TSchema): Json {
  return JSON.parse(JSON.stringify(schema), (key, value) =>
    key === "format" ? (FORMATS[value] ?? value) : value,
  );
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

const security = [{ token: [] }, { oauth: ["events"] }];

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
          "t=<unix_seconds>,v1=<hex>; v1 is the HMAC-SHA256 of <t>.<body as transmitted>. More than one v1 may stand there.",
      }),
    ],
    requestBody: { required: true, content: json(ref("Envelope")) },
    responses: {
      200: { description: "Processed.", headers: RATE_HEADERS, content: json(ref("Report")) },
      ...problems(stores ? [] : ["NOT_ACCEPTING", "LOG_FULL"]),
    },
  };
}

function ping(): Json {
  const statuses = [401, 403, 405, 429, 500, 503];
  const others = PROBLEM_CODES.filter(({ status }) => !statuses.includes(status));
  const ofMessages = ["SIGNATURE_REQUIRED", "BAD_SIGNATURE", "COURIER_MISMATCH", "LOG_FULL"];
  return {
    summary: "Check credentials; no side effects",
    operationId: "ping",
    security,
    responses: {
      200: { description: "Known.", headers: RATE_HEADERS, content: json(ref("Ping")) },
      ...problems([...others.map(({ code }) => code), ...ofMessages]),
    },
  };
}

function token(): Json {
  const failed = { headers: RATE_HEADERS, content: json(ref("TokenError")) };
  return {
    summary: "Get an access token (RFC 6749, client credentials)",
    operationId: "getToken",
    security: [],
    requestBody: {
      required: true,
      content: { "application/x-www-form-urlencoded": { schema: ref("TokenRequest") } },
    },
    responses: {
      200: { description: "A token.", headers: RATE_HEADERS, content: json(ref("TokenAnswer")) },
      400: { description: "invalid_request, unsupported_grant_type, invalid_scope", ...failed },
      401: { description: "invalid_client", ...failed },
      ...problems(
        PROBLEM_CODES.map(({ code }) => code).filter(
          (code) => !["RATE_LIMITED", "STORE_UNAVAILABLE"].includes(code),
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
  const retryAfter = { "Retry-After": integerHeader("Seconds to wait.") };
  return {
    description: rows.map(({ code, meaning }) => `${code}: ${meaning}`).join("\n\n"),
    "x-codes": rows.map(({ code }) => code),
    headers: { ...RATE_HEADERS, ...(waits && retryAfter) },
    content: { "application/problem+json": { schema: ref("Problem") } },
  };
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
