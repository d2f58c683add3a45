/** Reads the JSON body of a panel call after its caller was authenticated: no route lets the framework read one earlier. */

import { Problem } from "#core/platform/errors/problem.ts";
import { readJsonValue } from "#core/platform/http/body/read-json.ts";
import type { Fault } from "#core/platform/schema/fault.ts";
import { limit } from "#core/platform/schema/limit.ts";

/** The largest is a statement of 20,000 characters, each of them an escape, or a mapping with its 50 rules. */
export const PANEL_BODY_BYTES = limit(256 * 1024, "body of a panel request", "413");
export const ORDERS_BODY_BYTES = limit(32 * 1024 * 1024, "body of an orders import", "413");

/**
 * @returns undefined for a request without a body
 * @throws {Problem} 400 invalid UTF-8 or not strict JSON; 408, 413; 422 text that is not valid Unicode
 */
export function readJson(request: Request, limitBytes = PANEL_BODY_BYTES): Promise<unknown> {
  return readJsonValue(request, limitBytes, invalidBody);
}

export function invalidBody(violations: readonly Fault[]): Problem {
  return new Problem(422, "INVALID_BODY", "The body is invalid.", { members: { violations } });
}
