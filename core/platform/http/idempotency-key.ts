/** `Idempotency-Key` as a header: its form, the request that it stands for, and the answers of every port about it. */
import { Type } from "@sinclair/typebox";
import { Problem } from "#core/platform/errors/problem.ts";
import type { Parameter } from "#core/platform/openapi/operation.ts";
import type { Fault } from "#core/platform/schema/fault.ts";
import { limit } from "#core/platform/schema/limit.ts";

export const IDEMPOTENCY_KEY = "idempotency-key";
/** Of an answer that was given before. */
export const REPLAYED = "idempotency-replayed";
const KEY_LENGTH = limit(255, "length of an idempotency key", "422");
const KEY_FORM = `^[!-~]{1,${KEY_LENGTH}}$`;
const KEY_PATTERN = new RegExp(KEY_FORM);
const RETRY_AFTER_SECONDS = "1";

export const KEY_PARAMETER: Parameter = {
  name: "Idempotency-Key",
  in: "header",
  required: false,
  description:
    "Up to 255 visible ASCII characters, such as a UUID. For 24 hours the same request under the same key is carried out once and answered the same, with `Idempotency-Replayed: true`; another request under it is 409.",
  schema: Type.String({ pattern: KEY_FORM }),
  example: "1f0c7c8e-2f0a-4c0e-9a52-6a2f1c0b7d11",
};

/** Codes of the errors of an operation that takes the key. */
export const KEY_ERRORS = ["IDEMPOTENCY_KEY_REUSED", "IDEMPOTENCY_KEY_IN_USE"] as const;

export function faultsOfKey(key: string): Fault[] {
  if (KEY_PATTERN.test(key)) return [];
  const message = `1 to ${KEY_LENGTH} visible ASCII characters.`;
  return [{ path: "Idempotency-Key", code: "BAD_FORMAT", message }];
}

export function keyReused(): Problem {
  const detail = "The Idempotency-Key was used for another request within the last 24 hours.";
  return new Problem(409, "IDEMPOTENCY_KEY_REUSED", detail);
}

/** @param freeAtMs when a key of the caller is forgotten */
export function tooManyKeys(nowMs: number, freeAtMs: number): Problem {
  const detail = "Too many requests with an Idempotency-Key within the last 24 hours.";
  const seconds = Math.max(1, Math.ceil((freeAtMs - nowMs) / 1000));
  return new Problem(429, "TOO_MANY_IDEMPOTENCY_KEYS", detail, {
    headers: { "retry-after": String(seconds) },
  });
}

export function keyInUse(): Problem {
  const detail = "The same request is being carried out under this Idempotency-Key.";
  return new Problem(409, "IDEMPOTENCY_KEY_IN_USE", detail, {
    headers: { "retry-after": RETRY_AFTER_SECONDS },
  });
}
