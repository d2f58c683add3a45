/** Design, "Our own downtime is nobody's fault": the clocks of failing endpoints (document 3, "Endpoint") while we are down. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { createRunningTime } from "#core/platform/log/running-time.ts";
import { openRuntime, type Running, type Runtime } from "#core/runtime/runtime.ts";
import { readAlerts, removeAlert } from "#core/webhooks/store/alerts.ts";
import { enableEndpoint, failingSince } from "#core/webhooks/store/endpoints.ts";
import { checkHealth } from "#processors/webhooks/health-clock.ts";
import { startWebhooks } from "#processors/webhooks/start.ts";
import { eventually } from "#test/support/eventually.ts";
import { forAll } from "#test/support/for-all.ts";
import type { TestRuntime } from "#test/support/product/runtime.ts";
import {
  applyEvents,
  deliveriesOf,
  endpointOf,
  newShipment,
  openWebhookRuntime,
  passTime,
  STATUS,
} from "#test/support/product/webhooks.ts";
import { startReceiver } from "#test/support/servers/receiver.ts";
import { startTestCluster } from "#test/support/servers/redis-cluster.ts";

const HOUR_S = 3_600;
const DAY_S = 24 * HOUR_S;

const receiver = forAll(startReceiver);

for (const store of ["one Redis", "a cluster"] as const) {
  describe(`on ${store}`, () => {
    let runtime: TestRuntime;
    let endStore = async () => {};
    let roles: Running[] = [];

    beforeAll(async () => {
      const webhook = { url: receiver.url };
      if (store === "one Redis") {
        runtime = await openWebhookRuntime([webhook]);
      } else {
        const cluster = await startTestCluster();
        endStore = cluster.stop;
        const given = { address: "/", stop: async () => {} };
        runtime = await openWebhookRuntime([webhook], { REDIS_CLUSTER_URLS: cluster.urls }, given);
      }
    }, 120_000);
    afterAll(async () => {
      await runtime.end();
      await endStore();
    });

    const main = () => endpointOf(runtime, "main");
    const kinds = async () => (await readAlerts(runtime.redis, 100)).map(({ kind }) => kind);
    const stopAll = async () => {
      await Promise.all(roles.map((role) => role.stop()));
      roles = [];
    };

    beforeEach(async () => {
      const { redis, live } = runtime;
      await enableEndpoint(redis, await live.refresh(), main().id);
      await live.refresh();
      for (const alert of await readAlerts(redis, 100)) await removeAlert(redis, alert);
      receiver.behave(503);
      roles = [await startWebhooks(runtime)];
    });
    afterEach(stopAll);

    /** A look at the clocks beside those of the timer. */
    async function tick(): Promise<void> {
      const running = createRunningTime(runtime.redis);
      await checkHealth(runtime, running);
      await running.end(runtime.live.now());
    }

    /** A delivery whose first attempt has failed. */
    async function failOnce(): Promise<void> {
      const id = await newShipment(runtime);
      await applyEvents(runtime, id, [{ status: STATUS.inTransit }]);
      await eventually(async () => {
        const [delivery] = await deliveriesOf(runtime, main());
        return delivery?.shipmentId === id && delivery.attempts.length > 0;
      }, "the first attempt");
    }

    test("after four days without processors the retry is delivered, and the endpoint is neither alerted about nor disabled", async () => {
      await failOnce();
      await stopAll();
      await passTime(runtime, 4 * DAY_S);
      roles = [await startWebhooks(runtime)];
      await tick();
      expect(await kinds()).toEqual([]);
      receiver.behave(200);
      await passTime(runtime, HOUR_S);
      const { redis, live } = runtime;
      await eventually(async () => {
        const [delivery] = await deliveriesOf(runtime, main());
        return delivery?.state === "delivered";
      }, "the retry is delivered");
      await eventually(
        async () => (await failingSince(redis, live.configuration(), main().id)) === null,
        "the endpoint is healthy",
      );
      expect(await kinds()).toEqual([]);
      expect((await live.refresh()).endpoints.get(main().id)?.active).toBe(true);
    });

    test("the clocks go on where they stood: 24 hours and 3 days of running, over several downtimes", async () => {
      await failOnce();
      for (const days of [5, 1]) {
        await passTime(runtime, 11 * HOUR_S);
        await stopAll();
        await passTime(runtime, days * DAY_S);
        roles = [await startWebhooks(runtime)];
      }
      await passTime(runtime, HOUR_S);
      await tick();
      expect(await kinds()).toEqual([]);
      await passTime(runtime, HOUR_S + 60);
      await eventually(async () => (await kinds()).length === 1, "the first alert");
      expect(await kinds()).toEqual(["warning"]);
      await stopAll();
      await passTime(runtime, 30 * DAY_S);
      roles = [await startWebhooks(runtime)];
      await passTime(runtime, 47 * HOUR_S);
      await tick();
      expect(await kinds()).toEqual(["warning"]);
      await passTime(runtime, HOUR_S);
      await eventually(async () => (await kinds()).length === 2, "the second alert");
      expect(await kinds()).toEqual(["warning", "disabled"]);
    });

    test("they run while one of two processes is down, and while each is replaced in turn", async () => {
      await failOnce();
      const { config, log } = runtime;
      const others: Runtime[] = [];
      for (let n = 0; n < 3; n += 1) {
        const other = await openRuntime(config, log);
        others.push(other);
        const started = await startWebhooks(other);
        await stopAll();
        roles = [started];
        await passTime(runtime, DAY_S);
      }
      await eventually(async () => (await kinds()).length === 2, "both alerts");
      expect(await kinds()).toEqual(["warning", "disabled"]);
      await stopAll();
      for (const other of others) await other.close();
    });
  });
}
