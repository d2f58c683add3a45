/**
 * `GET /healthz`, `/readyz` and `/metrics`, the same on every port. None of them can be used to overload Redis: their
 * answers are cached briefly and shared by all callers of this process.
 */
import type { Config } from "#core/platform/environment/config.ts";
import { Problem } from "#core/platform/errors/problem.ts";
import { publicRoutes } from "#core/platform/http/access.ts";
import { ALIVE } from "#core/platform/http/listener.ts";
import { type PeerConfig, peerOfConnection, subscriberOf } from "#core/platform/http/peer.ts";
import { refuseGuesses } from "#core/platform/http/refuse-guesses.ts";
import { readLags } from "#core/platform/log/streams.ts";
import { keepFor } from "#core/platform/process/keep-for.ts";
import {
  attemptLog,
  groupLag,
  groupLagSeconds,
  ledgerEntries,
  registry,
  replicasMissing,
  withPlainNames,
} from "#core/platform/process/metrics.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import { missingReplicas } from "#core/platform/redis/replicas.ts";
import { isOutOfReach, type StoreNeeds, watchNeeds } from "#core/platform/redis/store-needs.ts";
import { describeFailure, reasonOf } from "#core/platform/redis/store-unavailable.ts";
import { limit } from "#core/platform/schema/limit.ts";
import { hashToken } from "#core/platform/secrets/secrets.ts";
import { readAttemptCounts } from "#core/webhooks/store/attempt-log.ts";
import { readLedger } from "#core/webhooks/store/deliveries/ledger.ts";

/** Computing the metrics takes about 100 Redis commands. */
const METRICS_KEPT_MS = limit(
  1_000,
  "age of a cached answer of `/metrics`",
  "callers share one computation",
);
const READY_KEPT_MS = limit(
  250,
  "age of a cached answer of `/readyz`",
  "callers share one computation",
);
export const READY_LIMIT_MS = limit(2_000, "wait in `/readyz` for Redis, and for the role", "503");
/** Whose token `METRICS_TOKEN` is. */
const SCRAPER = "scraper";
const NO_REDIS = "Redis does not answer";

export interface OpsOptions {
  readonly config: Pick<Config, "ports" | "metricsToken"> & PeerConfig;
  /** What its requests need of the store. */
  readonly needs: StoreNeeds;
  /** Brings up to date what each of them needs besides, the configuration; absent = nothing. It is not waited for. */
  readonly refresh?: () => Promise<unknown>;
  /** What the role needs besides Redis; null = it can serve. */
  readonly reasonNotReady?: () => Promise<string | null>;
  /** Whether this is the port named by METRICS_PORT. */
  readonly isMetricsPort?: boolean;
}

export function ops(redis: Redis, options: OpsOptions) {
  const { config, needs, refresh = async () => {}, isMetricsPort = false } = options;
  const { reasonNotReady = async () => null } = options;
  const servesMetrics = isMetricsPort || config.ports.metrics === null;
  const metrics = metricsOf(redis);
  const look = watchNeeds(redis, needs);
  let refreshFailure: Error | null = null;
  const refreshed = keepFor(0, async () => {
    refreshFailure = await refresh().then(
      () => null,
      (error: Error) => error,
    );
  });
  // Of a cluster that does not know a slot's master the client tells nothing that would explain it.
  const explain = (error: unknown) =>
    reasonOf(error) === null && !redis.isReady ? NO_REDIS : describeFailure(error);
  const asked = keepFor(READY_KEPT_MS, async () => {
    // The shard of the configuration may be the one that does not answer: until it does, the outcome before counts.
    void refreshed();
    const reason = await answerWithin(
      look().then(() => refreshFailure && explain(refreshFailure), explain),
      NO_REDIS,
    );
    return reason ?? answerWithin(reasonNotReady(), "the role does not answer");
  });
  // A lost connection is detected without a command.
  const readiness = async () => (isOutOfReach(redis) ? NO_REDIS : asked());
  return publicRoutes("ops")
    .get("/healthz", () => ALIVE)
    .get("/readyz", async ({ set }) => {
      const reason = await readiness();
      if (reason === null) return { status: "ready" };
      set.status = 503;
      return { status: "not ready", reason };
    })
    .get("/metrics", async ({ request, server }) => {
      if (!servesMetrics) throw new Problem(404, "METRICS_ELSEWHERE", "METRICS_PORT serves them.");
      await authorizeScrape(redis, config, request, server);
      const headers = { "content-type": registry.contentType };
      return new Response(await metrics(), { headers });
    });
}

/** @returns the given reason, or `otherwise` if it does not arrive in time; null = none */
async function answerWithin(
  asked: Promise<string | null>,
  otherwise: string,
): Promise<string | null> {
  const late = Promise.withResolvers<string>();
  const timer = setTimeout(() => late.resolve(otherwise), READY_LIMIT_MS);
  try {
    return await Promise.race([asked, late.promise]);
  } catch {
    return otherwise;
  } finally {
    clearTimeout(timer);
  }
}

/** @throws {Problem} 401, 429 */
async function authorizeScrape(
  redis: Redis,
  config: OpsOptions["config"],
  request: Request,
  server: Bun.Server<unknown> | null,
): Promise<void> {
  const { metricsToken: token } = config;
  if (token === null) return;
  const given = /^Bearer (.+)$/i.exec(request.headers.get("authorization") ?? "")?.[1] ?? "";
  const isRight = hashToken(given) === hashToken(token);
  const network = subscriberOf(peerOfConnection(request, server, config).address);
  const shown = { kind: "metrics", network, holder: isRight ? SCRAPER : null, isRight } as const;
  await refuseGuesses(redis, shown, async () => Date.now());
  if (isRight) return;
  throw new Problem(401, "UNAUTHORIZED", "The metrics need the bearer token METRICS_TOKEN.", {
    headers: { "www-authenticate": "Bearer" },
  });
}

/** Keyed by client: the roles of a process share their Redis connection and the metrics registry. */
const shared = new WeakMap<Redis, () => Promise<string>>();

function metricsOf(redis: Redis): () => Promise<string> {
  const known = shared.get(redis);
  if (known) return known;
  const metrics = keepFor(METRICS_KEPT_MS, async () => {
    await Promise.all([
      measureLags(redis),
      measureLedger(redis),
      measureAttemptLog(redis),
      missingReplicas(redis).then((missing) => replicasMissing.set(missing)),
    ]);
    return withPlainNames(await registry.metrics());
  });
  shared.set(redis, metrics);
  return metrics;
}

/** While Redis is unavailable its last known metrics are repeated, with current ones of the process itself. */
async function measureLags(redis: Redis): Promise<void> {
  // On a cluster, of the partitions in reach.
  const lags = await readLags(redis, new Set()).catch(() => []);
  for (const { log, group, entries, seconds } of lags) {
    groupLag.set({ log, group }, entries);
    groupLagSeconds.set({ log, group }, seconds);
  }
}

async function measureAttemptLog(redis: Redis): Promise<void> {
  const counts = await readAttemptCounts(redis).catch(() => ({}));
  for (const [entry, count] of Object.entries(counts)) attemptLog.set({ entry }, count);
}

async function measureLedger(redis: Redis): Promise<void> {
  const ledger = await readLedger(redis).catch(() => null);
  if (!ledger) return;
  const { couriers: _, notSent, ...entries } = ledger;
  for (const [entry, count] of Object.entries(entries)) ledgerEntries.set({ entry }, count);
  for (const [reason, count] of Object.entries(notSent)) {
    ledgerEntries.set({ entry: `not_sent_${reason}` }, count);
  }
}
