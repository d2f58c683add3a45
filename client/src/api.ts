/** Every call of the API, typed. */
import createApi from "openapi-fetch";
import type { paths } from "./api-types.ts";

export type Api = ReturnType<typeof createApi<paths>>;

/** @param fetch sends the requests */
export function openApi(baseUrl: string, fetch: (request: Request) => Promise<Response>): Api {
  return createApi<paths>({ baseUrl, fetch });
}
