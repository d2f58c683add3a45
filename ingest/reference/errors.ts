/** `GET /v1/errors` and `/v1/errors.json`: what every code of a problem document of `/v1` means. */
import { Type } from "@sinclair/typebox";
import { errorsOf } from "#core/platform/errors/error-catalogue.ts";
import { errorRoutes } from "#core/platform/http/errors-page.ts";
import { FAULT_CODES, FaultItem } from "#core/platform/schema/fault.ts";
import { UNCOUNTED_HEADERS } from "#ingest/authenticate.ts";

/** RFC 7807. */
export const CourierProblem = Type.Object({
  type: Type.String({ description: "address of the explanation of the code" }),
  title: Type.String(),
  status: Type.Integer(),
  code: Type.Union(errorsOf("courier").map(({ code }) => Type.Literal(code))),
  detail: Type.String({ description: "for people; it may change" }),
  errors: Type.Optional(Type.Array(FaultItem, { description: "of INVALID_ENVELOPE" })),
  requestId: Type.String({ description: "as in the header X-Request-Id" }),
});

export const courierErrors = () =>
  errorRoutes({
    api: "courier",
    title: "Error codes of the courier event ingestion API",
    shapes:
      "An error is a problem document (RFC 7807): {type, title, status, code, detail, requestId}, with errors[] for an envelope that is invalid. An INVALID event has errors[] of its own in the results.",
    lists: [{ title: "Codes of errors[]", name: "faults", codes: FAULT_CODES }],
    headers: UNCOUNTED_HEADERS,
    links: { Reference: "/v1/docs", "OpenAPI description": "/v1/openapi.json" },
  });
