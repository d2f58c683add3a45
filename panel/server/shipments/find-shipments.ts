/** What the whole text of the search box is: known by what it finds, within the channels that its caller sees. */
import type { Insights } from "#analytics/insights.ts";
import { readShipmentsAnywhere } from "#core/archive/store/archive.ts";
import type { Channel, Configuration } from "#core/configuration/store/configuration.ts";
import { OUTCOMES_KEPT_DAYS } from "#core/events/store/event-outcomes.ts";
import { resolveReferences } from "#core/events/store/references.ts";
import { factKeyOf } from "#core/events/store/seen.ts";
import { companyPartition, trackingReference } from "#core/platform/redis/keys.ts";
import { limit } from "#core/platform/schema/limit.ts";
import { idOf } from "#core/platform/schema/path-id.ts";
import { NO_ARCHIVE, searchBoth } from "#core/search/store/archive-search.ts";
import type { ShipmentQuery } from "#core/search/store/shipment-query.ts";
import type { StoredShipment } from "#core/shipments/store/shipments.ts";
import { deliveryIdOf, readDeliveries } from "#core/webhooks/store/deliveries/deliveries.ts";
import { unlessAnalyticsAway } from "#panel/server/analytics-away.ts";
import type { PanelDeps } from "#panel/server/caller.ts";

/** Shipments that one text finds; of an order with more, the first ones. */
const FOUND_LIMIT = limit(
  200,
  "shipments that the panel's search box finds by a whole value",
  "the newest of each company",
);
const KEPT_MS = OUTCOMES_KEPT_DAYS * 86_400_000;
const DELIVERY_ID = /^dlv_[0-9a-f]{34}$/;
const WEBHOOK_EVENT_ID = /^evt_[0-9a-f]{32}$/;

/** What the text turned out to be. A number may be several of the first three, so that all of them count. */
const VALUES = ["trackingNumber", "reference", "id"] as const;
/** The first of them that finds something counts, where none of the others does. */
const REPORTS = ["deliveryId", "eventId", "messageId"] as const;
/** `part`: of a tracking number, of an order reference or of a recipient's name. */
export const MATCHES = [...VALUES, ...REPORTS, "part"] as const;
export type Match = (typeof MATCHES)[number];
type WholeMatch = Exclude<Match, "part">;

interface Asked {
  readonly text: string;
  readonly channels: readonly Channel[];
  readonly configuration: Configuration;
}

export interface Found {
  readonly matched: Match | null;
  readonly shipments: readonly StoredShipment[];
}

/**
 * Of all channels given, whosever they are.
 * @param kinds `values` of shipments, or `reports`: events, messages and deliveries, the first kind that finds something
 */
export async function findShipments(
  deps: PanelDeps,
  insights: Insights | undefined,
  asked: Asked,
  kinds: "values" | "reports",
): Promise<Found> {
  const finders = findersOf(deps, insights, asked);
  const { redis, archive = NO_ARCHIVE } = deps;
  const channelIds = asked.channels.map(({ id }) => id);
  const find = async (matched: WholeMatch): Promise<Found> => {
    const ids = [...new Set(await finders[matched]())].slice(0, FOUND_LIMIT);
    return { matched, shipments: await readShipmentsAnywhere(redis, archive, ids, channelIds) };
  };
  const found: Found[] = [];
  if (kinds === "values") found.push(...(await Promise.all(VALUES.map(find))).filter(isFound));
  for (const kind of kinds === "reports" ? REPORTS : []) {
    if (found.length === 0) found.push(...[await find(kind)].filter(isFound));
  }
  const byId = new Map(found.flatMap((one) => one.shipments.map((own) => [own.record.id, own])));
  return { matched: found[0]?.matched ?? null, shipments: [...byId.values()] };
}

function findersOf(
  deps: PanelDeps,
  insights: Insights | undefined,
  asked: Asked,
): Readonly<Record<WholeMatch, () => Promise<readonly number[]>>> {
  return {
    id: async () => [idOf(asked.text)].filter((id) => id > 0),
    trackingNumber: async () => [
      ...(await byValue(deps, asked, { trackingNumber: asked.text, exact: {} })),
      ...(await byNumber(deps, asked)),
    ],
    reference: () =>
      byValue(deps, asked, { trackingNumber: null, exact: { orderReference: asked.text } }),
    eventId: () =>
      WEBHOOK_EVENT_ID.test(asked.text)
        ? byDeliveries(deps, deliveriesOfEvent(asked))
        : byEvent(deps, insights, asked, "eventId"),
    messageId: () => byEvent(deps, insights, asked, "messageId"),
    deliveryId: async () => (DELIVERY_ID.test(asked.text) ? byDeliveries(deps, [asked.text]) : []),
  };
}

const isFound = ({ shipments }: Found) => shipments.length > 0;

const ANY = { shipFrom: null, shipTo: null, statuses: null, updatedFrom: null } as const;
const NEWEST = { by: "id", descending: true } as const;

type Value = Pick<ShipmentQuery, "trackingNumber" | "exact">;

async function byValue(
  { redis, archive = NO_ARCHIVE }: PanelDeps,
  { channels }: Asked,
  value: Value,
): Promise<number[]> {
  const companies = Map.groupBy(channels, ({ companyId }) => companyId);
  const pages = await Promise.all(
    [...companies].map(([companyId, own]) => {
      const query = { ...ANY, ...value, companyId, channelIds: own.map(({ id }) => id) };
      const head = { order: NEWEST, offset: 0, limit: FOUND_LIMIT };
      return searchBoth(redis, archive, { ...query, ...head });
    }),
  );
  return pages.flatMap(({ hits }) => hits.map(({ id }) => id));
}

/** Those that events of a courier find by the number, however it is typed; by one of a parcel too. */
async function byNumber(
  { redis }: PanelDeps,
  { text, channels, configuration }: Asked,
): Promise<number[]> {
  const couriers = [...configuration.couriers.keys()];
  const references = couriers.map((courier) => trackingReference(courier, text));
  const ids = new Set(channels.map(({ id }) => id));
  const candidates = await resolveReferences(redis, references);
  return references
    .flatMap(({ key }) => candidates.get(key) ?? [])
    .filter(({ channelId }) => ids.has(channelId))
    .map(({ shipmentId }) => shipmentId);
}

/** The webhook event of one change: its deliveries to the endpoints of the channels. */
function deliveriesOfEvent({ text, channels }: Asked): string[] {
  return channels.flatMap(({ companyId, endpoints }) =>
    endpoints.map(({ id }) => deliveryIdOf(companyPartition(companyId), id, text)),
  );
}

async function byDeliveries({ redis, live }: PanelDeps, ids: readonly string[]): Promise<number[]> {
  const deliveries = await readDeliveries(redis, ids, live.now());
  return deliveries.map(({ shipmentId }) => shipmentId);
}

/** A courier's event or message of the last days. Nothing is found while the analytics cannot be asked. */
async function byEvent(
  { live }: PanelDeps,
  insights: Insights | undefined,
  { text, configuration }: Asked,
  kind: "eventId" | "messageId",
): Promise<number[]> {
  if (!insights) return [];
  const common = {
    since: live.now() - KEPT_MS,
    limit: FOUND_LIMIT,
    afterMs: -1,
    afterMessageIndex: -1,
    afterMessage: "",
  };
  const found: number[] = [];
  for (const courier of configuration.couriers.keys()) {
    const key =
      kind === "eventId"
        ? { factKey: factKeyOf(courier, text), messageId: "" }
        : { factKey: "", messageId: text };
    const rows = await insights.accepted({ ...common, ...key, courier }).catch(unlessAnalyticsAway);
    if (rows === null) return found;
    found.push(...rows.flatMap(({ shipmentIds }) => shipmentIds));
  }
  return found;
}
