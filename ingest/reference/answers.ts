/** The shapes of the answers of `/v1`, for the reference; tests compare them with what the server answers. */
import { type SchemaOptions, Type } from "@sinclair/typebox";
import { FAULT_CODES, FAULTS_LISTED } from "#core/domain/schema/fault.ts";
import { PROBLEM_CODES } from "#ingest/reference/problem-codes.ts";
import { TOKEN_ERRORS } from "#ingest/routes/token.ts";

const codes = (names: readonly string[], options: SchemaOptions = {}) =>
  Type.Union(
    names.map((name) => Type.Literal(name)),
    options,
  );
const count = Type.Integer({ minimum: 0 });

export const FaultItem = Type.Object(
  {
    path: Type.String({ description: "dotted path such as delivery.podUrl; empty for the whole" }),
    code: codes(Object.keys(FAULT_CODES)),
    message: Type.String({ description: "for people; it may change" }),
  },
  { additionalProperties: false },
);

export const Result = Type.Object(
  {
    eventId: Type.Union([Type.String(), Type.Null()], { description: "null when it is no text" }),
    outcome: codes(["ACCEPTED", "DUPLICATE", "UNKNOWN_TRACKING", "INVALID"], {
      description: "a later minor version may add others",
    }),
    errors: Type.Optional(Type.Array(FaultItem, { minItems: 1, maxItems: FAULTS_LISTED })),
  },
  { additionalProperties: false },
);

export const Report = Type.Object(
  {
    messageId: Type.String(),
    receivedAt: Type.String({ description: "date and time with the offset of Europe/Rome" }),
    accepted: count,
    duplicate: count,
    unknownTracking: count,
    invalid: count,
    results: Type.Array(Result, { description: "one for each event, in send order" }),
  },
  { additionalProperties: false },
);

export const Ping = Type.Object(
  {
    courier: Type.String(),
    environment: Type.String(),
    schemaVersions: Type.Array(Type.String()),
  },
  { additionalProperties: false },
);

export const ProblemDocument = Type.Object({
  type: Type.String(),
  title: Type.String(),
  status: Type.Integer(),
  code: codes(PROBLEM_CODES.map(({ code }) => code)),
  detail: Type.String({ description: "for people; it may change" }),
  errors: Type.Optional(Type.Array(FaultItem, { description: "of INVALID_ENVELOPE" })),
});

export const TokenRequest = Type.Object({
  grant_type: Type.Literal("client_credentials"),
  scope: Type.Optional(Type.Literal("events")),
  client_id: Type.Optional(Type.String({ description: "unless sent by HTTP Basic" })),
  client_secret: Type.Optional(Type.String({ description: "unless sent by HTTP Basic" })),
});

export const TokenAnswer = Type.Object(
  {
    access_token: Type.String(),
    token_type: Type.Literal("Bearer"),
    expires_in: Type.Integer({ description: "seconds" }),
    scope: Type.Literal("events"),
  },
  { additionalProperties: false },
);

export const TokenError = Type.Object(
  { error: codes(Object.keys(TOKEN_ERRORS)), error_description: Type.String() },
  { additionalProperties: false },
);
