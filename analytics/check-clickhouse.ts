/** Whether a ClickHouse server has the data of this installation, asked before a start writes to either store. */

import { openBare } from "#analytics/clickhouse/clickhouse.ts";
import { DEMO_FIRST_ID } from "#core/configuration/store/demo-identity.ts";
import { WrongStore, wrongStore } from "#core/configuration/store/store-kind.ts";
import type { CheckStore } from "#core/runtime/runtime.ts";

/** A server that is unavailable does not stop a start. */
const ASK_LIMIT_MS = 5_000;
const PLACE = "The database of CLICKHOUSE_URL";

interface Found {
  readonly rows: number;
  /** Of the year before the demo. */
  readonly demo: number;
}

/** @throws {WrongStore} */
export const checkClickhouse: CheckStore = async (config, isNew, log) => {
  if (config.clickhouseUrl === null) return;
  const { rows, demo } = await countDeliveries(config);
  if (config.isDemo) {
    if (rows > 0 && demo === 0) throw wrongStore("demo", PLACE);
  } else if (isNew) {
    if (demo > 0) throw wrongStore("real", PLACE);
    if (rows > 0) {
      throw new WrongStore(
        `${PLACE} holds the data of an installation, and Redis is empty: finish the restore of Redis, or name an empty database.`,
      );
    }
  } else if (demo > 0) {
    // An earlier version may have run the demo on real data.
    log.warn(
      { rows: demo },
      `invented deliveries of the demo stand among the real ones: DELETE FROM deliveries WHERE shipment_id >= ${DEMO_FIRST_ID}`,
    );
  }
};

async function countDeliveries(config: Parameters<CheckStore>[0]): Promise<Found> {
  const client = await openBare(config, {}, ASK_LIMIT_MS);
  try {
    const query = `SELECT toFloat64(count()) AS rows, toFloat64(countIf(shipment_id >= ${DEMO_FIRST_ID})) AS demo FROM deliveries`;
    const answer = await client.query({ query, format: "JSONEachRow" });
    const [found] = await answer.json<Found>();
    return found ?? { rows: 0, demo: 0 };
  } catch {
    return { rows: 0, demo: 0 };
  } finally {
    await client.close();
  }
}
