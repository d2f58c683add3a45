/**
 * `Idempotency-Key`, an extension of document 1 at every POST that creates, sends or is billed: the same request under the
 * same key is carried out once within 24 hours, and its repetitions get the same answer. An error leaves no key behind,
 * since nothing was done. After a process has died in the middle the request is carried out again: what it had created by
 * then is reported as existing, as without a key.
 */
import { Type } from "@sinclair/typebox";
import type { Caller } from "#api/auth/authenticated.ts";
import type { ApiDeps } from "#api/deps.ts";
import { validationFailed } from "#api/error-response.ts";
import type { Operation, Parameter } from "#core/http/openapi/operation.ts";
import { turns } from "#core/next-turn.ts";
import { Problem } from "#core/problem.ts";
import { beginRequest, endRequest } from "#core/redis/merchant/idempotency.ts";

const KEY_LENGTH = 255;
const KEY_FORM = `^[!-~]{1,${KEY_LENGTH}}$`;
const KEY_PATTERN = new RegExp(KEY_FORM);
const HEADER = "idempotency-key";
const RETRY_AFTER_SECONDS = "1";

const PARAMETER: Parameter = {
  ...{ name: "Idempotency-Key", in: "header", required: false },
  description:
    "Up to 255 visible ASCII characters, such as a UUID. For 24 hours the same request under the same key is carried out once and answered the same, with `Idempotency-Replayed: true`; another request under it is 409.",
  schema: Type.String({ pattern: KEY_FORM }),
  example: "1f0c7c8e-2f0a-4c0e-9a52-6a2f1c0b7d11",
};

/** An operation that takes the key. */
export function repeatable(operation: Operation): Operation {
  const { parameters = [], errors = [] } = operation;
  return {
    ...operation,
    parameters: [...parameters, PARAMETER],
    errors: [...errors, "IDEMPOTENCY_KEY_REUSED", "IDEMPOTENCY_KEY_IN_USE"],
  };
}

/** Of the context of a route. */
interface Asked {
  readonly request: Request;
  readonly caller: Caller;
  readonly set: { status?: number | string; readonly headers: Record<string, string | number> };
}

interface Answered<T> {
  readonly status: number;
  readonly location: string | null;
  readonly body: T;
}

/** Of an answer whose parts stand elsewhere, and may be erased there. */
interface Kept<T> {
  /** What is kept for repetitions. */
  readonly keep: (body: T) => T;
  /** The answer again, from what was kept. */
  readonly recall: (body: T) => T | Promise<T>;
}

const WHOLE = { keep: <T>(body: T) => body, recall: <T>(body: T) => body };

/**
 * Carries a request out unless it has been carried out under its key.
 * @param parts of the body as they were understood, each one JSON value
 * @throws {Problem} 409, 422 and what `carryOut` throws
 */
export async function onceByKey<T>(
  { redis, live, log }: ApiDeps,
  { request, caller, set }: Asked,
  parts: Iterable<unknown>,
  carryOut: () => Promise<T>,
  kept: Kept<T> = WHOLE,
): Promise<T> {
  const key = request.headers.get(HEADER);
  if (key === null) return carryOut();
  checkKey(key);
  const whose = { companyId: caller.company.id, channelId: caller.channel.id };
  const fingerprint = await fingerprintOf(request, parts);
  const begun = await beginRequest(redis, whose, key, fingerprint, live.now());
  if (begun.kind === "other") throw reused();
  if (begun.kind === "running") throw inUse();
  if (begun.kind === "answered") return kept.recall(replay<T>(set, begun.answer));
  let answer: string | null = null;
  try {
    const body = await carryOut();
    const status = typeof set.status === "number" ? set.status : 200;
    const location = set.headers["location"] ?? null;
    answer = JSON.stringify({ status, location, body: kept.keep(body) });
    return body;
  } finally {
    // The request has been carried out whatever becomes of this.
    await endRequest(redis, whose, key, begun.owner, answer).catch((error: Error) =>
      log.warn({ reason: error.message }, "an answer could not be kept for repetitions"),
    );
  }
}

/** @throws {Problem} 422 */
function checkKey(key: string): void {
  if (KEY_PATTERN.test(key)) return;
  const message = `1 to ${KEY_LENGTH} visible ASCII characters.`;
  throw validationFailed([{ path: "Idempotency-Key", code: "BAD_FORMAT", message }]);
}

async function fingerprintOf({ method, url }: Request, parts: Iterable<unknown>): Promise<string> {
  const turn = turns();
  const hasher = new Bun.CryptoHasher("sha256");
  hasher.update(`${method} ${new URL(url).pathname}\n`);
  for (const part of parts) {
    hasher.update(`${JSON.stringify(part)}\n`);
    if (turn.due()) await turn.take();
  }
  return hasher.digest("base64url");
}

function replay<T>(set: Asked["set"], answer: string): T {
  const { status, location, body }: Answered<T> = JSON.parse(answer);
  set.status = status;
  set.headers["idempotency-replayed"] = "true";
  if (location !== null) set.headers["location"] = location;
  return body;
}

function reused(): Problem {
  const detail = "The Idempotency-Key was used for another request within the last 24 hours.";
  return new Problem(409, "IDEMPOTENCY_KEY_REUSED", detail);
}

function inUse(): Problem {
  const detail = "The same request is being carried out under this Idempotency-Key.";
  return new Problem(409, "IDEMPOTENCY_KEY_IN_USE", detail, {
    headers: { "retry-after": RETRY_AFTER_SECONDS },
  });
}
