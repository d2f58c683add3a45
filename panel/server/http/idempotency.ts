/**
 * `Idempotency-Key` at every POST of the panel that changes or sends anything: the same request of the same caller under the
 * same key is carried out once within 24 hours, and its repetitions get the same answer. Answers hold secrets that are shown
 * once, so they are kept sealed, under a key of their caller's own. An error leaves no key behind.
 */

import { beginRequest, endRequest, type KeyOwner } from "#core/merchants/store/idempotency.ts";
import { Problem } from "#core/platform/errors/problem.ts";
import { keepBody, readBody } from "#core/platform/http/body/read-body.ts";
import {
  faultsOfKey,
  IDEMPOTENCY_KEY,
  keyInUse,
  keyReused,
  REPLAYED,
  tooManyKeys,
} from "#core/platform/http/idempotency-key.ts";
import { packAnswer, unpackAnswer } from "#core/platform/http/kept-answer.ts";
import { cipherOf } from "#core/platform/secrets/secrets.ts";
import type { Caller, PanelDeps } from "#panel/server/caller.ts";

interface Settings {
  status?: number | string;
  readonly headers: Record<string, string | number>;
}

interface Begun {
  readonly whose: KeyOwner & { readonly identity: string };
  readonly key: string;
  readonly owner: string;
}

interface Answered {
  readonly status: number;
  /** Absent where the answer has no body. */
  readonly body?: unknown;
}

const begun = new WeakMap<Request, Begun>();

/**
 * @param bodyBytes the largest body that the call takes
 * @returns what was answered before; null = the request is to be carried out
 * @throws {Problem} 409, 422, 429, and what is wrong with the body
 */
export async function answeredBefore(
  deps: PanelDeps,
  request: Request,
  caller: Caller,
  set: Settings,
  bodyBytes: number,
): Promise<unknown> {
  const key = request.headers.get(IDEMPOTENCY_KEY);
  if (key === null) return null;
  const violations = faultsOfKey(key);
  if (violations.length > 0) {
    const detail = "The Idempotency-Key is invalid.";
    throw new Problem(422, "INVALID_HEADER", detail, { members: { violations } });
  }
  const whose = { identity: caller.account?.id ?? "operator" };
  const fingerprint = await fingerprintOf(request, bodyBytes);
  const begin = await beginRequest(deps.redis, whose, key, fingerprint, deps.live.now());
  switch (begin.kind) {
    case "other":
      throw keyReused();
    case "running":
      throw keyInUse();
    case "full":
      throw tooManyKeys(deps.live.now(), begin.freeAtMs);
    case "begun":
      begun.set(request, { whose, key, owner: begin.owner });
      return null;
    case "answered":
      return answerAgain(deps, whose.identity, begin.answer, set);
  }
}

async function answerAgain(
  deps: PanelDeps,
  identity: string,
  kept: string,
  set: Settings,
): Promise<unknown> {
  const answer = cipherFor(deps, identity).open(kept);
  if (answer === null) throw new Error("an answer kept for repetitions does not open");
  const { status, body }: Answered = JSON.parse(await unpackAnswer(answer));
  set.status = status;
  set.headers[REPLAYED] = "true";
  // Undefined would let the handler go on.
  return body === undefined ? new Response(null, { status }) : body;
}

/** Keeps the answer of a request that was begun under a key. */
export async function keepAnswer(
  deps: PanelDeps,
  request: Request,
  set: Settings,
  answer: unknown,
): Promise<void> {
  if (!begun.has(request)) return;
  const status = typeof set.status === "number" ? set.status : 200;
  await end(
    deps,
    request,
    answer instanceof Response ? await copyOf(answer) : { status, body: answer },
  );
}

async function copyOf(response: Response): Promise<Answered> {
  const text = await response.clone().text();
  return { status: response.status, ...(text !== "" && { body: JSON.parse(text) }) };
}

/** Frees the key of a request that was answered with an error. */
export async function forgetKey(deps: PanelDeps, request: Request): Promise<void> {
  await end(deps, request, null);
}

async function end(deps: PanelDeps, request: Request, answer: Answered | null): Promise<void> {
  const own = begun.get(request);
  if (!own) return;
  begun.delete(request);
  const { whose, key, owner } = own;
  const packed = answer && (await packAnswer(JSON.stringify(answer)));
  const sealed = packed && cipherFor(deps, whose.identity).seal(packed);
  // The request has been carried out whatever becomes of this.
  await endRequest(deps.redis, whose, key, owner, sealed).catch((error: Error) =>
    deps.log.warn({ reason: error.message }, "an answer could not be kept for repetitions"),
  );
}

function cipherFor({ secrets }: PanelDeps, identity: string) {
  return cipherOf(secrets.vault.keyFor(`answers of the panel to ${identity}`));
}

/** Of the path, the query and the bytes of the body, which the handler then gets without a second copy of them. */
async function fingerprintOf(request: Request, bodyBytes: number): Promise<string> {
  const { pathname, search } = new URL(request.url);
  const bytes = await readBody(request, bodyBytes);
  keepBody(request, bytes);
  const hasher = new Bun.CryptoHasher("sha256");
  hasher.update(`${request.method} ${pathname}${search}\n`);
  return hasher.update(bytes).digest("base64url");
}
