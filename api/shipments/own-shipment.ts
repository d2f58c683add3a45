/** The channel's own shipment of an id in a path. */

import type { ApiDeps } from "#api/deps.ts";
import { readAnywhere } from "#core/archive/store/archive.ts";
import type { WholeShipment } from "#core/archive/store/archived-shipment.ts";
import { bringOneBack } from "#core/archive/store/bring-back.ts";
import type { Channel } from "#core/configuration/store/configuration.ts";
import { Problem } from "#core/platform/errors/problem.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import { companyKeys, indexMember, shipmentPartition } from "#core/platform/redis/keys.ts";
import { idOf } from "#core/platform/schema/path-id.ts";
import { readShipments, type StoredShipment } from "#core/shipments/store/shipments.ts";
import { readMomentAnywhere, type ShipmentMoment } from "#core/webhooks/store/shipment-moment.ts";

/** Readings of a shipment that moves meanwhile. */
const ROUNDS = 3;

type Stores = Pick<ApiDeps, "redis" | "archive">;

/**
 * A shipment about which something is going to be written: an archived one comes back first.
 * @throws {Problem} 404, the same for a missing shipment, one of another channel and a text that is no id; 503
 *   ARCHIVE_UNAVAILABLE
 */
export async function ownShipment(
  { redis, archive }: Stores,
  channel: Channel,
  text: string,
): Promise<StoredShipment> {
  const id = idOf(text);
  for (let round = 0; round < ROUNDS; round += 1) {
    const hot = await readOwn(redis, channel, id);
    if (hot) return hot;
    if (!(await bringOneBack(redis, archive, id, [channel.id]))) break;
  }
  throw notFound();
}

/** A foreign one is not read, like a missing one: it cannot be recognised by its timing. */
async function readOwn(redis: Redis, channel: Channel, id: number): Promise<StoredShipment | null> {
  const ownIds = companyKeys(shipmentPartition(id)).index(channel.id, "id");
  if ((await redis.zScore(ownIds, indexMember(id))) === null) return null;
  const [shipment] = await readShipments(redis, [id]);
  return shipment ?? null;
}

/**
 * What is kept beside the channel's own shipment, wherever it is.
 * @param readHot from Redis; null = it is not there
 * @param thaw from an archived one
 * @throws {Problem} 404, 503 as above
 */
export async function besideOwn<T>(
  { redis, archive }: Stores,
  channel: Channel,
  text: string,
  readHot: (shipmentId: number) => Promise<T | null>,
  thaw: (whole: WholeShipment) => T | null,
): Promise<{ readonly shipmentId: number; readonly found: T | null }> {
  const id = idOf(text);
  const all = await readAnywhere<{ found: T | null }>(redis, archive, [id], {
    channelIds: [channel.id],
    async readHot() {
      if (!(await readOwn(redis, channel, id))) return new Map();
      const found = await readHot(id);
      // It may have left in between, with all that is kept beside it.
      const isThere = found !== null || (await readOwn(redis, channel, id)) !== null;
      return new Map(isThere ? [[id, { found }]] : []);
    },
    thaw: ({ whole }) => ({ found: thaw(whole) }),
  });
  const one = all.get(id);
  if (!one) throw notFound();
  return { shipmentId: id, found: one.found };
}

/** The same, with everything that is shown about it. */
export async function ownMoment(
  { redis, archive }: Stores,
  channel: Channel,
  text: string,
): Promise<ShipmentMoment> {
  const moment = await readMomentAnywhere(redis, archive, idOf(text), [channel.id]);
  if (moment) return moment;
  throw notFound();
}

function notFound(): Problem {
  return new Problem(404, "SHIPMENT_NOT_FOUND", "There is no such shipment.");
}
