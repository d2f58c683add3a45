/** Sends a request until it has an answer worth having: with a token, within the budget, again where that is safe. */
import type { AccessToken } from "./access-token.ts";
import type { Budget } from "./budget.ts";
import { pause } from "./pause.ts";
import { WaybillError } from "./waybill-error.ts";

type Send = (request: Request) => Promise<Response>;

/** Tries of one request in all. */
const TRIES = 5;
/** A longer `Retry-After` is the caller's to decide about. */
const LONGEST_RETRY_AFTER_MS = 120_000;
const FIRST_WAIT_MS = 500;

export interface SendDeps {
  readonly fetch: Send;
  readonly token: AccessToken;
  readonly budget: Budget;
}

export function persistentFetch({ fetch, token, budget }: SendDeps): Send {
  async function sendAs(bearer: string, request: Request): Promise<Response> {
    const headers = new Headers(request.headers);
    headers.set("authorization", `Bearer ${bearer}`);
    const sent = new Request(request.clone() as Request, { headers });
    let response: Response | null = null;
    await budget.take(request.signal);
    try {
      response = await fetch(sent);
      return response;
    } finally {
      budget.settle(response);
    }
  }

  async function send(request: Request): Promise<Response> {
    const bearer = await token.get();
    const response = await sendAs(bearer, request);
    if (response.status !== 401) return response;
    token.forget(bearer);
    return sendAs(await token.get(), request);
  }

  return (request) => {
    if (request.method === "POST" && !request.headers.has("idempotency-key")) {
      request.headers.set("idempotency-key", crypto.randomUUID());
    }
    return persistently(request, send);
  };
}

/** A request that creates or sends has an idempotency key, so that it may be repeated after its answer was lost. */
export async function persistently(request: Request, send: Send): Promise<Response> {
  for (let tries = 1; ; tries += 1) {
    const isLast = tries >= TRIES;
    const response = await send(request).catch((error: unknown) => {
      const isAnswer = error instanceof WaybillError;
      if (isAnswer || isLast || request.signal.aborted) throw error;
      return null;
    });
    const waitMs = response === null ? backoffMs(tries) : retryWaitMs(response, tries);
    if (response && (waitMs === null || isLast)) return response;
    await response?.body?.cancel();
    await pause(waitMs ?? 0, request.signal);
  }
}

/** Null = the answer stands. */
function retryWaitMs({ status, headers }: Response, tries: number): number | null {
  // 409 with Retry-After: the same request is being carried out, or the carrier is being asked.
  const isBusy = status === 409 && headers.has("retry-after");
  if (status !== 429 && status !== 503 && !isBusy) return null;
  const seconds = Number(headers.get("retry-after") ?? Number.NaN);
  if (Number.isNaN(seconds)) return backoffMs(tries);
  const askedMs = seconds * 1000;
  return askedMs > LONGEST_RETRY_AFTER_MS ? null : askedMs + Math.random() * FIRST_WAIT_MS;
}

function backoffMs(tries: number): number {
  return FIRST_WAIT_MS * 2 ** (tries - 1) * (0.5 + Math.random());
}
