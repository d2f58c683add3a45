/** Ingest and track on a runtime of their own, for tests about which shipments an event reaches. */
import { expect } from "bun:test";
import type { NumberConflict } from "#core/events/store/number-conflicts.ts";
import { type Consumer, startConsumer } from "#core/platform/log/consumer.ts";
import { readLags } from "#core/platform/log/streams.ts";
import type { SetupFile } from "#core/setup/rules/setup.ts";
import { readHistory } from "#core/shipments/store/shipments.ts";
import { type Balance, readBalance } from "#core/webhooks/store/deliveries/ledger.ts";
import { startIngest } from "#ingest/main.ts";
import { trackHandler } from "#processors/track/track.ts";
import { push } from "#test/support/clients/courier.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { addShipment, type ShipmentOptions } from "#test/support/data/shipments.ts";
import { eventually } from "#test/support/eventually.ts";
import { openTestRuntime, type TestRuntime } from "./runtime.ts";

export interface Tracking {
  readonly runtime: TestRuntime;
  /** Of ingest. */
  readonly url: string;
  /** Each conflict that track has reported. */
  readonly conflicts: readonly NumberConflict[];
  readonly startTrack: () => void;
  readonly stopTrack: () => Promise<void>;
  /** A number that no shipment has. */
  readonly newNumber: () => string;
  readonly add: (number: string, channel?: string, options?: ShipmentOptions) => Promise<number>;
  /** The books once track has caught up. */
  readonly settled: () => Promise<Balance>;
  /** Outcomes of a message, when what was accepted has been applied. */
  readonly send: (...events: readonly unknown[]) => Promise<string[]>;
  /** Of each shipment the ids of the events in its history. */
  readonly eventsOf: (...ids: readonly number[]) => Promise<string[][]>;
  readonly end: () => Promise<void>;
}

/** Sender accounts: channel acme-it has ACC-1, beta-it has ACC-B, acme-outlet none. */
function trackingSetup(): SetupFile {
  const setup = testSetup();
  const beta = setup.companies?.[1]?.channels?.[0];
  if (beta) beta.couriers = [{ code: "GLS_ITA", senderAccounts: ["ACC-B"] }];
  return setup;
}

export async function openTracking(): Promise<Tracking> {
  const runtime = await openTestRuntime(trackingSetup(), { LOG_HIGH_WATER: "1600000" });
  const ingest = await startIngest(runtime);
  const url = ingest.url ?? "";
  const conflicts: NumberConflict[] = [];
  const { redis, live, log, config } = runtime;
  const onConflict = (conflict: NumberConflict) => void conflicts.push(conflict);
  const handler = trackHandler({ redis, live, eventsPerDay: config.eventsPerDay, onConflict });
  let track: Consumer | null = null;
  let numbers = 0;

  function startTrack(): void {
    track = startConsumer({ redis, log, source: "event", group: "track", handler, batch: 100 });
  }

  async function stopTrack(): Promise<void> {
    await track?.stop();
    track = null;
  }

  function settled(): Promise<Balance> {
    return eventually(async () => {
      const lags = await readLags(redis);
      const isDone = lags.every(({ group, entries }) => group !== "track" || entries === 0);
      return isDone ? readBalance(redis, live.configuration()) : null;
    }, "track has caught up");
  }

  startTrack();
  return {
    runtime,
    url,
    conflicts,
    startTrack,
    stopTrack,
    newNumber: () => {
      numbers += 1;
      return `NUMBER-${numbers}`;
    },
    add: (number, channel = "acme-it", options = {}) =>
      addShipment(runtime, number, { ...options, channel }),
    settled,
    async send(...events) {
      const { status, body } = await push(url, events);
      expect(status).toBe(200);
      await settled();
      return body.results.map(({ outcome }: { outcome: string }) => outcome);
    },
    async eventsOf(...ids) {
      const histories = await Promise.all(ids.map((id) => readHistory(redis, id)));
      return histories.map((history) => history.map((fact) => fact.event.eventId));
    },
    async end() {
      await stopTrack();
      await ingest.stop();
      await runtime.end();
    },
  };
}
