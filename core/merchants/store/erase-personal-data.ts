/**
 * Erases the recipient of a shipment everywhere. Each step may be repeated: a call that has failed is simply made again. What was
 * on its way meanwhile, such as the answer of a receiver or an event that failed, is erased by repetitions.
 */

import { type Archive, channelsOfShipments } from "#core/archive/store/archive.ts";
import { bringOneBack } from "#core/archive/store/bring-back.ts";
import type { Live } from "#core/configuration/store/live.ts";
import { matchingNumber, plainReference } from "#core/events/rules/reference.ts";
import { eraseWaitingEvents } from "#core/events/store/erase-events.ts";
import type { Config } from "#core/platform/environment/config.ts";
import { removeMails } from "#core/platform/process/mail.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import { erasing } from "#core/platform/redis/embedded/file-rewrite.ts";
import { type ErasedShipment, eraseShipment } from "#core/shipments/store/erase-shipment.ts";
import { eraseAnswers } from "#core/webhooks/store/erase-answers.ts";
import { noteErasedMails, planRepetitions } from "./erasures.ts";
import { forgetLabels } from "./labels.ts";
import { forgetMessages } from "./messages.ts";
import { forgetOrders } from "./orders.ts";
import { forgetReleaseMessages } from "./stock-releases.ts";

export interface ErasureDeps {
  readonly redis: Redis;
  readonly live: Live;
  readonly config: Pick<Config, "dataDir" | "publicUrl">;
  readonly archive: Archive;
}

/** Of a shipment that moves to the archive meanwhile. */
const ROUNDS = 5;

/**
 * @returns `repeated` if it had been erased before; `missing` if there is no such shipment
 * @throws {Problem} 503 ARCHIVE_UNAVAILABLE
 */
export async function erasePersonalData(
  deps: ErasureDeps,
  shipmentId: number,
): Promise<"erased" | "repeated" | "missing"> {
  const { redis, live } = deps;
  const erased = await eraseAgain(deps, shipmentId);
  if (!erased) return "missing";
  const { record, numbers, orderReferences } = erased;
  const known = new Set(numbers.map(matchingNumber));
  const orders = new Set(orderReferences.map(plainReference));
  await forgetLabels(
    redis,
    record,
    (label) =>
      label.trackingNumbers.some(({ number }) => known.has(matchingNumber(number))) ||
      orders.has(plainReference(label.reference)),
  );
  for (const order of orderReferences) await forgetOrders(redis, record, order);
  await planRepetitions(redis, shipmentId, live.now());
  return erased.wasErased ? "repeated" : "erased";
}

/** Without its labels and orders: what a merchant has made of them since the erasure is new. */
export function eraseAgain(deps: ErasureDeps, shipmentId: number): Promise<ErasedShipment | null> {
  return erasing(deps.redis, deps.live.now(), () => eraseShipmentWhole(deps, shipmentId));
}

async function eraseShipmentWhole(
  deps: ErasureDeps,
  shipmentId: number,
): Promise<ErasedShipment | null> {
  const { redis, live, config } = deps;
  const erased = await eraseAnywhere(deps, shipmentId);
  if (!erased) return null;
  const { hostname } = new URL(config.publicUrl);
  const messageIds = await forgetMessages(redis, shipmentId);
  const mails = messageIds.map((id) => `${id}@${hostname}`);
  await removeMails(config, mails);
  await noteErasedMails(redis, mails, live.now());
  await forgetReleaseMessages(redis, shipmentId);
  await eraseAnswers(redis, shipmentId);
  await eraseWaitingEvents(redis, shipmentId);
  return erased;
}

/** An archived shipment comes back first; the row that it leaves is deleted with those that count no more. */
async function eraseAnywhere(
  { redis, live, archive }: ErasureDeps,
  shipmentId: number,
): Promise<ErasedShipment | null> {
  const channelIds = channelsOfShipments(await live.refresh(), [shipmentId]);
  for (let round = 0; round < ROUNDS; round += 1) {
    const erased = await eraseShipment(redis, shipmentId);
    if (erased) return erased;
    if (!(await bringOneBack(redis, archive, shipmentId, channelIds))) break;
  }
  return null;
}
