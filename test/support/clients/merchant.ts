/** A merchant that uses the API over HTTP, as document 1 describes its client. */

export interface Merchant {
  /** @returns status, headers and parsed body of a call with the merchant's token */
  readonly call: (method: string, path: string, body?: unknown) => Promise<Answer>;
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into whatever the server answered
  readonly body: any;
}

export async function signIn(api: string, apiKey: string): Promise<Merchant> {
  const answer = await request("POST", `${api}/v2/auth/token`, { apiKey });
  if (answer.status !== 200) throw new Error(`no token: ${answer.status}`);
  const headers = { authorization: `Bearer ${answer.body.token}` };
  return { call: (method, path, body) => request(method, `${api}${path}`, body, headers) };
}

export async function request(
  method: string,
  url: string,
  body?: unknown,
  headers: Readonly<Record<string, string>> = {},
): Promise<Answer> {
  const response = await fetch(url, {
    method,
    headers: { ...(body !== undefined && { "content-type": "application/json" }), ...headers },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  return {
    status: response.status,
    headers: response.headers,
    body: text === "" ? null : JSON.parse(text),
  };
}

/** A valid item of `POST /v2/shipments`. */
export function shipmentItem(trackingNumber: string, members: Record<string, unknown> = {}) {
  return {
    trackingNumber,
    courier: "GLS_ITA",
    shipDate: "2026-11-09",
    consignee: { name: "Mario Rossi", city: "Roma", postcode: "00118", country: "IT" },
    parcels: [{ weight: 2.5, boxCode: "S" }],
    ...members,
  };
}
