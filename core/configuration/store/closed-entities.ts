/** A closed company, channel or courier keeps its name and its shipments. Its credentials no longer work, and nothing is sent for it. */
import type {
  ChannelEntity,
  CompanyEntity,
  CourierEntity,
} from "#core/configuration/rules/entities.ts";

/** @returns since when each closed channel is closed, by itself or with its company; UTC milliseconds */
export function closedChannels(
  channels: readonly Pick<ChannelEntity, "id" | "companyId" | "closedAtMs">[],
  companies: readonly Pick<CompanyEntity, "id" | "closedAtMs">[],
): ReadonlyMap<number, number> {
  const ofCompany = new Map(companies.map(({ id, closedAtMs }) => [id, closedAtMs]));
  const all = channels.map(
    ({ id, companyId, closedAtMs }) => [id, closedAtMs || ofCompany.get(companyId) || 0] as const,
  );
  return new Map(all.filter(([, closedAtMs]) => closedAtMs > 0));
}

/** Its keys do not work. Its endpoints are inactive by themselves. */
export function asClosed<C extends Pick<ChannelEntity, "emails">>(
  channel: C,
  closedAtMs: number,
): C {
  const emails = { ...channel.emails, managed: false, statusNotifications: [] };
  return { ...channel, closedAtMs, active: false, webhookV1: null, emails };
}

export function withoutAccess<T extends CourierEntity>(courier: T): T {
  if (courier.closedAtMs === 0) return courier;
  const none = { tokenHashes: [], panelTokens: [], signingSecrets: [], panelSigningSecrets: [] };
  return { ...courier, ...none, acceptingEvents: false, oauth: null };
}
