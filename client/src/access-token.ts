/** Exchanges the API key for an access token, once for all requests, and again before it expires. */
import type { Token } from "./generated/types.gen.ts";
import { WaybillError } from "./waybill-error.ts";

/** Before the end of a token's life: requests that wait for the budget must not outlive it. */
const RENEW_BEFORE_MS = 300_000;

export interface AccessToken {
  /** @throws {WaybillError} if the key is refused */
  readonly get: () => Promise<string>;
  /** The API no longer takes it, such as after a change of its signing secret. */
  readonly forget: (token: string) => void;
}

interface Held {
  /** Shared by the requests that wait for it. */
  token: Promise<string>;
  /** Null until it is there. */
  value: string | null;
  untilMs: number;
}

const NONE = Promise.resolve("");

export function createAccessToken(
  send: (request: Request) => Promise<Response>,
  baseUrl: string,
  apiKey: string,
): AccessToken {
  let current: Held | null = null;

  async function exchange(): Promise<Token> {
    const response = await send(
      new Request(`${baseUrl}/v2/auth/token`, {
        method: "POST",
        // A redirect would take the key to another host.
        redirect: "manual",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ apiKey }),
      }),
    );
    const body: unknown = await response.json().catch(() => null);
    if (!response.ok) throw new WaybillError(response.status, body);
    return body as Token;
  }

  async function renew(held: Held): Promise<string> {
    try {
      const { token, expires_in: seconds } = await exchange();
      held.untilMs = Date.now() + seconds * 1000 - RENEW_BEFORE_MS;
      held.value = token;
      return token;
    } catch (error) {
      if (current === held) current = null;
      throw error;
    }
  }

  return {
    get() {
      if (current && Date.now() < current.untilMs) return current.token;
      const held: Held = { token: NONE, value: null, untilMs: Number.POSITIVE_INFINITY };
      current = held;
      held.token = renew(held);
      return held.token;
    },
    forget(token) {
      if (current?.value === token) current = null;
    },
  };
}
