/** Erases what receivers have answered about a shipment: an answer may repeat what it was sent. */
import type { Redis } from "#core/platform/redis/client.ts";
import { shipmentPartition, webhookKeys } from "#core/platform/redis/keys.ts";
import { swapField } from "#core/platform/redis/swap-field.ts";
import { attemptText, readAttempts } from "#core/webhooks/store/deliveries/attempts.ts";
import { deliveryIdOf, readDecisions } from "#core/webhooks/store/deliveries/deliveries.ts";

/** Of the deliveries of its decisions of the last 30 days. What is being sent meanwhile is found by the next repetition. */
export async function eraseAnswers(redis: Redis, shipmentId: number): Promise<void> {
  const partition = shipmentPartition(shipmentId);
  const { delivery } = webhookKeys(partition);
  for (const { eventId, verdicts } of await readDecisions(redis, shipmentId)) {
    for (const [endpointId, verdict] of verdicts) {
      if (verdict !== "send") continue;
      await eraseSnippets(redis, delivery(deliveryIdOf(partition, endpointId, eventId)));
    }
  }
}

async function eraseSnippets(redis: Redis, key: string): Promise<void> {
  for (;;) {
    const from = await redis.hGet(key, "a");
    if (!from) return;
    const attempts = readAttempts(from);
    const nothing = { responseSnippet: null, responseHeaders: null };
    if (attempts.every((one) => Bun.deepEquals({ ...one, ...nothing }, one))) return;
    const erased = attempts.map((one) => attemptText({ ...one, ...nothing }));
    if (await swapField(redis, key, "a", { from, to: `[${erased.join(",")}]` })) return;
  }
}
