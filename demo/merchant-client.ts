/** The demo merchants' side of the API: a token, shipments registered, how many there are. */
import type { DemoChannel } from "./demo-setup.ts";
import { createPersistentFetch, pause } from "./persistent-fetch.ts";

/** Document 1, "Limits": shipments per sync create. */
const SHIPMENTS_PER_REQUEST = 100;
const ASK_EVERY_MS = 250;

export interface MerchantClient {
  /** @returns how many of them were created */
  create(channel: DemoChannel, shipments: readonly object[]): Promise<number>;
  /** By a background job; waits for its end. @returns how many of them were created */
  importAll(channel: DemoChannel, shipments: readonly object[]): Promise<number>;
  /** Shipments that the channel has. */
  count(channel: DemoChannel): Promise<number>;
  checkAddress(channel: DemoChannel, address: object): Promise<void>;
}

interface ImportView {
  readonly status: "processing" | "completed" | "failed";
  readonly result: { readonly summary: { readonly totalSuccess: number } };
}

export function createMerchantClient(apiUrl: string, signal: AbortSignal): MerchantClient {
  const send = createPersistentFetch(signal);
  const tokens = new Map<string, string>();

  async function login({ apiKey }: DemoChannel): Promise<string> {
    const answer = await send(`${apiUrl}/v2/auth/token`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ apiKey }),
    });
    const { token } = (await answer.json()) as { token: string };
    tokens.set(apiKey, token);
    return token;
  }

  /** A token lives 24 hours (document 1); a refused one is exchanged once. */
  async function call(channel: DemoChannel, path: string, init: RequestInit): Promise<Response> {
    const withToken = (token: string) => ({
      ...init,
      headers: { "content-type": "application/json", authorization: `Bearer ${token}` },
    });
    const known = tokens.get(channel.apiKey) ?? (await login(channel));
    const answer = await send(`${apiUrl}${path}`, withToken(known));
    if (answer.status !== 401) return answer;
    return send(`${apiUrl}${path}`, withToken(await login(channel)));
  }

  return {
    async create(channel, shipments) {
      let created = 0;
      for (let at = 0; at < shipments.length; at += SHIPMENTS_PER_REQUEST) {
        const body = JSON.stringify({ shipments: shipments.slice(at, at + SHIPMENTS_PER_REQUEST) });
        const answer = await call(channel, "/v2/shipments", { method: "POST", body });
        if (!answer.ok) throw new Error(`POST /v2/shipments answered ${answer.status}`);
        const { summary } = (await answer.json()) as { summary: { totalSuccess: number } };
        created += summary.totalSuccess;
      }
      return created;
    },
    async importAll(channel, shipments) {
      const body = JSON.stringify({ shipments });
      const answer = await call(channel, "/v2/shipments/import", { method: "POST", body });
      if (!answer.ok) throw new Error(`POST /v2/shipments/import answered ${answer.status}`);
      const { statusUrl } = (await answer.json()) as { statusUrl: string };
      for (;;) {
        const asked = await call(channel, `/v2${statusUrl}`, { method: "GET" });
        if (!asked.ok) throw new Error(`GET /v2${statusUrl} answered ${asked.status}`);
        const { status, result } = (await asked.json()) as ImportView;
        if (status === "completed") return result.summary.totalSuccess;
        if (status === "failed") throw new Error("an import failed");
        await pause(ASK_EVERY_MS, signal);
      }
    },
    async count(channel) {
      const answer = await call(channel, "/v2/shipments?limit=1", { method: "GET" });
      if (!answer.ok) throw new Error(`GET /v2/shipments answered ${answer.status}`);
      const { total } = (await answer.json()) as { total: number };
      return total;
    },
    async checkAddress(channel, address) {
      const body = JSON.stringify(address);
      const answer = await call(channel, "/v2/addresses/check", { method: "POST", body });
      if (!answer.ok) throw new Error(`POST /v2/addresses/check answered ${answer.status}`);
    },
  };
}
