/**
 * Writes webhook attempts to ClickHouse, and has the step that whatever waits in a log of its own is written with; outages,
 * redelivery and refused rows are met as in `write-batches.ts`.
 */
import type { ClickHouseClient } from "@clickhouse/client";
import { clickhouseErrorType } from "#analytics/clickhouse/clickhouse.ts";
import type { Live } from "#core/configuration/store/live.ts";
import type { Failure, Handler, LogItem } from "#core/platform/log/consumer.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import { Unavailable } from "#core/platform/redis/store-unavailable.ts";
import { decodeAttempts, markTaken } from "#core/webhooks/store/attempt-log.ts";
import { insertRows, oncePerEntry, type Pending } from "./insert-rows.ts";
import { ATTEMPTS, attemptTableRow, type Table } from "./rows.ts";

export interface InsertDeps {
  readonly redis: Redis;
  /** @throws while ClickHouse is unavailable */
  readonly clickhouse: () => Promise<ClickHouseClient>;
  /** The table is gone: the next `clickhouse()` makes it again. */
  readonly forget: () => Promise<void>;
}

export interface AttemptsDeps extends InsertDeps {
  readonly live: Live;
  /** Keyed hash of 16 characters, the same as of the other tables. */
  readonly mac: (text: string) => string;
}

export function attemptsHandler(deps: AttemptsDeps): Handler {
  const { redis, live, mac } = deps;
  return async (entries) => {
    const { channels } = await live.refresh();
    const isTest = (channelId: number) => Boolean(channels.get(channelId)?.testOf);
    const rows = rowsOf(entries, mac, isTest);
    return insertOrWait(deps, ATTEMPTS, rows, () => markTaken(redis, entries));
  };
}

export interface Rows {
  readonly pending: readonly Pending[];
  /** Entries that no row can be made of. */
  readonly failures: readonly Failure[];
}

/**
 * @param taken called once ClickHouse has all rows that it does not refuse
 * @throws {Unavailable} so that the whole batch waits
 */
export async function insertOrWait(
  { clickhouse, forget }: Omit<InsertDeps, "redis">,
  table: Table,
  { pending, failures }: Rows,
  taken: () => Promise<void>,
): Promise<readonly Failure[]> {
  const isAny = pending.length > 0;
  let refused: readonly Failure[] = [];
  try {
    if (isAny) refused = await insertRows(await clickhouse(), table, pending);
  } catch (error) {
    if (clickhouseErrorType(error) === "UNKNOWN_TABLE") await forget();
    throw new Unavailable(`ClickHouse: ${(error as Error).message}`, "clickhouse");
  }
  await taken();
  return oncePerEntry([...failures, ...refused]);
}

function rowsOf(
  entries: readonly LogItem[],
  mac: AttemptsDeps["mac"],
  isTest: (channelId: number) => boolean,
): Rows {
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
