/** What the webhook routes ask for first: the channel, the endpoint, a valid body, an instant. */

import type { Channel, Configuration, Endpoint } from "#core/configuration/store/configuration.ts";
import type { Config } from "#core/platform/environment/config.ts";
import { Problem } from "#core/platform/errors/problem.ts";
import { hostOf, vetHosts } from "#core/platform/network/vetted-address.ts";
import type { Fault } from "#core/platform/schema/fault.ts";
import {
  instantOf,
  isCalendarDate,
  isOffsetDateTime,
  parseRomeDateTime,
} from "#core/platform/time/rome-time.ts";
import type { Runtime } from "#core/runtime/runtime.ts";
import { endpointPartition, failingSince } from "#core/webhooks/store/endpoints.ts";
import { readLastFailure } from "#core/webhooks/store/last-failures.ts";
import { invalidBody } from "#panel/server/http/read-json.ts";
import { notFound } from "#panel/server/not-found.ts";
import type { EndpointHealth } from "./webhook-view.ts";

/** @throws {Problem} 404 */
export function channelOf({ channelByCode }: Configuration, code: string): Channel {
  const channel = channelByCode.get(code);
  if (!channel) throw notFound("channel");
  return channel;
}

/** A channel with settings of its own. @throws {Problem} 404: a shadow has those of its channel */
export function settingsChannelOf(configuration: Configuration, code: string): Channel {
  const channel = channelOf(configuration, code);
  if (channel.testOf === null) return channel;
  const detail = "A channel of test mode has the settings of its live channel: change them there.";
  throw new Problem(404, "CHANNEL_NOT_FOUND", detail);
}

/** @throws {Problem} 404 */
export function endpointOf(
  { endpoints, channels }: Configuration,
  endpointId: string,
): { endpoint: Endpoint; channel: Channel } {
  const endpoint = endpoints.get(endpointId);
  const channel = endpoint && channels.get(endpoint.channelId);
  if (!channel) throw notFound("endpoint");
  return { endpoint, channel };
}

/** How the endpoint does now. */
export async function readHealth(
  { redis, live }: Pick<Runtime, "redis" | "live">,
  configuration: Configuration,
  { id }: Endpoint,
): Promise<EndpointHealth> {
  const partition = endpointPartition(configuration, id) ?? 0;
  const [failingSinceMs, lastFailure] = await Promise.all([
    failingSince(redis, configuration, id),
    readLastFailure(redis, partition, id, live.now()),
  ]);
  return { failingSinceMs, lastFailure };
}

/** @throws {Problem} 409 */
export function refuseDisabled({ active }: Endpoint): void {
  if (active) return;
  const detail = "The endpoint is disabled: whatever is replayed would fail. Enable it first.";
  throw new Problem(409, "ENDPOINT_DISABLED", detail);
}

/** @throws {Problem} 422 */
export function refuseFaults(violations: readonly Fault[]): void {
  if (violations.length > 0) throw invalidBody(violations);
}

/**
 * Refuses a change with all of its faults. Every address of the host must be public; a name that cannot be resolved at the
 * moment is let pass: it is resolved again on every send.
 * @param url as the body has it
 * @param path where it stands in the body
 * @throws {Problem} 422
 */
export async function refuseEndpointFaults(
  faults: readonly Fault[],
  url: unknown,
  { webhookAllowedCidrs }: Pick<Config, "webhookAllowedCidrs">,
  path = "url",
): Promise<void> {
  const isJudged = faults.some((fault) => fault.path === path);
  // A fault of another member may have come first: the URL has not been looked at then.
  const isUrl = typeof url === "string" && !isJudged && URL.canParse(url);
  const host = isUrl ? hostOf(new URL(url)) : null;
  const { refused } = await vetHosts(host === null ? [] : [host], webhookAllowedCidrs);
  const message = "The host must resolve only to public addresses.";
  const notPublic: Fault = { path, code: "NOT_ALLOWED", message };
  refuseFaults(refused.size === 0 ? faults : [...faults, notPublic]);
}

/**
 * An instant of a body: ISO 8601 with an offset, or a day in Rome.
 * @param end the last instant of the day and not the first
 * @throws {Problem} 422
 */
export function instantOfBody(path: string, text: string, end: boolean): number {
  const instant = parseInstant(text, end);
  if (instant === null) refuseFaults([instantFault(path)]);
  return instant ?? 0;
}

/**
 * The same of a query.
 * @throws {Problem} 422
 */
export function instantOfQuery(path: string, text: string, end: boolean): number {
  const instant = parseInstant(text, end);
  if (instant !== null) return instant;
  const fault = instantFault(path);
  throw new Problem(422, "INVALID_QUERY", `${path}: ${fault.message}`, {
    members: { violations: [fault] },
  });
}

function instantFault(path: string): Fault {
  const message = "An ISO 8601 date and time with an offset, or a day as YYYY-MM-DD.";
  return { path, code: "BAD_FORMAT", message };
}

function parseInstant(text: string, end: boolean): number | null {
  // An unescaped `+` of an offset arrives as a blank.
  const plain = text.replace(/ (\d\d(?::?\d\d)?)$/, "+$1");
  if (isOffsetDateTime(plain)) return instantOf(plain);
  if (!isCalendarDate(text)) return null;
  const local = `${text} ${end ? "23:59:59" : "00:00:00"}`;
  return (parseRomeDateTime(local) ?? 0) + (end ? 999 : 0);
}
