/**
 * Every request has an id: the caller's own from `X-Request-Id`, or one that is made. It is in every answer and log line. Until the
 * answer, background work gives way to it.
 */
import { randomUUID } from "node:crypto";
import { Elysia } from "elysia";
import { foreground } from "#core/platform/process/background.ts";
import { limit } from "#core/platform/schema/limit.ts";
import { withRequestId } from "./request-id.ts";

export const REQUEST_ID_LENGTH = limit(
  128,
  "a caller's request id, in letters, digits, dots, hyphens and underscores",
  "another id is made",
);
/** It goes into logs: no blanks, quotes or signs of an e-mail address. */
const FORM = new RegExp(`^[A-Za-z0-9._-]{1,${REQUEST_ID_LENGTH}}$`);
const HEADER = "x-request-id";

/** Of Elysia, whose type does not tell. */
type Handle = (request: Request, ...others: unknown[]) => Promise<Response> | Response;

/** Wraps the whole app, so that answers to requests without a route, and to those that fail, have the header too. */
export function requestIds() {
  return new Elysia({ name: "request-ids" }).wrap((handle) => {
    return async (request: Request, ...others: unknown[]) => {
      const given = request.headers.get(HEADER);
      const id = given !== null && FORM.test(given) ? given : randomUUID();
      const response = await foreground(() =>
        withRequestId(id, () => (handle as unknown as Handle)(request, ...others)),
      );
      response.headers.set(HEADER, id);
      return response;
    };
  });
}
