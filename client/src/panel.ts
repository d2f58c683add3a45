/** The calls of the control panel that listening takes. */

export interface PanelAccess {
  readonly url: string;
  /** Of an operator. */
  readonly token: string | undefined;
  /** Of an account, without a token. */
  readonly email: string | undefined;
  readonly password: string | undefined;
  /** Of the account's second factor. */
  readonly code: string | undefined;
}

export interface Endpoint {
  readonly endpointId: string;
  readonly channel: string;
  readonly url: string;
  readonly status: "active" | "disabled";
  readonly disabledReason: string | null;
}

/** A delivery, as the log shows it. */
export interface Logged {
  readonly deliveryId: string;
  readonly createdAt: string;
}

/** What would be sent now. */
export interface SignedRequest {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export interface Panel {
  readonly endpoints: (channel: string | undefined) => Promise<readonly Endpoint[]>;
  /** Oldest first. */
  readonly deliveriesSince: (endpointId: string, from: string) => Promise<readonly Logged[]>;
  readonly signedRequest: (deliveryId: string) => Promise<SignedRequest>;
}

/** The panel did not answer as hoped. */
export class PanelError extends Error {
  /** Null = it did not answer. */
  readonly status: number | null;

  constructor(message: string, status: number | null) {
    super(message);
    this.status = status;
  }

  /** Whether the same call may be answered later. */
  get passes(): boolean {
    return this.status === null || this.status === 429 || this.status >= 500;
  }
}

interface Page {
  readonly items: readonly Logged[];
  readonly cursor: string | null;
}

const LIMIT = 200;
const ANSWER_LIMIT_MS = 30_000;
const SESSION_OVER =
  "The session is over, and a code of the second factor opens one alone: start again with a new --code.";

/**
 * @param signal ends what is under way
 * @throws {Error} if the panel refuses the credentials
 */
export async function openPanel(access: PanelAccess, signal: AbortSignal): Promise<Panel> {
  const base = `${access.url.replace(/\/+$/, "")}/panel/api`;
  let headers = await credentials(base, access, signal);

  async function ask(path: string): Promise<Response> {
    return send(`${base}${path}`, { headers }, signal);
  }

  async function get<T>(path: string): Promise<T> {
    let response = await ask(path);
    if (response.status === 401 && access.token === undefined) {
      // The session is over, after 12 hours.
      if (access.code !== undefined) throw new PanelError(SESSION_OVER, 401);
      headers = await credentials(base, access, signal);
      response = await ask(path);
    }
    const { ok, status } = response;
    if (ok) return (await response.json()) as T;
    throw new PanelError(
      `GET /panel/api${path} answered ${status}: ${await response.text()}`,
      status,
    );
  }

  return {
    async endpoints(channel) {
      const { items } = await get<{ items: { code: string }[] }>("/channels");
      const wanted = items.filter(({ code }) => channel === undefined || code === channel);
      const lists = await Promise.all(
        wanted.map(({ code }) =>
          get<{ items: Endpoint[] }>(`/channels/${encodeURIComponent(code)}/webhooks`),
        ),
      );
      return lists.flatMap((list) => list.items);
    },
    async deliveriesSince(endpointId, from) {
      const found: Logged[] = [];
      let cursor: string | null = null;
      do {
        const query = new URLSearchParams({ from, limit: String(LIMIT) });
        if (cursor !== null) query.set("cursor", cursor);
        const page: Page = await get<Page>(`/webhooks/${endpointId}/deliveries?${query}`);
        found.push(...page.items);
        ({ cursor } = page);
      } while (cursor !== null);
      return found.reverse();
    },
    signedRequest: (deliveryId) => get<SignedRequest>(`/deliveries/${deliveryId}/request`),
  };
}

/** @throws {PanelError} if the log-in is refused, or if nobody answers */
async function credentials(
  base: string,
  access: PanelAccess,
  signal: AbortSignal,
): Promise<Record<string, string>> {
  const { token, email, password, code } = access;
  if (token !== undefined) return { authorization: `Bearer ${token}` };
  if (email === undefined || password === undefined) {
    throw new Error("Give --token, or WAYBILL_EMAIL and WAYBILL_PASSWORD.");
  }
  const init = {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ email, password, ...(code !== undefined && { code }) }),
  };
  const response = await send(`${base}/session`, init, signal);
  const [cookie] = response.headers.getSetCookie();
  if (!response.ok || cookie === undefined) {
    const { status } = response;
    const answer = await response.text();
    const advice = answer.includes("TOTP_REQUIRED") ? " Give --code." : "";
    throw new PanelError(`The log-in was answered ${status}: ${answer}${advice}`, status);
  }
  return { cookie: cookie.split(";")[0] ?? "" };
}

/** @throws {PanelError} if nobody answers, or with a redirect: credentials go to no other address */
async function send(url: string, init: RequestInit, signal: AbortSignal): Promise<Response> {
  const limit = AbortSignal.any([signal, AbortSignal.timeout(ANSWER_LIMIT_MS)]);
  const response = await fetch(url, { ...init, redirect: "manual", signal: limit }).catch(
    (error: Error) => {
      throw new PanelError(`${new URL(url).origin}: ${error.message}`, null);
    },
  );
  const { status } = response;
  if (status < 300 || status > 399) return response;
  await response.body?.cancel();
  const target = response.headers.get("location");
  throw new PanelError(`${url} redirects to ${target}: give that address by --panel.`, status);
}
