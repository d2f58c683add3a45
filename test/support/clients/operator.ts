/** Calls of the panel's API by a script that has the operator's token. */

import { PANEL_TOKEN } from "#test/support/product/product.ts";
import { type Answer, request } from "./merchant.ts";
import { untilServed } from "./until-served.ts";

/** @param path below `/panel/api` */
export function askPanel(
  { panel }: { readonly panel: string },
  method: string,
  path: string,
  body?: unknown,
): Promise<Answer> {
  const headers = { authorization: `Bearer ${PANEL_TOKEN}` };
  return request(method, `${panel}/panel/api${path}`, body, headers);
}

/** @returns the body, once no store is unavailable @throws on any other answer than 200 */
export function readPanel(
  product: { readonly panel: string },
  path: string,
): Promise<Answer["body"]> {
  return untilServed(() => askPanel(product, "GET", path));
}
