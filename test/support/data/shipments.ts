/** Shipments put into the store directly, for tests that are not about the merchant API. */

import type { Live } from "#core/configuration/store/live.ts";
import { candidateOf, referencesOf, registerReferences } from "#core/events/store/references.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import { orderReferencesOf, type ShipmentRecord } from "#core/shipments/rules/shipment.ts";
import { createShipments } from "#core/shipments/store/create-shipments.ts";

export interface ShipmentOptions {
  readonly channel?: string;
  readonly courier?: string;
  readonly orderReference?: string;
  readonly isPlaceholder?: boolean;
  readonly shipDate?: string;
  readonly destCap?: string;
  readonly plannedOn?: string;
  readonly parcelNumbers?: readonly string[];
  /** Left out where a test registers the shipment itself. */
  readonly isRegistered?: boolean;
  readonly consignee?: ShipmentRecord["consignee"];
}

/** @returns the id of a shipment that courier events find */
export async function addShipment(
  { redis, live }: { readonly redis: Redis; readonly live: Live },
  trackingNumber: string,
  options: ShipmentOptions = {},
): Promise<number> {
  const configuration = live.configuration();
  const channel = configuration.channelByCode.get(options.channel ?? "acme-it");
  if (!channel) throw new Error("no such channel");
  const courier = options.courier ?? "GLS_ITA";
  const shipDate = options.shipDate ?? "2026-11-09";
  const orderReference = options.orderReference ?? null;
  const isPlaceholder = options.isPlaceholder ?? false;
  const ids = { companyId: channel.companyId, channelId: channel.id };
  const meta = {
    ...ids,
    courier,
    trackingNumber,
    shipDate,
    isPlaceholder,
    orderReference,
    destCap: options.destCap ?? "00118",
    originCap: "20121",
    weightKg: 1,
    ...(options.parcelNumbers && { parcelNumbers: options.parcelNumbers }),
    ...(options.plannedOn !== undefined && { plannedOn: options.plannedOn }),
  };
  const [created] = await createShipments(redis, channel.companyId, [
    {
      record: {
        ...ids,
        courier,
        trackingNumber,
        shipDate,
        language: "it",
        planning: {
          deliveryDate: options.plannedOn ?? null,
          latestShipDate: null,
          latestDeliveryDate: null,
        },
        createdAtMs: live.now(),
        ...(orderReference !== null && { orderReference }),
        ...(options.consignee && { consignee: options.consignee }),
      },
      meta,
    },
  ]);
  if (!created?.isNew) throw new Error(`${trackingNumber} exists already`);
  const { id } = created;
  if (options.isRegistered === false) return id;
  const accounts = channel.couriers.get(courier)?.senderAccounts ?? [];
  const numbers = [trackingNumber, ...(options.parcelNumbers ?? [])];
  const references = referencesOf(courier, numbers, accounts, orderReferencesOf(meta));
  const candidate = candidateOf(id, meta);
  await registerReferences(
    redis,
    references.map((reference) => ({ ...candidate, reference })),
  );
  return id;
}
