/** The whole product on a cluster whose nodes a test takes away, with a receiver of the webhooks of two companies. */

import { expect } from "bun:test";
import { loadPartitioning } from "#core/configuration/store/partitioning.ts";
import { createLog } from "#core/platform/process/log.ts";
import { connectCluster } from "#core/platform/redis/client.ts";
import { readPanel } from "#test/support/clients/operator.ts";
import { analysedEvents } from "#test/support/data/analysed-events.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { eventually } from "#test/support/eventually.ts";
import { AUTHORITY, type Receiver, startReceiver } from "#test/support/servers/receiver.ts";
import { startTestCluster, type TestCluster } from "#test/support/servers/redis-cluster.ts";
import { BARE, newProduct, type Product } from "./product.ts";

const SETTLE_LIMIT_MS = 120_000;

export interface ClusterProduct {
  readonly cluster: TestCluster;
  readonly product: Product;
  readonly receiver: Receiver;
  /** Waits until each of so many events has been reported once and recorded as delivered. */
  readonly delivered: (events: number) => Promise<void>;
  /** Stops the product. @returns events in its ClickHouse */
  readonly analysed: () => Promise<number>;
  readonly end: () => Promise<void>;
}

export async function openClusterProduct(): Promise<ClusterProduct> {
  const receiver = await startReceiver();
  const setup = testSetup();
  const boxes = setup.companies?.[0]?.boxes ?? [];
  for (const company of setup.companies ?? []) {
    company.boxes = boxes;
    const [channel] = company.channels ?? [];
    const common = { trigger: "every_event", alertEmail: "ops@acme.test" } as const;
    if (channel) channel.webhooks = [{ code: "main", url: receiver.url, ...common }];
  }
  const cluster = await startTestCluster();
  const product = await newProduct(BARE, setup, {
    REDIS_CLUSTER_URLS: cluster.urls,
    REDIS_WAIT_REPLICAS: "1",
    WEBHOOK_ALLOWED_CIDRS: "127.0.0.0/8",
    WEBHOOK_CA_FILE: AUTHORITY.file,
  });
  await product.start();
  // What tests ask of key names holds for this store.
  const redis = await connectCluster(cluster.urls.split(","), createLog("silent"));
  await loadPartitioning(redis);
  redis.destroy();
  return {
    cluster,
    product,
    receiver,
    async delivered(events) {
      const reported = () => new Set(receiver.requests.map(({ body }) => body.id));
      await eventually(
        () => reported().size === events,
        () => `${events} webhooks arrive; ${reported().size} have`,
        SETTLE_LIMIT_MS,
      );
      expect(receiver.requests).toHaveLength(events);
      const recorded = async () => (await readPanel(product, "/overview")).ledger.delivered;
      await eventually(async () => (await recorded()) === events, "every delivery is recorded");
    },
    async analysed() {
      await product.terminate();
      return analysedEvents({ DATA_DIR: product.dataDir });
    },
    async end() {
      await product.end();
      await cluster.stop();
      await receiver.stop();
    },
  };
}
