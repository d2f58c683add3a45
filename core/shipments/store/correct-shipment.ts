/** Corrects what a merchant said of a shipment, with its version checked, so that no fold and no erasure is lost. */
import { type Redis, run } from "#core/platform/redis/client.ts";
import { companyKeys, type ExactField, shipmentPartition } from "#core/platform/redis/keys.ts";
import { idDigits } from "#core/platform/redis/partitions.ts";
import { scriptOfParts } from "#core/platform/redis/script-parts.ts";
import { type Corrected, correct, type ShipmentCorrection } from "#core/shipments/rules/correct.ts";
import type { Correction, ShipmentRecord } from "#core/shipments/rules/shipment.ts";
import exactPart from "#core/shipments/store/parts/exact-values.lua" with { type: "text" };
import { MANY_OF_ONE_VALUE } from "./columns.ts";
import correctSource from "./correct.lua" with { type: "text" };
import { exactValues } from "./create-shipments.ts";
import { encodeHot, encodeRecord } from "./shipment-codec.ts";
import { type HotShipment, readHotShipments, readShipments } from "./shipments.ts";

const correctScript = scriptOfParts(correctSource, { "exact-values": exactPart });

/** Rounds of reading and writing again when a courier event got ahead. */
const ROUNDS = 20;

/** @returns "missing" if Redis has no such shipment */
export async function correctShipment(
  redis: Redis,
  id: number,
  correction: ShipmentCorrection,
  by: Pick<Correction, "atMs" | "apiKey">,
): Promise<Corrected["kind"] | "missing"> {
  for (let round = 0; round < ROUNDS; round += 1) {
    // The head is read first: a change in between is a conflict.
    const from = (await readHotShipments(redis, [id])).get(id);
    const [stored] = await readShipments(redis, [id]);
    if (!from || !stored) return "missing";
    const corrected = correct(stored.record, from.meta, correction, by);
    if (corrected.kind !== "corrected") return corrected.kind;
    if (await write(redis, from, stored.record, corrected)) return "corrected";
  }
  throw new Error("the shipment kept changing while it was corrected");
}

async function write(
  redis: Redis,
  { id, version, rank, unpacked, updated, state }: HotShipment,
  before: ShipmentRecord,
  { record, meta }: Extract<Corrected, { readonly kind: "corrected" }>,
): Promise<boolean> {
  const { shipment, index, rows, exact, exactBits } = companyKeys(shipmentPartition(id));
  const { channelId } = record;
  const old = exactValues(before);
  const now = exactValues(record);
  const lost = old.filter((value) => !isAmong(value, now));
  const got = now.filter((value) => !isAmong(value, old));
  const keys = [...lost, ...got].flatMap(([field, value]) => [
    exact(channelId, field, value),
    exactBits(channelId, field, value),
  ]);
  const rest = `${rank} ${unpacked} ${updated}`;
  const reply = await run<number>(
    redis,
    correctScript,
    [shipment(id), index(channelId, "id"), rows(channelId), ...keys],
    [
      ...[`${version} ${rest}`, `${version + 1} ${rest}`],
      ...[encodeHot(meta, state), encodeRecord(record, meta)],
      ...[id, rank, MANY_OF_ONE_VALUE, lost.length, idDigits()].map(String),
    ],
  );
  return reply === 1;
}

type ExactValue = readonly [ExactField, string];

function isAmong([field, value]: ExactValue, values: readonly ExactValue[]): boolean {
  return values.some(([one, other]) => one === field && other === value);
}
