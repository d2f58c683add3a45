/**
 * `Idempotency-Key`, an extension of document 1 at every POST that creates, sends or is billed: the same request under the
 * same key is carried out once within 24 hours, and its repetitions get the same answer. An error leaves no key behind,
 * since nothing was done. After a process has died in the middle the request is carried out again: what it had created by
 * then is reported as existing, as without a key.
 */
import type { Caller } from "#api/auth/authenticated.ts";
import type { ApiDeps } from "#api/deps.ts";
import { beginRequest, endRequest } from "#core/merchants/store/idempotency.ts";
import type { Declaration } from "#core/platform/http/access.ts";
import {
  faultsOfKey,
  IDEMPOTENCY_KEY,
  KEY_ERRORS,
  KEY_PARAMETER,
  keyInUse,
  keyReused,
  REPLAYED,
} from "#core/platform/http/idempotency-key.ts";
import { packAnswer, unpackAnswer } from "#core/platform/http/kept-answer.ts";
import { turns } from "#core/platform/process/next-turn.ts";
import { validationFailed } from "./error-response.ts";

/** The declaration of a route that takes the key. */
export function repeatable<const D extends Declaration>(declaration: D): D {
  const { parameters = [], errors = [] } = declaration;
  return {
    ...declaration,
    parameters: [...parameters, KEY_PARAMETER],
    errors: [...errors, ...KEY_ERRORS],
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
  const key = request.headers.get(IDEMPOTENCY_KEY);
  if (key === null) return carryOut();
  const faults = faultsOfKey(key);
  if (faults.length > 0) throw validationFailed(faults);
  const whose = { companyId: caller.company.id, channelId: caller.channel.id };
  const fingerprint = await fingerprintOf(request, parts);
  const begun = await beginRequest(redis, whose, key, fingerprint, live.now());
  if (begun.kind === "other") throw keyReused();
  if (begun.kind === "answered") {
    return kept.recall(replay<T>(set, await unpackAnswer(begun.answer)));
  }
  if (begun.kind !== "begun") throw keyInUse();
  let answer: string | null = null;
  try {
    const body = await carryOut();
    const status = typeof set.status === "number" ? set.status : 200;
    const location = set.headers["location"] ?? null;
    answer = await packAnswer(JSON.stringify({ status, location, body: kept.keep(body) }));
    return body;
  } finally {
    // The request has been carried out whatever becomes of this.
    await endRequest(redis, whose, key, begun.owner, answer).catch((error: Error) =>
      log.warn({ reason: error.message }, "an answer could not be kept for repetitions"),
    );
  }
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
  set.headers[REPLAYED] = "true";
  if (location !== null) set.headers["location"] = location;
  return body;
}
