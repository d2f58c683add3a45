/** Webhook attempts reach ClickHouse exactly once in effect, whatever is killed: the product, its Redis, its ClickHouse with it. */
import { beforeAll, describe, expect, test } from "bun:test";
import { event, pushUntilAccepted } from "#test/support/clients/courier.ts";
import { createShipments } from "#test/support/clients/event-stream.ts";
import { askPanel, readPanel } from "#test/support/clients/operator.ts";
import { webhookSetup } from "#test/support/data/setup.ts";
import { eventually } from "#test/support/eventually.ts";
import { forAll } from "#test/support/for-all.ts";
import { startProduct } from "#test/support/product/product.ts";
import { DELIVERED_LIMIT_MS, startReceiver, WEBHOOK_ENV } from "#test/support/servers/receiver.ts";
import { onServer, STORES } from "#test/support/servers/stores.ts";

const SHIPMENTS = 10;
const EVENTS = 60;
/** The first in the middle of deliveries, the second in the middle of what follows a kill. */
const KILLS = 2;

interface Logged {
  readonly deliveryId: string;
  readonly state: string;
  readonly attempts: ReadonlyArray<{ readonly attempt: number; readonly durationMs: number }>;
}

describe.each(STORES)("on %s", (store) => {
  const receiver = forAll(startReceiver);
  const product = forAll(() =>
    startProduct(
      webhookSetup({ url: receiver.url, trigger: "every_event" }),
      { ...WEBHOOK_ENV, ...onServer(store, 4) },
      store,
    ),
  );
  beforeAll(() => receiver.behave((_, response) => void setTimeout(() => response.end(), 20)));

  const read = (path: string) => readPanel(product, path);

  async function deliveryLog(): Promise<Logged[]> {
    const [endpoint] = (await read("/channels/acme-it/webhooks")).items;
    const all: Logged[] = [];
    for (let cursor: string | null = ""; cursor !== null; ) {
      const next: string = cursor === "" ? "" : `&cursor=${cursor}`;
      const page = await read(`/webhooks/${endpoint.id}/deliveries?limit=200${next}`);
      all.push(...page.items);
      cursor = page.cursor;
    }
    return all;
  }

  test("after kills in the middle of deliveries, every attempt of the delivery log is one row and there is no other", async () => {
    await createShipments(product, "TRY", SHIPMENTS);
    for (let kill = 1; kill <= KILLS; kill += 1) {
      // Of this round: what an earlier kill has held up arrives as well.
      const status = { code: "TRN", description: `round ${kill}` };
      const events = Array.from({ length: EVENTS }, (_, at) =>
        event({ trackingNumber: `TRY-${at % SHIPMENTS}`, status }),
      );
      await pushUntilAccepted(product.ingest, events);
      const own = () =>
        receiver.requests.filter(
          ({ body }) => body.data.event.courierStatus === status.description,
        );
      await eventually(() => own().length > 5, "deliveries are under way", DELIVERED_LIMIT_MS);
      await product.kill(kill % 2 === 0);
      await product.start();
    }
    const isSettled = async () => {
      const log = await deliveryLog();
      return log.length === KILLS * EVENTS && log.every(({ state }) => state === "delivered");
    };
    await eventually(isSettled, "everything is delivered", DELIVERED_LIMIT_MS);
    const expected = (await deliveryLog())
      .flatMap(({ deliveryId, attempts }) =>
        attempts.map(({ attempt, durationMs }) => `${deliveryId} ${attempt} ${durationMs}`),
      )
      .sort();
    const rows = async () => {
      const query = `SELECT delivery_id || ' ' || toString(attempt) || ' ' || toString(latency_ms) AS line
      FROM attempts FINAL ORDER BY line`;
      const { data = [] } = (await askPanel(product, "POST", "/sql", { query })).body;
      const lines: string[] = data.map(({ line }: { line: string }) => line);
      return lines.length >= expected.length && lines;
    };
    expect(await eventually(rows, "the attempts are in ClickHouse")).toEqual(expected);
  }, 300_000);
});
