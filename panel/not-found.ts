/** What is answered about a thing that does not exist, or that is not the caller's. */
import type { ErrorCode } from "#core/error-catalogue.ts";
import type { OwnedThing } from "#core/http/access.ts";
import { Problem } from "#core/problem.ts";

const WORDS: Readonly<Record<OwnedThing, readonly [code: ErrorCode, detail: string]>> = {
  company: ["COMPANY_NOT_FOUND", "There is no such company."],
  channel: ["CHANNEL_NOT_FOUND", "There is no such channel."],
  apiKey: ["API_KEY_NOT_FOUND", "There is no such API key."],
  endpoint: ["ENDPOINT_NOT_FOUND", "There is no such endpoint."],
  delivery: ["DELIVERY_NOT_FOUND", "There is no such delivery; they live 30 days."],
  shipment: ["SHIPMENT_NOT_FOUND", "There is no such shipment."],
  courier: ["COURIER_NOT_FOUND", "There is no such courier."],
  remap: ["REMAP_NOT_FOUND", "There is no such remap."],
  account: ["ACCOUNT_NOT_FOUND", "There is no such account."],
};

export function notFound(thing: OwnedThing): Problem {
  const [code, detail] = WORDS[thing];
  return new Problem(404, code, detail);
}
