/** The calls of the control panel that listening takes. */

export interface PanelAccess {
  readonly url: string;
  /** Of an operator. */
  readonly token: string | undefined;
  /** Of an account, without a token. */
  readonly email: string | undefined;
  readonly password: string | undefined;
}

export interface Endpoint {
  readonly endpointId: string;
  readonly channel: string;
  readonly url: string;
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

interface Page {
  readonly items: readonly Logged[];
  readonly cursor: string | null;
}

const LIMIT = 200;

/** @throws {Error} if the panel refuses the credentials */
export async function openPanel(access: PanelAccess): Promise<Panel> {
  const base = `${access.url.replace(/\/+$/, "")}/panel/api`;
  const headers = await credentials(base, access);

  async function get<T>(path: string): Promise<T> {
    const response = await fetch(`${base}${path}`, { headers });
    if (response.ok) return (await response.json()) as T;
    throw new Error(`GET /panel/api${path} answered ${response.status}: ${await response.text()}`);
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

async function credentials(base: string, access: PanelAccess): Promise<Record<string, string>> {
  const { token, email, password } = access;
  if (token !== undefined) return { authorization: `Bearer ${token}` };
  if (email === undefined || password === undefined) {
    throw new Error("Give --token, or WAYBILL_EMAIL and WAYBILL_PASSWORD.");
  }
  const response = await fetch(`${base}/session`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ email, password }),
  });
  const [cookie] = response.headers.getSetCookie();
  if (!response.ok || cookie === undefined) {
    throw new Error(`The log-in was answered ${response.status}: ${await response.text()}`);
  }
  return { cookie: cookie.split(";")[0] ?? "" };
}
