/** The processors role: logs in, state and webhooks out. */
import { openArchive } from "#analytics/archive.ts";
import type { NumberConflict } from "#core/events/store/number-conflicts.ts";
import type { Config } from "#core/platform/environment/config.ts";
import type { Listener } from "#core/platform/http/listener.ts";
import { startConsumer } from "#core/platform/log/consumer.ts";
import { atWork, foreground } from "#core/platform/process/background.ts";
import type { Log } from "#core/platform/process/log.ts";
import { STORE_NEEDS } from "#core/platform/redis/store-needs.ts";
import { limit } from "#core/platform/schema/limit.ts";
import { bindRoleListener, openOpsPort } from "#core/runtime/ops-port.ts";
import { type Role, type Running, type Runtime, runRoles } from "#core/runtime/runtime.ts";
import { startErasures } from "#processors/jobs/erasures.ts";
import { startFileRewrites } from "#processors/jobs/file-rewrites.ts";
import { startJobs } from "#processors/jobs/start.ts";
import { startTestParcels } from "#processors/jobs/test-parcels.ts";
import { startNotify } from "#processors/notify/start.ts";
import { startParkedExpiry } from "#processors/track/parked-expiry.ts";
import { referencesHandler } from "#processors/track/references.ts";
import { startRemaps } from "#processors/track/remap.ts";
import { trackHandler } from "#processors/track/track.ts";
import { startAlertMails, startWebhooks } from "#processors/webhooks/start.ts";

/** Under load the events of one shipment meet in a batch, and are read and written once. */
export const EVENTS_AT_ONCE = limit(4_000, "events handed to track at once", "the next call");
/** Whoever creates a shipment registers it: this reader comes after one that was cut short, and may come late. */
const REFERENCES_LINGER_MS = 200;

/** Port of health and metrics when the role runs alone. */
const ALONE_PORT = 8083;

/** @param usual null = only the port named by the environment */
function bindProcessors({ host, ports }: Config, log: Log, usual: number | null): Listener | null {
  const port = { variable: "PROCESSORS_PORT", configured: ports.processors, usual } as const;
  return bindRoleListener({ host }, port, log);
}

export async function startProcessors(runtime: Runtime): Promise<Running> {
  const listener =
    runtime.listeners.get("processors") ?? bindProcessors(runtime.config, runtime.log, null);
  const { redis, live, log, config } = runtime;
  const common = { redis, log, batch: EVENTS_AT_ONCE };
  const { eventsPerDay } = config;
  const onConflict = ({ courier, eventId, shipmentId, otherShipmentIds }: NumberConflict) =>
    log.warn(
      { courier, eventId, shipmentId, otherShipmentIds },
      "a tracking number change points to the number of another live shipment",
    );
  const archive = openArchive(config, runtime.secrets.vault, runtime.log);
  const tracking = { redis, live, eventsPerDay, onConflict, archive };
  const trackEvents = trackHandler(tracking);
  const track = startConsumer({
    ...common,
    source: "event",
    group: "track",
    handler(entries) {
      atWork(null);
      return foreground(() => trackEvents(entries));
    },
  });
  const references = startConsumer({
    ...common,
    source: "change",
    group: "references",
    handler: referencesHandler(tracking),
    lingerMs: REFERENCES_LINGER_MS,
    gatherMs: REFERENCES_LINGER_MS,
  });
  const webhooks = await startWebhooks(runtime);
  const alerts = await startAlertMails(runtime);
  const jobs = await startJobs(runtime);
  const notify = await startNotify(runtime);
  const remaps = startRemaps({ redis, live, log, archive });
  const expiry = startParkedExpiry({ redis, live, log });
  const tests = startTestParcels(runtime);
  const erasures = startErasures({ redis, live, log, config, archive });
  const isEmbedded = config.redisUrl === null && config.redisClusterUrls === null;
  const rewrites = isEmbedded ? startFileRewrites({ redis, live, log }) : null;
  const consumers = Object.entries({ track, references, webhooks, notify });
  const reasonNotReady = async () => {
    const [group] = consumers.find(([, { isRunning }]) => isRunning?.() === false) ?? [];
    return group === undefined ? null : `the consumers of ${group} are not running`;
  };
  const port =
    listener &&
    openOpsPort(runtime, "processors", listener, {
      needs: STORE_NEEDS.processors,
      refresh: live.refresh,
      reasonNotReady,
    });
  log.info("processors started");
  return {
    name: "processors",
    url: port?.url ?? null,
    async stop() {
      await Promise.all([
        track.stop(),
        references.stop(),
        remaps.stop(),
        expiry.stop(),
        erasures.stop(),
        rewrites?.stop(),
        tests.stop(),
        jobs.stop(),
        notify.stop(),
        webhooks.stop(),
        alerts.stop(),
      ]);
      await archive.close();
      // Closed last: until now it has answered that the role is no longer ready.
      await port?.stop();
    },
  };
}

const processors = (usual: number | null): Role => ({
  name: "processors",
  bind: (config, log) => bindProcessors(config, log, usual),
  start: startProcessors,
});

export const PROCESSORS: Role = processors(null);
/** In a process of its own. */
export const PROCESSORS_ALONE: Role = processors(ALONE_PORT);

if (import.meta.main) await runRoles(process.env, [PROCESSORS_ALONE]);
