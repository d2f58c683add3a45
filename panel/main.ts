/** The panel role: the operators' HTTP API. */
import { openArchive } from "#analytics/archive.ts";
import { openBenchmarks } from "#analytics/benchmarks.ts";
import { openInsights } from "#analytics/insights.ts";
import type { Config } from "#core/platform/environment/config.ts";
import { problemResponse } from "#core/platform/errors/problem.ts";
import { bindListener, type Listener } from "#core/platform/http/listener.ts";
import { type Role, type Running, type Runtime, runRoles } from "#core/runtime/runtime.ts";
import { inviteFirstAdmin } from "#panel/server/accounts/first-admin.ts";
import { startWatchingAlarms } from "#panel/server/alarms/watch-alarms.ts";
import { createPanelApp } from "#panel/server/app.ts";
import { ORDERS_BODY_BYTES } from "#panel/server/http/read-json.ts";
import { webBundle } from "#panel/server/pages/web-bundle.ts";
import { keepSearchable } from "#panel/server/shipments/keep-searchable.ts";

/** Above our own limits, so that a body that is too large gets our problem document. */
const SERVER_BODY_LIMIT_BYTES = 2 * ORDERS_BODY_BYTES;
/** Longer than any answer takes: the server takes a connection for idle whose request has no body and waits for its answer. */
export const IDLE_SECONDS = 60;

/** @throws {PortRefused} */
function bindPanel({ host, ports }: Config): Listener {
  return bindListener({
    variable: "PANEL_PORT",
    host,
    port: ports.panel,
    maxRequestBodySize: SERVER_BODY_LIMIT_BYTES,
    idleTimeout: IDLE_SECONDS,
    refuse: problemResponse,
  });
}

export async function startPanel(runtime: Runtime): Promise<Running> {
  const { config, log, secrets } = runtime;
  // A machine without the token exits here, not at the first call.
  void secrets.panelToken;
  const listener = runtime.listeners.get("panel") ?? bindPanel(config);
  const benchmarks = await openBenchmarks(config);
  const insights = openInsights(config);
  const archive = openArchive(config, secrets.vault, log);
  const listeners = new Map(runtime.listeners).set("panel", listener);
  const app = createPanelApp({ ...runtime, listeners }, benchmarks, insights, archive);
  listener.open(app);
  // The first visitor does not wait for the bundler.
  void webBundle(config.dataDir).catch((error: Error) =>
    log.error(error, "the web application could not be bundled"),
  );
  // Checked in the background: a ClickHouse that does not answer must not delay the panel.
  void insights.sql.shutBecause().then((reason) => reason && log.warn(reason));
  const searchable = keepSearchable(runtime);
  const alarms = await startWatchingAlarms(runtime, benchmarks, insights);
  const { url } = listener;
  log.info({ url }, "panel listens");
  return {
    name: "panel",
    url,
    isServing: true,
    onceUp: () => inviteFirstAdmin(runtime, config.publicUrl),
    async stop() {
      // The streams of the overview would hold the stop.
      listener.drain();
      await Promise.all([listener.stop(), searchable.stop(), alarms.stop()]);
      await Promise.all([benchmarks.close(), insights.close(), archive.close()]);
    },
  };
}

export const PANEL: Role = { name: "panel", bind: bindPanel, start: startPanel };

if (import.meta.main) await runRoles(process.env, [PANEL]);
