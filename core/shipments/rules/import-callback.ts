/** The completion call of an import (document 1, `POST /v2/shipments/import`), signed as document 3 signs webhooks. */
import { type Static, Type } from "@sinclair/typebox";
import { nullableText as text } from "#core/platform/schema/nullable.ts";
import { type Answer, errorOf, meaningOf } from "#core/webhooks/rules/delivery-outcome.ts";

/** What tells its requests from webhooks, where one receiver takes both. */
export const IMPORT_CALLBACK_TYPE = "import.finished";

/** What a job says about it. */
export const ImportCallbackView = Type.Object({
  status: Type.Union(
    ["pending", "delivered", "failed", "refused"].map((name) =>
      Type.Literal(name as ImportCallbackStatus),
    ),
    {
      description:
        "pending: not sent yet; delivered: answered 2xx; failed: anything else, and not repeated, or not sent since too many of the channel were waiting; refused: the host is not public, so nothing was sent",
    },
  ),
  httpStatus: Type.Union([Type.Integer(), Type.Null()]),
  error: text,
  sentAt: Type.Union([Type.String(), Type.Null()], { description: "ISO 8601" }),
});
export type ImportCallbackView = Static<typeof ImportCallbackView>;
type ImportCallbackStatus = "pending" | "delivered" | "failed" | "refused";

export const PENDING_CALLBACK: ImportCallbackView = {
  status: "pending",
  httpStatus: null,
  error: null,
  sentAt: null,
};

/** Of a job that ends while the channel has as many callbacks waiting as it may. */
export const UNSENT_CALLBACK: ImportCallbackView = {
  status: "failed",
  httpStatus: null,
  error: "too many callbacks are waiting",
  sentAt: null,
};

export function callbackOutcome(answer: Answer, sentAtMs: number): ImportCallbackView {
  const failure = answer.kind === "refused" ? "refused" : "failed";
  return {
    status: meaningOf(answer) === "delivered" ? "delivered" : failure,
    httpStatus: answer.kind === "answered" ? answer.httpStatus : null,
    error: errorOf(answer),
    sentAt: answer.kind === "refused" ? null : new Date(sentAtMs).toISOString(),
  };
}
