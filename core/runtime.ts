/** What every role starts from, and the life of a process: start, serve, stop on a signal. */
import { readFile } from "node:fs/promises";
import { type Config, ConfigFaults, readConfig } from "./config.ts";
import { labelCarriers } from "./domain/labels/label-carrier.ts";
import { illFormedText } from "./domain/schema/ill-formed-text.ts";
import { type SetupFile, settingsWithoutEffect } from "./domain/setup/setup.ts";
import { openOpsPort } from "./http/ops-port.ts";
import { parseStrictJson } from "./http/strict-json.ts";
import { createLog, type Log } from "./log.ts";
import { openSecrets, type Secrets, type SecretUse } from "./open-secrets.ts";
import { openTracing } from "./open-tracing.ts";
import {
  connectCluster,
  connectRedis,
  type Redis,
  StoreUnreachable,
} from "./redis/client/client.ts";
import { startEmbeddedRedis } from "./redis/client/embedded.ts";
import { describeFailure, reasonOf } from "./redis/client/store-unavailable.ts";
import { checkLayout, LayoutRefused, migrateStore } from "./redis/config/layout.ts";
import { createLive, type Live } from "./redis/config/live.ts";
import { ensureGroups } from "./redis/log/streams.ts";
import { applySetup, SetupFaults } from "./redis/setup/apply-setup.ts";
import { SecretRefused } from "./secret-files.ts";

export interface Runtime {
  readonly config: Config;
  readonly log: Log;
  readonly redis: Redis;
  readonly live: Live;
  readonly secrets: Secrets;
  readonly close: () => Promise<void>;
}

/** A started role. */
export interface Running {
  readonly name: string;
  /** Null for a role without a port. */
  readonly url: string | null;
  /** Absent if there is nothing to check: a role that serves is running while its port answers. */
  readonly isRunning?: () => boolean;
  /** Stops accepting, finishes what is in flight, acknowledges. */
  readonly stop: () => Promise<void>;
}

/** @param started what runs already, in the order of starting */
export type StartRole = (runtime: Runtime, started: readonly Running[]) => Promise<Running>;

/** Of webhooks whose host could not be checked, in one log line. */
export const HOSTS_NAMED = 20;
/** SIGTERM to exit 0 takes less than 10 s; what hangs longer is left to its redelivery. */
const STOP_LIMIT_MS = 9_000;
/** What is left of it belongs to the embedded Redis, which must not outlive us. */
const ROLES_STOP_LIMIT_MS = 6_000;

/**
 * Connects, loads secrets, applies the setup file if one is configured.
 * @throws {ConfigFaults} {SetupFaults} {SecretRefused} {LayoutRefused} after closing what it had opened
 */
export async function openRuntime(
  config: Config,
  log: Log,
  use: Pick<SecretUse, "isServing"> = {},
): Promise<Runtime> {
  const { redis, close: closeStore, isEmbedded } = await openStore(config, log);
  let close = closeStore;
  try {
    await migrateStore(redis, log);
    const opened = await openSecrets(config, redis, log, use);
    const { secrets } = opened;
    const closeTracing = await openTracing(config);
    close = async () => {
      await closeTracing();
      await opened.close();
      await closeStore();
    };
    await checkLayout(redis);
    if (!isEmbedded) await warnAboutDurability(redis, log);
    await ensureGroups(redis);
    if (secrets.newPanelToken !== null) announceSecret("operator", secrets.newPanelToken);
    if (config.webhookAllowedCidrs.length > 0) {
      log.warn("WEBHOOK_ALLOWED_CIDRS lets webhooks reach private networks");
    }
    const live = await createLive(redis, config.testClock, config.publicUrl);
    const runtime: Runtime = { config, log, redis, secrets, live, close };
    if (config.setupFile !== null) await applySetupFile(runtime, await readSetup(config.setupFile));
    return runtime;
  } catch (error) {
    await close();
    throw error;
  }
}

/**
 * Connects to the Redis of this installation, without checking its content.
 * @throws {StoreUnreachable}
 */
export async function openStore(config: Config, log: Log) {
  const isEmbedded = config.redisUrl === null && config.redisClusterUrls === null;
  const embedded = isEmbedded ? await startEmbeddedRedis(config.dataDir, log) : null;
  const redis = config.redisClusterUrls
    ? await connectCluster(config.redisClusterUrls, log, config.redisWaitReplicas)
    : await connectRedis(config.redisUrl ?? embedded?.address ?? "", log, config.redisWaitReplicas);
  return {
    redis,
    isEmbedded,
    async close() {
      await redis.close();
      await embedded?.stop();
    },
  };
}

/** @throws {ConfigFaults} when there is no such file or it is not JSON */
export async function readSetup(path: string): Promise<unknown> {
  const bytes = await readFile(path).catch((error: Error) => {
    throw new ConfigFaults([`SETUP_FILE: cannot be read: ${error.message}`]);
  });
  try {
    // The parse error gives the position.
    JSON.parse(bytes.toString());
    const { value, hasSurrogateEscapes } = parseStrictJson(bytes);
    const faults = hasSurrogateEscapes ? illFormedText(value) : [];
    if (faults.length === 0) return value;
    throw new ConfigFaults(faults.map((one) => `SETUP_FILE: ${one.path}: ${one.message}`));
  } catch (error) {
    if (error instanceof ConfigFaults) throw error;
    throw new ConfigFaults([`SETUP_FILE: ${path} is not JSON: ${(error as Error).message}`]);
  }
}

/**
 * @returns how many entities were written; 0 when the file changes nothing
 * @throws {SetupFaults}
 */
export async function applySetupFile(runtime: Runtime, file: unknown): Promise<number> {
  const { config, redis, secrets, live, log } = runtime;
  const { written, generated, unresolvedHosts } = await applySetup(
    redis,
    secrets.vault,
    file,
    live.now(),
    {
      isLabelCarrier: labelCarriers(config.nationalCarrier),
      webhookAllowedCidrs: config.webhookAllowedCidrs,
    },
  );
  for (const { owner, secret } of generated) announceSecret(owner, secret);
  await live.refresh();
  log.info({ written }, "setup applied");
  if (unresolvedHosts.length > 0) {
    const hosts = unresolvedHosts.slice(0, HOSTS_NAMED);
    const total = unresolvedHosts.length;
    log.warn({ hosts, total }, "hosts of webhooks could not be resolved; every send resolves them");
  }
  const ignored = settingsWithoutEffect(file as SetupFile);
  if (ignored.length > 0) log.warn({ settings: ignored }, "these settings are not in effect yet");
  return written;
}

/** Generated secrets are shown this once, on standard error, and in no log line. */
function announceSecret(owner: string, secret: string): void {
  process.stderr.write(`generated secret for ${owner}, shown only now: ${secret}\n`);
}

/** Durable before 200: warns when the server that was given promises less than the embedded one. */
async function warnAboutDurability(redis: Redis, log: Log): Promise<void> {
  try {
    const read = async (name: string) => (await redis.configGet(name))[name];
    const found = {
      appendonly: await read("appendonly"),
      appendfsync: await read("appendfsync"),
      aofLoadTruncated: await read("aof-load-truncated"),
      maxmemoryPolicy: await read("maxmemory-policy"),
    };
    const wanted = {
      ...{ appendonly: "yes", appendfsync: "always", aofLoadTruncated: "no" },
      maxmemoryPolicy: "noeviction",
    };
    if (!Bun.deepEquals(found, wanted)) {
      log.warn({ found, wanted }, "this Redis may lose events that were answered ACCEPTED");
    }
  } catch {
    log.warn(
      "cannot read the persistence settings of this Redis; check appendonly, appendfsync, aof-load-truncated, noeviction",
    );
  }
}

/** Runs roles until SIGTERM or SIGINT, then stops them in order and ends the process with status 0. */
export async function runRoles(
  env: Readonly<Record<string, string | undefined>>,
  roles: readonly StartRole[],
): Promise<void> {
  await guarded(async () => {
    const config = readConfig(env);
    const log = createLog(config.logLevel);
    await serve(log, openRuntime(config, log), roles);
  });
}

/**
 * Starts roles one after the other. A signal, also one that comes while they start, stops them in the opposite order:
 * what takes work in is started last and stopped first.
 * @throws what a start throws, after stopping what had started
 */
export async function serve(
  log: Log,
  opening: Promise<Runtime>,
  roles: readonly StartRole[],
): Promise<void> {
  const running: Running[] = [];
  let stopping = false;
  const stop = async () => {
    stopping = true;
    await Promise.race([stopRoles(log, running.toReversed()), Bun.sleep(ROLES_STOP_LIMIT_MS)]);
    await opening.then(
      (runtime) => runtime.close(),
      () => {},
    );
  };
  stopOnSignal(log, stop);
  try {
    const runtime = await opening;
    for (const start of [...metricsPort(runtime.config), ...roles])
      if (!stopping) running.push(await start(runtime, running));
  } catch (error) {
    // What was stopped in the middle of its start may well fail; the signal ends the process.
    if (stopping) return;
    await stop();
    throw error;
  }
  const urls = Object.fromEntries(running.flatMap(({ name, url }) => (url ? [[name, url]] : [])));
  if (!stopping) log.info(urls, "ready");
}

/** A separate port for the `/metrics` of the process, if one is configured. */
function metricsPort({ ports: { metrics } }: Config): StartRole[] {
  if (metrics === null) return [];
  return [async (runtime) => openOpsPort(runtime, "metrics", metrics, { isMetricsPort: true })];
}

async function stopRoles(log: Log, roles: readonly Running[]): Promise<void> {
  for (const { name, stop } of roles) {
    await stop().catch((error: Error) => log.error({ role: name, reason: error.message }, "stop"));
  }
}

/** A start refused for a reason that its message tells whole, such as a wrong argument. */
export class Refused extends Error {}

/** Errors whose message explains them are printed without a stack: faults of configuration and setup, a port in use. */
function explainsItself(error: unknown): boolean {
  const kinds = [
    ConfigFaults,
    SetupFaults,
    StoreUnreachable,
    SecretRefused,
    LayoutRefused,
    Refused,
  ];
  if (kinds.some((kind) => error instanceof kind)) return true;
  const code = (error as NodeJS.ErrnoException).code ?? "";
  return ["EADDRINUSE", "EADDRNOTAVAIL", "ENOTFOUND"].includes(code);
}

function explanationOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (explainsItself(error)) return error.message;
  return reasonOf(error) === null ? (error.stack ?? error.message) : describeFailure(error);
}

/** A start that fails ends the process with status 1. */
export async function guarded(start: () => Promise<void>): Promise<void> {
  try {
    await start();
  } catch (error) {
    process.stderr.write(`${explanationOf(error)}\n`);
    process.exit(1);
  }
}

function stopOnSignal(log: Log, stopAll: () => Promise<void>): void {
  let stopping = false;
  const stop = async () => {
    if (stopping) return;
    stopping = true;
    log.info("stopping");
    setTimeout(() => process.exit(0), STOP_LIMIT_MS).unref();
    await stopAll();
    log.info("stopped");
    process.exit(0);
  };
  for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, () => void stop());
  // Whoever read the log has gone; unheard, it would end the process and leave the embedded Redis behind.
  process.stdout.on("error", () => void stop());
}
