/** The whole product with its demo: setup, simulated couriers, a merchant's receiver and the live line. */
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Config } from "#core/platform/environment/config.ts";
import { readLags } from "#core/platform/log/streams.ts";
import { parseCidr } from "#core/platform/network/cidr.ts";
import type { Log } from "#core/platform/process/log.ts";
import { secretPath } from "#core/platform/secrets/secret-files.ts";
import {
  applySetupFile,
  type OpenOptions,
  openRuntime,
  type Role,
  type Running,
  type Runtime,
  type StartRole,
  serve,
} from "#core/runtime/runtime.ts";
import { type DemoDepot, startDemoDepot } from "./demo-depot.ts";
import { demoSetup } from "./demo-setup.ts";
import { startFleet } from "./fleet.ts";
import { createMerchantClient } from "./merchant-client.ts";
import { type SimulatedCarrier, startNationalCarrier } from "./national-carrier.ts";
import { settleIn } from "./people.ts";
import { type Receiver, startReceiver } from "./receiver.ts";
import { seedDay } from "./seed-day.ts";
import { seedYear } from "./seed-year.ts";
import { type SummaryLine, showSummaryLine } from "./summary-line.ts";
import { welcome } from "./welcome.ts";

/** The receiver listens on the loopback network only. */
const LOOPBACK = ["127.0.0.0/8", "::1/128"];

export async function runDemo(config: Config, log: Log, roles: readonly Role[]): Promise<void> {
  let now = Date.now;
  const receiver = await startReceiver(() => now());
  const depot = startDemoDepot(() => now());
  const carrier = startNationalCarrier();
  const open = async (given: Config, options: OpenOptions) => {
    const opened = await openRuntime(given, log, options);
    now = opened.live.now;
    const runtime = { ...opened, config: withCarrier(await trusting(given, receiver), carrier) };
    const setup = demoSetup(receiver.url, depot.url, config.nationalCarrier);
    await applySetupFile(runtime, setup).catch(async (error) => {
      await runtime.close();
      throw error;
    });
    return runtime;
  };
  const demo: Role = { name: "demo", start: startDemo(receiver, depot, carrier) };
  await serve(config, log, [...roles, demo], open);
}

/** Webhooks may reach the receiver, besides what the environment allows. */
async function trusting(config: Config, receiver: Receiver): Promise<Config> {
  const folder = join(config.dataDir, "demo");
  const webhookCaFile = join(folder, "webhook-ca.pem");
  const own = config.webhookCaFile === null ? "" : await readFile(config.webhookCaFile, "utf8");
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await writeFile(webhookCaFile, `${own}\n${receiver.ca}`);
  const loopback = LOOPBACK.map(parseCidr).filter((cidr) => cidr !== null);
  const webhookAllowedCidrs = [...config.webhookAllowedCidrs, ...loopback];
  return { ...config, webhookCaFile, webhookAllowedCidrs };
}

/** A gateway of the environment comes before ours. */
function withCarrier(config: Config, { url }: SimulatedCarrier): Config {
  return { ...config, nationalCarrierUrl: config.nationalCarrierUrl ?? url };
}

/** Where the operator's token is, also at a second start. */
function tokenPlace({ panelToken, dataDir }: Config): string {
  return panelToken === null ? `in ${secretPath(dataDir, "panel-token")}` : "in PANEL_TOKEN";
}

function startDemo(receiver: Receiver, depot: DemoDepot, carrier: SimulatedCarrier): StartRole {
  return async (runtime: Runtime, started: readonly Running[]) => {
    const { redis, log } = runtime;
    const urlOf = (role: string) => started.find(({ name }) => name === role)?.url ?? "";
    const urls = { api: urlOf("api"), ingest: urlOf("ingest"), panel: urlOf("panel") };
    depot.tellBy(urls.ingest);
    await seedYear(runtime).catch((error: Error) =>
      log.warn({ reason: error.message }, "the demo's past year could not be written"),
    );
    await seedDay(runtime);
    const fleet = startFleet({ apiUrl: urls.api, ingestUrl: urls.ingest, runtime });
    const leaving = new AbortController();
    const people = settleIn({
      panelUrl: urls.panel,
      panelToken: runtime.secrets.panelToken,
      signal: leaving.signal,
      merchants: createMerchantClient(urls.api, leaving.signal),
    }).catch((error: Error) => {
      if (leaving.signal.aborted) return;
      log.warn({ reason: error.message }, "the demo's people could not settle in");
    });
    let line: SummaryLine | null = null;
    return {
      name: "demo",
      url: null,
      onceUp() {
        process.stdout.write(welcome(urls, tokenPlace(runtime.config)));
        line = showSummaryLine(async () => ({
          outcomes: fleet.outcomes,
          webhooks: receiver.received,
          lags: await readLags(redis),
        }));
      },
      async stop() {
        line?.stop();
        leaving.abort();
        await people;
        await fleet.stop();
        await depot.stop();
        await carrier.stop();
        await receiver.stop();
      },
    };
  };
}
