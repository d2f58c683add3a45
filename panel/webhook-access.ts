/** What the webhook routes ask for first: the channel, the endpoint, a valid body, an instant. */

import type { Config } from "#core/config.ts";
import type { Fault } from "#core/domain/fault.ts";
import {
  instantOf,
  isCalendarDate,
  isOffsetDateTime,
  parseRomeDateTime,
} from "#core/domain/rome-time.ts";
import { Problem } from "#core/problem.ts";
import type { Channel, Configuration, Endpoint } from "#core/redis/configuration.ts";
import { hostOf, vetHost } from "#core/vetted-address.ts";

/** @throws {Problem} 404 */
export function channelOf({ channelByCode }: Configuration, code: string): Channel {
  const channel = channelByCode.get(code);
  if (!channel) throw new Problem(404, "CHANNEL_NOT_FOUND", "There is no such channel.");
  return channel;
}

/** @throws {Problem} 404 */
export function endpointOf(
  { endpoints, channels }: Configuration,
  endpointId: string,
): { endpoint: Endpoint; channel: Channel } {
  const endpoint = endpoints.get(endpointId);
  const channel = endpoint && channels.get(endpoint.channelId);
  if (!channel) throw new Problem(404, "ENDPOINT_NOT_FOUND", "There is no such endpoint.");
  return { endpoint, channel };
}

/** @throws {Problem} 409 */
export function refuseDisabled({ active }: Endpoint): void {
  if (active) return;
  const detail = "The endpoint is disabled: whatever is replayed would fail. Enable it first.";
  throw new Problem(409, "ENDPOINT_DISABLED", detail);
}

/** @throws {Problem} 422 */
export function refuseFaults(violations: readonly Fault[]): void {
  if (violations.length === 0) return;
  throw new Problem(422, "INVALID_BODY", "The body is invalid.", { members: { violations } });
}

/**
 * Every address of the host must be public. A name that cannot be resolved at the moment is let pass: it is asked again on
 * every send.
 * @throws {Problem} 422
 */
export async function refusePrivateHost(
  url: string,
  { webhookAllowedCidrs }: Pick<Config, "webhookAllowedCidrs">,
): Promise<void> {
  const asking = vetHost(hostOf(new URL(url)), webhookAllowedCidrs);
  const vetted = await Promise.race([asking, Bun.sleep(RESOLVE_LIMIT_MS)]);
  if (vetted?.kind !== "refused") return;
  const message = "The host must resolve only to public addresses.";
  refuseFaults([{ path: "url", code: "NOT_ALLOWED", message }]);
}

const RESOLVE_LIMIT_MS = 5_000;

/**
 * An instant of a query or body: ISO 8601 with an offset, or a day in Rome.
 * @param end the last instant of the day and not the first
 * @throws {Problem} 422
 */
export function instantIn(path: string, text: string, end: boolean): number {
  // An unescaped `+` of an offset arrives as a blank.
  const plain = text.replace(/ (\d\d:?\d\d)$/, "+$1");
  if (isOffsetDateTime(plain)) return instantOf(plain);
  if (isCalendarDate(text)) {
    const local = `${text} ${end ? "23:59:59" : "00:00:00"}`;
    return (parseRomeDateTime(local) ?? 0) + (end ? 999 : 0);
  }
  const message = "An ISO 8601 date and time with an offset, or a day as YYYY-MM-DD.";
  refuseFaults([{ path, code: "BAD_FORMAT", message }]);
  return 0;
}
