/** The channel's own shipment of an id in a path. */
import { Problem } from "#core/problem.ts";
import type { Redis } from "#core/redis/client.ts";
import type { Channel } from "#core/redis/configuration.ts";
import { readShipments, type StoredShipment } from "#core/redis/shipments.ts";

/** Ids have at most twelve digits; any other text is the id of no shipment. */
const ID_FORM = /^[1-9]\d{0,11}$/;

/** @throws {Problem} 404, the same for a missing shipment, one of another channel and a text that is no id */
export async function ownShipment(
  redis: Redis,
  channel: Channel,
  text: string,
): Promise<StoredShipment> {
  const id = ID_FORM.test(text) ? Number(text) : 0;
  // A missing one is read like any other, so that a foreign one is not told apart by time.
  const [shipment] = await readShipments(redis, [id]);
  if (shipment?.record.channelId === channel.id) return shipment;
  throw new Problem(404, "SHIPMENT_NOT_FOUND", "There is no such shipment.");
}
