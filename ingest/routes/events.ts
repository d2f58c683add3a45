/** `POST /v1/events`: courier events in (document 2, "Endpoints"). */
import { type Static, Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { Envelope, SCHEMA_VERSIONS } from "#core/events/rules/event.ts";
import type { ErrorCode } from "#core/platform/errors/error-catalogue.ts";
import { declared, guard, route } from "#core/platform/http/access.ts";
import type { Peer } from "#core/platform/http/peer.ts";
import { inHeader, json } from "#core/platform/openapi/operation.ts";
import type { Runtime } from "#core/runtime/runtime.ts";
import { type AuthenticateDeps, authenticate, bearerOf } from "#ingest/authenticate.ts";
import { storingHandler, validatingHandler } from "#ingest/messages/message-handlers.ts";
import { MessageReport } from "#ingest/messages/message-report.ts";
import { messageReceiver, type Received } from "#ingest/messages/receive-message.ts";
import { EXAMPLE_ANSWER, VALID_MESSAGE } from "#ingest/reference/example.ts";

export const Ping = Type.Object({
  courier: Type.String(),
  environment: Type.String(),
  schemaVersions: Type.Array(Type.String()),
});

/** Of calls that send a message. */
const MESSAGE_ERRORS: readonly ErrorCode[] = [
  "MALFORMED_BODY",
  "INVALID_ENVELOPE",
  "UNSUPPORTED_SCHEMA_VERSION",
  "COURIER_MISMATCH",
  "SIGNATURE_REQUIRED",
  "BAD_SIGNATURE",
  "BODY_TOO_LARGE",
  "BODY_TOO_SLOW",
  "WRONG_CONTENT_TYPE",
  "WRONG_CONTENT_ENCODING",
];

function messages(id: string, summary: string, errors: readonly ErrorCode[]) {
  return declared({
    id,
    summary,
    parameters: [
      inHeader("Content-Encoding", Type.Union([Type.Literal("gzip"), Type.Literal("identity")])),
      inHeader(
        "X-Service-Signature",
        Type.String({
          description:
            "t=<unix_seconds>,v1=<hex>; v1 is the HMAC-SHA256 of <t>.<body as transmitted>. There may be more than one v1.",
        }),
      ),
    ],
    body: { schema: Envelope, example: VALID_MESSAGE },
    answers: { 200: json("Processed.", MessageReport, EXAMPLE_ANSWER) },
    errors: [...MESSAGE_ERRORS, ...errors],
  });
}

const OPERATIONS = {
  send: messages("sendEvents", "Send events", ["NOT_ACCEPTING", "LOG_FULL", "REFERENCES_BUSY"]),
  validate: messages("validateEvents", "Judge a message and store nothing", ["REFERENCES_BUSY"]),
  ping: declared({
    id: "ping",
    summary: "Check credentials; no side effects",
    answers: {
      200: json("Known.", Ping, {
        courier: "GLS_ITA",
        environment: "production",
        schemaVersions: [...SCHEMA_VERSIONS],
      }),
    },
  }),
};

/** @param findPeer the far end of a request */
export function eventRoutes(
  deps: Runtime & AuthenticateDeps,
  findPeer: (request: Request, server: Received["server"]) => Peer,
) {
  const receive = messageReceiver(deps, findPeer);
  const storing = storingHandler(deps);
  const validating = validatingHandler(deps);
  // These routes check the courier's token themselves: a message is read while its courier is authenticated.
  return new Elysia({ name: "events", detail: guard("courier") })
    .post(
      "/v1/events",
      ({ request, server }) => receive({ request, server }, storing),
      route(OPERATIONS.send),
    )
    .post(
      "/v1/events/validate",
      ({ request, server }) => receive({ request, server }, validating),
      route(OPERATIONS.validate),
    )
    .get(
      "/v1/ping",
      async ({ request, server }) => {
        const bearer = await bearerOf(deps, request.headers.get("authorization"));
        const peer = () => findPeer(request, server);
        const { courier, rateHeaders } = await authenticate(deps, bearer, peer);
        const { code, environment } = courier;
        const answer = { courier: code, environment, schemaVersions: [...SCHEMA_VERSIONS] };
        return Response.json(answer satisfies Static<typeof Ping>, { headers: rateHeaders });
      },
      route(OPERATIONS.ping),
    );
}
