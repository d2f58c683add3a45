/** Writes webhook attempts to ClickHouse; outages, redelivery and refused rows are met as in `write-batches.ts`. */
import type { ClickHouseClient } from "@clickhouse/client";
import type { Redis } from "#core/redis/client/client.ts";
import { Unavailable } from "#core/redis/client/store-unavailable.ts";
import type { Live } from "#core/redis/config/live.ts";
import { decodeAttempts, markTaken } from "#core/redis/log/attempt-log.ts";
import type { Failure, Handler, LogItem } from "#core/redis/log/consumer.ts";
import { clickhouseErrorType } from "./clickhouse.ts";
import { insertRows, oncePerEntry, type Pending } from "./insert-rows.ts";
import { ATTEMPTS, attemptTableRow } from "./rows.ts";

export interface AttemptsDeps {
  readonly redis: Redis;
  readonly live: Live;
  /** @throws while ClickHouse is unavailable */
  readonly clickhouse: () => Promise<ClickHouseClient>;
  /** The table is gone: the next `clickhouse()` makes it again. */
  readonly forget: () => Promise<void>;
  /** Keyed hash of 16 characters, the same as of the other tables. */
  readonly mac: (text: string) => string;
}

export function attemptsHandler({ redis, live, clickhouse, forget, mac }: AttemptsDeps): Handler {
  return async (entries) => {
    const { channels } = await live.refresh();
    const isTest = (channelId: number) => Boolean(channels.get(channelId)?.testOf);
    const { pending, failures } = rowsOf(entries, mac, isTest);
    try {
      if (pending.length > 0) {
        failures.push(...(await insertRows(await clickhouse(), ATTEMPTS, pending)));
      }
    } catch (error) {
      if (clickhouseErrorType(error) === "UNKNOWN_TABLE") await forget();
      throw new Unavailable(`ClickHouse: ${(error as Error).message}`);
    }
    await markTaken(redis, entries);
    return oncePerEntry(failures);
  };
}

function rowsOf(
  entries: readonly LogItem[],
  mac: AttemptsDeps["mac"],
  isTest: (channelId: number) => boolean,
) {
  const pending: Pending[] = [];
  const failures: Failure[] = [];
  for (const entry of entries) {
    try {
      const counted = decodeAttempts(entry).filter(({ channelId }) => !isTest(channelId));
      const rows = counted.map((attempt) =>
        attemptTableRow(mac(`channel ${attempt.channelId}`), attempt),
      );
      pending.push(...rows.map((row) => ({ entry, row })));
    } catch (error) {
      failures.push({ entry, reason: String(error) });
    }
  }
  return { pending, failures };
}
