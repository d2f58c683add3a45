/** What the routes do not say in the OpenAPI document of `/v1`. */

import { BODY_LIMIT_BYTES, CourierEvent, Envelope } from "#core/events/rules/event.ts";
import { errorsOf } from "#core/platform/errors/error-catalogue.ts";
import { explanationOf } from "#core/platform/http/errors-page.ts";
import { type Api, header, problemExample } from "#core/platform/openapi/document.ts";
import { FAULT_CODES, FaultItem } from "#core/platform/schema/fault.ts";
import { EventResult, MessageReport } from "#ingest/messages/message-report.ts";
import { CourierProblem } from "#ingest/reference/errors.ts";
import { LIMITS } from "#ingest/reference/limits.ts";
import { MEMBER_WORDS } from "#ingest/reference/member-words.ts";
import { Ping } from "#ingest/routes/events.ts";
import { TokenAnswer, TokenError, TokenRequest } from "#ingest/routes/token.ts";

const whole = { type: "integer", minimum: 0 };
const RATE_HEADERS = {
  "X-RateLimit-Limit": header(
    "Requests a burst may have: of the courier whose token the request bears, else of its address.",
    whole,
  ),
  "X-RateLimit-Remaining": header("Requests left of the burst.", whole),
};
const RETRY_AFTER = { "Retry-After": header("Seconds to wait.", whole) };

export const COURIER_API: Api = {
  info: {
    title: "Courier Event Ingestion API",
    version: "1.0",
    description: `Couriers push tracking events. /v1/docs says the same for people, /v1/guide walks through a first integration. Query parameters are ignored.\n\n${limitsText()}\n\n${faultsText()}`,
  },
  tags: {
    events: { name: "Events", description: "Messages of up to 500 tracking events." },
    ping: { name: "Credentials", description: "Check credentials, and get access tokens." },
    oauth: { name: "Access tokens", description: "For couriers with an OAuth client." },
  },
  components: {
    Envelope,
    Event: CourierEvent,
    Report: MessageReport,
    Result: EventResult,
    Fault: FaultItem,
    Ping,
    Problem: CourierProblem,
    TokenRequest,
    TokenAnswer,
    TokenError,
  },
  memberWords: MEMBER_WORDS,
  sampleToken: "issued at onboarding",
  securitySchemes: {
    token: { type: "http", scheme: "bearer", description: "Issued at onboarding." },
    oauth: {
      type: "oauth2",
      description: "On request.",
      flows: { clientCredentials: { tokenUrl: "/v1/oauth/token", scopes: { events: "Push." } } },
    },
    certificate: { type: "mutualTLS", description: "On request, beside the token." },
  },
  security: [{ token: [] }, { oauth: ["events"] }, { token: [], certificate: [] }],
  errors: errorsOf("courier"),
  errorShape: (error) => ({
    content: [
      {
        schema: CourierProblem,
        example: problemExample(error, explanationOf("courier", error.code) ?? "about:blank"),
        mediaType: "application/problem+json",
      },
    ],
    headers: {
      ...RATE_HEADERS,
      ...((error.status === 429 || error.status === 503) && RETRY_AFTER),
    },
  }),
  answerHeaders: () => RATE_HEADERS,
  bodyLimitBytes: BODY_LIMIT_BYTES,
  nullIsAbsent: false,
};

function limitsText(): string {
  const rows = LIMITS.map(({ what, limit, then }) => `| ${what} | ${limit} | ${then} |`);
  return ["| What | Limit | At the limit |", "|---|---|---|", ...rows].join("\n");
}

function faultsText(): string {
  const rows = Object.entries(FAULT_CODES).map(([code, meaning]) => `| ${code} | ${meaning} |`);
  return ["| errors[].code | Meaning |", "|---|---|", ...rows].join("\n");
}
