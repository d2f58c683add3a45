/** Writes the attempts of the day before the demo, once, so that the health of an endpoint has hours to show. */
import { bucketOf } from "#core/benchmarks/rules/latency-buckets.ts";
import { companyPartition, webhookKeys } from "#core/platform/redis/keys.ts";
import { hourOf } from "#core/platform/time/hour-of.ts";
import type { Runtime } from "#core/runtime/runtime.ts";
import { DELIVERY_LIFE_MS } from "#core/webhooks/store/deliveries/deliveries.ts";
import { DEMO_CHANNELS } from "./demo-setup.ts";
import type { Random } from "./journey.ts";
import { UNSTEADY_PATH } from "./receiver.ts";

const HOURS = 23;
/** Attempts in an hour: depots work from six in the morning to ten in the evening. */
const BY_DAY = 2_400;
const BY_NIGHT = 160;
const FAILING_SHARE = 0.11;

export async function seedDay({ redis, live }: Pick<Runtime, "redis" | "live">): Promise<void> {
  const { channelByCode } = live.configuration();
  for (const { code } of DEMO_CHANNELS) {
    const channel = channelByCode.get(code);
    for (const { id, url, createdAtMs } of channel?.endpoints ?? []) {
      const keys = webhookKeys(companyPartition(channel?.companyId ?? 0));
      const isUnsteady = url.endsWith(UNSTEADY_PATH);
      for (let ago = 1; ago <= HOURS; ago += 1) {
        const hour = hourOf(createdAtMs) - ago;
        const key = keys.attempts(id, hour);
        if ((await redis.exists(key)) > 0) return;
        await redis
          .multi()
          .hSet(key, planHour(hour, isUnsteady, Math.random))
          .pExpire(key, DELIVERY_LIFE_MS)
          .exec();
      }
    }
  }
}

/** The fields of `attempt-stats.ts`. */
function planHour(hour: number, isUnsteady: boolean, random: Random) {
  const isDay = hour % 24 >= 5 && hour % 24 < 21;
  const attempts = Math.round((isDay ? BY_DAY : BY_NIGHT) * (0.7 + 0.6 * random()));
  const failure = isUnsteady ? Math.round(attempts * FAILING_SHARE * 2 * random()) : 0;
  const counts: Record<string, number> = { success: attempts - failure, failure };
  for (let at = 0; at < attempts; at += 1) {
    const bucket = bucketOf(18 + 140 * random() ** 4);
    counts[bucket] = (counts[bucket] ?? 0) + 1;
  }
  return counts;
}
