/** What is answered about a thing that does not exist, or that is not the caller's. */
import type { ErrorCode } from "#core/platform/errors/error-catalogue.ts";
import { Problem } from "#core/platform/errors/problem.ts";
import type { OwnedThing, PanelAccess } from "#core/platform/http/access.ts";

const WORDS: Readonly<Record<OwnedThing, readonly [code: ErrorCode, detail: string]>> = {
  company: ["COMPANY_NOT_FOUND", "There is no such company."],
  channel: ["CHANNEL_NOT_FOUND", "There is no such channel."],
  apiKey: ["API_KEY_NOT_FOUND", "There is no such API key."],
  endpoint: ["ENDPOINT_NOT_FOUND", "There is no such endpoint."],
  delivery: ["DELIVERY_NOT_FOUND", "There is no such delivery; they live 30 days."],
  shipment: ["SHIPMENT_NOT_FOUND", "There is no such shipment."],
  courier: ["COURIER_NOT_FOUND", "There is no such courier."],
  remap: ["REMAP_NOT_FOUND", "There is no such remap."],
  alarmReceiver: ["RECEIVER_NOT_FOUND", "There is no such receiver of alarms."],
  incident: ["INCIDENT_NOT_FOUND", "There is no such incident; they are kept 90 days."],
  account: ["ACCOUNT_NOT_FOUND", "There is no such account."],
};

/** Codes that a call may answer with that needs such a thing. */
export function notFoundCodes(of: PanelAccess["of"]): ErrorCode[] {
  return of === "caller" || of === "installation" ? [] : [WORDS[of][0]];
}

export function notFound(thing: OwnedThing): Problem {
  const [code, detail] = WORDS[thing];
  return new Problem(404, code, detail);
}
