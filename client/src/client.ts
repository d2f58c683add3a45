/** The merchants' client of Waybill: every call of the API, typed, and what takes several calls. */
import { createAccessToken } from "./access-token.ts";
import { openApi } from "./api.ts";
import { createBudget } from "./budget.ts";
import { changesSince } from "./changes.ts";
import { runImport } from "./imports.ts";
import { eachOrder, eachParcel, eachShipment } from "./pages.ts";
import { persistentFetch, persistently } from "./persistent-fetch.ts";

export interface ClientOptions {
  /** Address of the API, such as `https://api.example.com`. */
  readonly baseUrl: string;
  readonly apiKey: string;
  /** Instead of the global one. */
  readonly fetch?: (request: Request) => Promise<Response>;
}

export type WaybillClient = ReturnType<typeof createClient>;

export function createClient({ apiKey, fetch = globalThis.fetch, ...options }: ClientOptions) {
  const baseUrl = options.baseUrl.replace(/\/+$/, "");
  const send = (request: Request) => fetch(request);
  const sendAgain = (request: Request) =>
    persistently(request, (again) => send(again.clone() as Request));
  const token = createAccessToken(sendAgain, baseUrl, apiKey);
  const persistent = persistentFetch({ fetch: send, token, budget: createBudget() });
  const api = openApi(baseUrl, persistent);
  return {
    /** Every call of the API: `api.readShipment({ path: { id } })`. */
    api,
    shipments: eachShipment(api),
    orders: eachOrder(api),
    parcels: eachParcel(api),
    changesSince: changesSince(api),
    runImport: runImport(api),
  };
}

export type { ChangesQuery } from "./changes.ts";
export type * from "./generated/types.gen.ts";
export type { ParcelQuery, ShipmentQuery } from "./pages.ts";
// biome-ignore lint/performance/noBarrelFile: the entry of the package
export { WaybillError } from "./waybill-error.ts";
