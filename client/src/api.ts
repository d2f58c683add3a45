/** Every call of the API, typed: an answer that is no success is a `WaybillError`. */
import { createClient, createConfig } from "./generated/client/index.ts";
import { WaybillApi } from "./generated/sdk.gen.ts";
import { WaybillError } from "./waybill-error.ts";

export type Api = WaybillApi;

/** @param fetch sends the requests */
export function openApi(baseUrl: string, fetch: (request: Request) => Promise<Response>): Api {
  const client = createClient(
    createConfig({
      baseUrl,
      // The generated code hands over a Request alone.
      fetch: fetch as typeof globalThis.fetch,
      // A redirect would take the token to another host.
      redirect: "manual",
      throwOnError: true,
      responseStyle: "data",
    }),
  );
  client.interceptors.error.use((error, response) =>
    response === undefined || response.ok ? error : new WaybillError(response.status, error),
  );
  return new WaybillApi({ client });
}
