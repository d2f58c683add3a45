/** What every role starts from, and the life of a process: start, serve, stop on a signal. */
import { readFile } from "node:fs/promises";
import { checkLayout, migrateStore } from "#core/configuration/store/layout.ts";
import { LayoutRefused } from "#core/configuration/store/layout-refused.ts";
import { createLive, type Live } from "#core/configuration/store/live.ts";
import { claimPartitioning, loadPartitioning } from "#core/configuration/store/partitioning.ts";
import { expectRestored, RestoreUnfinished } from "#core/configuration/store/restore-mark.ts";
import { claimStore, WrongStore } from "#core/configuration/store/store-kind.ts";
import { labelCarriers } from "#core/merchants/rules/label-carrier.ts";
import { startCallCounts } from "#core/placement/store/partition-load.ts";
import { type Config, ConfigFaults, readConfig } from "#core/platform/environment/config.ts";
import { urlOf } from "#core/platform/environment/url-of.ts";
import { parseStrictJson } from "#core/platform/http/body/strict-json.ts";
import { explainPort } from "#core/platform/http/explain-port.ts";
import { type Listener, PortRefused } from "#core/platform/http/listener.ts";
import { ensureGroups } from "#core/platform/log/streams.ts";
import type { Program } from "#core/platform/process/command-line.ts";
import { createLog, type Log } from "#core/platform/process/log.ts";
import { buildInfo } from "#core/platform/process/metrics.ts";
import { openTracing } from "#core/platform/process/open-tracing.ts";
import { ROLES_STOP_LIMIT_MS } from "#core/platform/process/stop-limits.ts";
import { COMMIT, VERSION } from "#core/platform/process/version.ts";
import {
  connectCluster,
  connectRedis,
  type Redis,
  StoreUnreachable,
} from "#core/platform/redis/client.ts";
import { startEmbeddedRedis } from "#core/platform/redis/embedded/embedded.ts";
import { awaitReplicas } from "#core/platform/redis/replicas.ts";
import { describeFailure, reasonOf } from "#core/platform/redis/store-unavailable.ts";
import { unlessShardUnavailable } from "#core/platform/redis/unavailable-shard.ts";
import { illFormedText } from "#core/platform/schema/ill-formed-text.ts";
import { limit } from "#core/platform/schema/limit.ts";
import { SecretRefused } from "#core/platform/secrets/secret-files.ts";
import { keepUnshown, showUnshown } from "#core/platform/secrets/unshown-secrets.ts";
import {
  checkSetup,
  type SetupFile,
  settingsWithoutEffect,
  withoutOrderNulls,
} from "#core/setup/rules/setup.ts";
import { applySetup, SetupFaults } from "#core/setup/store/apply-setup.ts";
import { warnAboutDurability } from "./durability.ts";
import { endOnSignal } from "./end-on-signal.ts";
import { openSecrets, type Secrets, type SecretUse } from "./open-secrets.ts";
import { bindOpsListener, METRICS_VARIABLE, openOpsPort } from "./ops-port.ts";

export interface Runtime {
  readonly config: Config;
  readonly log: Log;
  readonly redis: Redis;
  readonly live: Live;
  readonly secrets: Secrets;
  /** Ports that have been bound, by the name of their role; a role whose port is not among them binds it itself. */
  readonly listeners: ReadonlyMap<string, Listener>;
  readonly close: () => Promise<void>;
}

/** A started role. */
export interface Running {
  readonly name: string;
  /** Null for a role without a port. */
  readonly url: string | null;
  /** Absent if there is nothing to check: a role that serves is running while its port answers. */
  readonly isRunning?: () => boolean;
  /** It serves callers from outside. Such roles stop together: none goes on accepting while another answers what it has accepted. */
  readonly isServing?: true;
  /** Runs once every role of the process has started. */
  readonly onceUp?: () => Promise<void> | void;
  /** Stops accepting, finishes what is in flight, acknowledges. */
  readonly stop: () => Promise<void>;
}

/** @param started what runs already, in the order of starting */
export type StartRole = (runtime: Runtime, started: readonly Running[]) => Promise<Running>;

/** @param isNew the Redis of this start was empty */
export type CheckStore = (config: Config, isNew: boolean, log: Log) => Promise<void>;

export interface Role {
  readonly name: string;
  /** Absent = always. */
  readonly isWanted?: (config: Config) => boolean;
  /**
   * Binds the role's port, before anything is written; null = it has none.
   * @throws {PortRefused} {ConfigFaults}
   */
  readonly bind?: (config: Config, log: Log) => Listener | null | Promise<Listener | null>;
  /**
   * Refuses a store of the other kind (`StoreKind`) besides Redis, before anything is written.
   * @throws {WrongStore}
   */
  readonly check?: CheckStore;
  readonly start: StartRole;
}

export const HOSTS_NAMED = limit(
  20,
  "unresolved hosts named in a log line",
  "the line has their number",
);

export interface OpenOptions extends Pick<SecretUse, "isServing"> {
  readonly listeners?: Runtime["listeners"];
  readonly checks?: readonly CheckStore[];
}

/**
 * Connects, loads secrets, applies the setup file if one is configured.
 * @throws {ConfigFaults} {SetupFaults} {SecretRefused} {LayoutRefused} after closing what it had opened
 */
export async function openRuntime(
  config: Config,
  log: Log,
  { listeners = new Map(), checks = [], ...use }: OpenOptions = {},
): Promise<Runtime> {
  const setup = config.setupFile === null ? null : await readSetup(config.setupFile);
  const { redis, close: closeStore, isEmbedded } = await openStore(config, log);
  let close = closeStore;
  try {
    await awaitReplicas(redis, config.replicas, log);
    const claim = { isDemo: config.isDemo, place: storePlace(config) };
    const isNew = await claimStore(redis, claim, log);
    for (const check of checks) await check(config, isNew, log);
    await migrateStore(redis, log);
    if (await claimPartitioning(redis, config.storePartitions)) {
      log.warn("STORE_PARTITIONS counts at the first start on a store: this one has others");
    }
    const opened = await openSecrets(config, redis, log, use);
    const { secrets } = opened;
    for (const warning of config.otelWarnings) log.warn(warning);
    const closeTracing = await openTracing(config, log);
    const stopCounting = use.isServing === false ? null : startCallCounts(redis, log);
    close = async () => {
      await closeTracing();
      await stopCounting?.();
      await opened.close();
      await closeStore();
    };
    await checkLayout(redis);
    if (!isEmbedded) await warnAboutDurability(redis, log);
    await ensureGroups(redis);
    if (config.webhookAllowedCidrs.length > 0) {
      log.warn("WEBHOOK_ALLOWED_CIDRS lets webhooks reach private networks");
    }
    const live = await createLive(redis, config.testClock, config.publicUrl);
    const runtime: Runtime = { config, log, redis, secrets, live, listeners, close };
    if (setup !== null) await applySetupFile(runtime, setup);
    return runtime;
  } catch (error) {
    await close();
    throw error;
  }
}

/** The store in the words of a message; a URL may hold a password. */
export function storePlace({ redisUrl, redisClusterUrls, dataDir }: Config): string {
  if (redisClusterUrls !== null) return "The cluster of REDIS_CLUSTER_URLS";
  return redisUrl === null ? dataDir : "The store of REDIS_URL";
}

/**
 * Connects to the Redis of this installation, without checking its content besides how many partitions it has.
 * @throws {StoreUnreachable} {RestoreUnfinished}
 */
export async function openStore(config: Config, log: Log) {
  await expectRestored(config.dataDir);
  const isEmbedded = config.redisUrl === null && config.redisClusterUrls === null;
  const embedded = isEmbedded ? await startEmbeddedRedis(config.dataDir, log) : null;
  const redis = config.redisClusterUrls
    ? await connectCluster(config.redisClusterUrls, log, config.replicas)
    : await connectRedis(config.redisUrl ?? embedded?.address ?? "", log, config.replicas);
  const store = {
    redis,
    isEmbedded,
    async close() {
      await redis.close();
      await embedded?.stop();
    },
  };
  try {
    await loadPartitioning(redis).catch(unlessShardUnavailable(redis));
    return store;
  } catch (error) {
    await store.close();
    throw error;
  }
}

/** @throws {ConfigFaults} when there is no such file or it is not JSON {SetupFaults} for what it says, apart from the store */
export async function readSetup(path: string): Promise<unknown> {
  const bytes = await readFile(path).catch((error: Error) => {
    throw new ConfigFaults([`SETUP_FILE: cannot be read: ${error.message}`]);
  });
  try {
    // The parse error gives the position.
    JSON.parse(bytes.toString());
    const { value, hasSurrogateEscapes } = parseStrictJson(bytes);
    const faults = hasSurrogateEscapes ? illFormedText(value) : [];
    if (faults.length === 0) return wellSaid(value);
    throw new ConfigFaults(faults.map((one) => `SETUP_FILE: ${one.path}: ${one.message}`));
  } catch (error) {
    if (error instanceof ConfigFaults || error instanceof SetupFaults) throw error;
    throw new ConfigFaults([`SETUP_FILE: ${path} is not JSON: ${(error as Error).message}`]);
  }
}

function wellSaid(file: unknown): unknown {
  const faults = checkSetup(withoutOrderNulls(file));
  if (faults.length > 0) throw new SetupFaults(faults);
  return file;
}

/**
 * Secrets that it generates are shown by `showUnshown`.
 * @returns how many entities were written; 0 when the file changes nothing
 * @throws {SetupFaults}
 */
export async function applySetupFile(runtime: Runtime, file: unknown): Promise<number> {
  const { config, redis, secrets, live, log } = runtime;
  const { written, passedOver, unresolvedHosts } = await applySetup(
    redis,
    secrets.vault,
    file,
    live.now(),
    {
      isLabelCarrier: labelCarriers(config.nationalCarrier),
      webhookAllowedCidrs: config.webhookAllowedCidrs,
      keep: (generated) => keepUnshown(config.dataDir, generated),
    },
  );
  await live.refresh();
  log.info({ written }, "setup applied");
  if (passedOver.length > 0) {
    const closed = passedOver.slice(0, HOSTS_NAMED);
    log.warn({ closed, total: passedOver.length }, "the setup file names what has been closed");
  }
  if (unresolvedHosts.length > 0) {
    const hosts = unresolvedHosts.slice(0, HOSTS_NAMED);
    const total = unresolvedHosts.length;
    log.warn({ hosts, total }, "hosts of webhooks could not be resolved; every send resolves them");
  }
  const ignored = settingsWithoutEffect(file as SetupFile);
  if (ignored.length > 0) log.warn({ settings: ignored }, "these settings are not in effect yet");
  return written;
}

/** Runs roles until SIGTERM or SIGINT, then drains and stops them and ends the process with status 0. */
export async function runRoles(
  env: Readonly<Record<string, string | undefined>>,
  roles: readonly Role[],
): Promise<void> {
  await guarded(async () => {
    const config = readConfig(env);
    const log = createLog(config.logLevel);
    await serve(config, log, roles);
  });
}

/** Labels of `waybill_build_info`. */
const BUILD = { version: VERSION, commit: COMMIT ?? "", bun: Bun.version };

type Open = (config: Config, options: OpenOptions) => Promise<Runtime>;

/**
 * Binds all ports, opens the stores, and starts roles one after the other. A signal, also one that comes while they start, ends
 * the readiness of all ports, and then stops the roles in the opposite order: what takes work in is started last and stopped first.
 * @throws what a start throws, after stopping what had started; nothing has been written when it is a port or a variable
 */
export async function serve(
  config: Config,
  log: Log,
  known: readonly Role[],
  open: Open = (given, options) => openRuntime(given, log, options),
): Promise<void> {
  const roles = known.filter(({ isWanted }) => isWanted?.(config) ?? true);
  const all = [...metricsPort(config), ...roles];
  const listeners = await bindListeners(config, log, all);
  const checks = [...new Set(all.flatMap(({ check }) => check ?? []))];
  const opening = open(atBoundPorts(config, listeners), { listeners, checks });
  const running: Running[] = [];
  let stopping = false;
  const starting = opening.then(async (runtime) => {
    for (const { start } of all) if (!stopping) running.push(await start(runtime, running));
  });
  const drain = () => {
    stopping = true;
    for (const listener of listeners.values()) listener.drain();
    // No request has been answered yet where no port serves.
    return running.some(({ url }) => url !== null) ? config.drainSeconds * 1_000 : 0;
  };
  const stop = async () => {
    stopping = true;
    // The role that is starting may have taken in work: it is stopped like the others once it has started.
    const stopped = starting.catch(() => {}).then(() => stopRoles(log, running.toReversed()));
    await Promise.race([stopped, Bun.sleep(ROLES_STOP_LIMIT_MS)]);
    closeUnopened(listeners, running);
    await opening.then(
      (runtime) => runtime.close(),
      () => {},
    );
  };
  endOnSignal(log, { drain, stop });
  try {
    await starting;
    for (const { name } of roles) buildInfo.set({ ...BUILD, role: name }, 1);
    // Not before: a start that fails shows no secret.
    if (!stopping) await showUnshown(config.dataDir);
    for (const { onceUp } of running) if (!stopping) await onceUp?.();
  } catch (error) {
    // What was stopped in the middle of its start may well fail; the signal ends the process.
    if (stopping) return;
    await stop();
    throw error;
  }
  const urls = Object.fromEntries(running.flatMap(({ name, url }) => (url ? [[name, url]] : [])));
  if (!stopping) log.info(urls, "ready");
}

/** @throws {ConfigFaults} with every port and every file of a port that is unavailable */
async function bindListeners(config: Config, log: Log, roles: readonly Role[]) {
  const listeners = new Map<string, Listener>();
  const faults: string[] = [];
  for (const { name, bind } of roles) {
    try {
      const listener = await bind?.(config, log);
      if (listener) listeners.set(name, listener);
    } catch (error) {
      if (error instanceof ConfigFaults) faults.push(...error.faults);
      else if (error instanceof PortRefused) faults.push(await explainPort(error));
      else throw error;
    }
  }
  if (faults.length === 0) return listeners;
  closeUnopened(listeners, []);
  throw new ConfigFaults([...new Set(faults)]);
}

function closeUnopened(listeners: Runtime["listeners"], running: readonly Running[]): void {
  for (const [name, listener] of listeners) {
    if (running.every((one) => one.name !== name)) listener.close();
  }
}

/** A port 0 in the address of the panel would lead nowhere: where the panel is served here, its port is known by now. */
function atBoundPorts(config: Config, listeners: Runtime["listeners"]): Config {
  const panel = listeners.get("panel");
  if (panel === undefined || config.publicUrl !== urlOf(config.host, 0)) return config;
  return { ...config, publicUrl: panel.url };
}

/** A separate port for the `/metrics` of the process, if one is configured. */
function metricsPort({ ports: { metrics } }: Config): Role[] {
  if (metrics === null) return [];
  const bind = (config: Config) => bindOpsListener(config, METRICS_VARIABLE, metrics);
  return [
    {
      name: "metrics",
      bind,
      start: async (runtime) => {
        const listener = runtime.listeners.get("metrics") ?? bind(runtime.config);
        return openOpsPort(runtime, "metrics", listener, { isMetricsPort: true });
      },
    },
  ];
}

async function stopRoles(log: Log, roles: readonly Running[]): Promise<void> {
  const stopOne = ({ name, stop }: Running) =>
    stop().catch((error: Error) => log.error({ role: name, reason: error.message }, "stop"));
  const serving = roles.filter(({ isServing }) => isServing);
  for (const role of roles) {
    if (!role.isServing) await stopOne(role);
    else if (role === serving[0]) await Promise.all(serving.map(stopOne));
  }
}

/** A start refused for a reason that its message tells whole, such as a wrong argument. */
export class Refused extends Error {}

/** Errors whose message explains them are printed without a stack: faults of configuration and setup. */
function explainsItself(error: unknown): boolean {
  const kinds = [
    ConfigFaults,
    SetupFaults,
    StoreUnreachable,
    SecretRefused,
    LayoutRefused,
    WrongStore,
    RestoreUnfinished,
    Refused,
  ];
  if (kinds.some((kind) => error instanceof kind)) return true;
  return (error as NodeJS.ErrnoException).code === "ENOTFOUND";
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

/** Runs a command with the arguments of its process, whose exit status it sets. */
export async function runProgram(
  program: Program,
  { argv, env }: Pick<NodeJS.Process, "argv" | "env">,
): Promise<void> {
  await guarded(async () => {
    process.exitCode = await program(argv.slice(2), env);
  });
}
