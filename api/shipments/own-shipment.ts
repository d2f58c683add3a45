/** The channel's own shipment of an id in a path. */
import { idOf } from "#core/domain/schema/path-id.ts";
import { Problem } from "#core/problem.ts";
import type { Redis } from "#core/redis/client/client.ts";
import type { Channel } from "#core/redis/config/configuration.ts";
import { readShipments, type StoredShipment } from "#core/redis/shipments/shipments.ts";
import { readMoment, type ShipmentMoment } from "#core/redis/webhooks/shipment-moment.ts";

/** @throws {Problem} 404, the same for a missing shipment, one of another channel and a text that is no id */
export async function ownShipment(
  redis: Redis,
  channel: Channel,
  text: string,
): Promise<StoredShipment> {
  // A missing one is read like any other, so that a foreign one cannot be recognised by its timing.
  const [shipment] = await readShipments(redis, [idOf(text)]);
  if (shipment?.record.channelId === channel.id) return shipment;
  throw notFound();
}

/** The same, with everything that is shown about it. */
export async function ownMoment(
  redis: Redis,
  channel: Channel,
  text: string,
): Promise<ShipmentMoment> {
  const moment = await readMoment(redis, idOf(text));
  if (moment?.shipment.record.channelId === channel.id) return moment;
  throw notFound();
}

function notFound(): Problem {
  return new Problem(404, "SHIPMENT_NOT_FOUND", "There is no such shipment.");
}
