/**
 * Whose a thing is that a path names. Members of a company or a courier get for what is another's the answer that they get for
 * what does not exist: both come from the same line.
 */

import { readAccount } from "#core/accounts/store/accounts.ts";
import { findIncident } from "#core/alarms/store/incidents.ts";
import { readReceiver } from "#core/alarms/store/receivers.ts";
import type { Configuration } from "#core/configuration/store/configuration.ts";
import type { OwnedThing } from "#core/platform/http/access.ts";
import { idOf } from "#core/platform/schema/path-id.ts";
import { NO_ARCHIVE } from "#core/search/store/archive-search.ts";
import { readRemap } from "#core/statuses/store/remaps.ts";
import { v1ChannelId } from "#core/webhooks/rules/webhook-v1.ts";
import { readDeliveries } from "#core/webhooks/store/deliveries/deliveries.ts";
import { readMomentAnywhere } from "#core/webhooks/store/shipment-moment.ts";
import { type Caller, type PanelDeps, tenantOf } from "./caller.ts";
import { notFound } from "./not-found.ts";

/** Null = nobody's in particular. */
interface Owner {
  readonly companyCode: string | null;
  readonly courierCode: string | null;
}

type Params = Readonly<Record<string, string>>;

/** @throws {Problem} 404 if the thing is not the caller's, or does not exist */
export async function refuseOthers(
  deps: PanelDeps,
  caller: Caller,
  thing: OwnedThing,
  params: Params,
): Promise<void> {
  const owner = await ownerOf(deps, caller, thing, params);
  if (owner === null || !isTheirs(caller, owner)) throw notFound(thing);
}

/** Operators' own things have neither a company nor a courier, so they are never a member's. */
export function isTheirs({ kind, companyCode, courierCode }: Caller, owner: Owner): boolean {
  switch (kind) {
    case "operator":
      return true;
    case "company":
      return companyCode !== null && owner.companyCode === companyCode;
    case "courier":
      return courierCode !== null && owner.courierCode === courierCode;
  }
}

/** Null if there is no such thing. */
async function ownerOf(
  { redis, live, archive = NO_ARCHIVE }: PanelDeps,
  caller: Caller,
  thing: OwnedThing,
  params: Params,
): Promise<Owner | null> {
  const configuration = await live.refresh();
  const { id = "", code = "", channelCode = "", endpointId = "", deliveryId = "" } = params;
  switch (thing) {
    case "company":
      return { companyCode: code, courierCode: null };
    case "courier":
      return { companyCode: null, courierCode: code };
    case "channel":
      return ofChannel(configuration, configuration.channelByCode.get(channelCode)?.id);
    case "apiKey":
      return ofChannel(configuration, configuration.apiKeyById.get(idOf(id))?.channelId);
    case "endpoint":
      return ofEndpoint(configuration, endpointId);
    case "delivery": {
      const [delivery] = await readDeliveries(redis, [deliveryId], live.now());
      return delivery ? ofEndpoint(configuration, delivery.endpointId) : null;
    }
    case "shipment": {
      // Among the caller's own: a foreign one is looked for in the archive too, as a missing one is.
      const company = [...configuration.companies.values()].find(
        ({ code }) => code === caller.companyCode,
      );
      const channels = [...configuration.channels.values()];
      const own = channels.filter(({ companyId }) => companyId === company?.id).map(({ id }) => id);
      const moment = await readMomentAnywhere(redis, archive, idOf(id), own);
      return moment ? ofChannel(configuration, moment.shipment.record.channelId) : null;
    }
    case "remap": {
      const remap = await readRemap(redis, id);
      return remap && { companyCode: null, courierCode: remap.courier };
    }
    case "account":
      return readAccount(redis, id);
    case "alarmReceiver":
      return ofTenant((await readReceiver(redis, id))?.owner);
    case "incident":
      return ofTenant((await findIncident(redis, tenantOf(caller), id))?.owner);
  }
}

/** As the audit log names it. */
function ofTenant(tenant: string | undefined): Owner | null {
  if (tenant === undefined) return null;
  const [kind = "", code = ""] = tenant.split(" ");
  return {
    companyCode: kind === "company" ? code : null,
    courierCode: kind === "courier" ? code : null,
  };
}

function ofEndpoint(configuration: Configuration, endpointId: string): Owner | null {
  const channelId =
    v1ChannelId(endpointId) ?? configuration.endpoints.get(endpointId)?.channelId ?? undefined;
  return ofChannel(configuration, channelId);
}

function ofChannel(configuration: Configuration, channelId: number | undefined): Owner | null {
  const channel = channelId === undefined ? undefined : configuration.channels.get(channelId);
  const company = channel && configuration.companies.get(channel.companyId);
  return company ? { companyCode: company.code, courierCode: null } : null;
}
