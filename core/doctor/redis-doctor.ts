/** Examines every node of Redis: its settings, and on a cluster its slots, replicas and the placement of our partitions. */
import { loadsOf, UNEVEN, unevenness, weigh } from "#core/placement/rules/plan.ts";
import { readKnownLoads } from "#core/placement/store/partition-load.ts";
import { isCluster, type Redis, replicaTermsOf } from "#core/platform/redis/client.ts";
import { DURABLE_SETTINGS } from "#core/platform/redis/embedded/durable-settings.ts";
import { SLOTS } from "#core/platform/redis/nodes/cluster-nodes.ts";
import {
  type NodeFacts,
  type RedisFacts,
  readRedisFacts,
} from "#core/platform/redis/nodes/node-facts.ts";
import { CLOCK_LIMIT_MS, type Finding, finding } from "./finding.ts";

const LEAST_VERSION = 7;
const UNKNOWN = "not readable";
/** Nodes or slots named in one finding. */
const NAMED = 6;

interface Wanted {
  readonly check: string;
  readonly setting: string;
  readonly wanted: string;
  readonly isOk: (value: string) => boolean;
  readonly advice: string;
}

function durable(setting: keyof typeof DURABLE_SETTINGS) {
  const wanted = DURABLE_SETTINGS[setting];
  return { setting, wanted, isOk: (value: string) => value === wanted };
}

const SETTINGS: readonly Wanted[] = [
  {
    check: "Redis keeps what memory has no room for",
    ...durable("maxmemory-policy"),
    advice: "Set maxmemory-policy noeviction: any other policy deletes events that were accepted.",
  },
  {
    check: "Redis writes an append-only file",
    ...durable("appendonly"),
    advice: "Set appendonly yes: without it a crash loses everything since the last snapshot.",
  },
  {
    check: "Redis syncs each write to the disk",
    ...durable("appendfsync"),
    advice: "Set appendfsync always: everysec may lose two seconds of what was accepted.",
  },
  {
    check: "Redis never keeps half a write",
    ...durable("aof-load-truncated"),
    advice:
      "Set aof-load-truncated no, and remove what a crash left unfinished before each start (docs/operations/redis.md): otherwise half a write may come back later.",
  },
  {
    check: "Redis keeps small sets of numbers packed",
    setting: "set-max-intset-entries",
    wanted: "512 or more",
    isOk: (value) => Number(value) >= 512,
    advice:
      "Set set-max-intset-entries 512: below it the memory of event ids takes eight times more.",
  },
];

/** Where fewer replicas than that refuse writes, so does a replica that has just taken over, unless writes are meant to be refused then. */
const leastReplicas = (isStrict: boolean): Wanted => ({
  check: "A master that has just taken over accepts writes",
  setting: "min-replicas-to-write",
  wanted: isStrict ? "0, or as REDIS_WAIT_REPLICAS" : "0",
  isOk: (value) => value === "0" || isStrict,
  advice:
    "Set min-replicas-to-write 0: REDIS_WAIT_REPLICAS waits for replicas, and goes on without those that are missing (REDIS_WAIT_STRICT=1 refuses).",
});

const CLUSTER_SETTINGS: readonly Wanted[] = [
  {
    check: "A shard that is unavailable stops no other shard",
    setting: "cluster-require-full-coverage",
    wanted: "no",
    isOk: (value) => value === "no",
    advice:
      "Set cluster-require-full-coverage no: otherwise one slot without a master stops the whole service.",
  },
  {
    check: "Replicas take over from their masters",
    setting: "cluster-replica-no-failover",
    wanted: "no",
    isOk: (value) => value === "no",
    advice:
      "Finish the move of slots that has set it (npx waybill slots --apply), or set cluster-replica-no-failover no.",
  },
];

export const REDIS_CODES_OF_CLUSTERS = [
  "redis-nodes",
  "cluster-require-full-coverage",
  "cluster-replica-no-failover",
  "redis-slots",
  "redis-moves",
  "redis-replicas",
  "redis-placement",
] as const;

export async function examineRedis(redis: Redis): Promise<Finding[]> {
  const { isStrict } = replicaTermsOf(redis);
  const own = [...SETTINGS, leastReplicas(isStrict)];
  const settings = isCluster(redis) ? [...own, ...CLUSTER_SETTINGS] : own;
  const facts = await readRedisFacts(
    redis,
    settings.map(({ setting }) => setting),
  );
  const { nodes } = facts;
  return [
    ...(isCluster(redis) ? [examineReach(facts)] : []),
    examineVersion(nodes),
    ...settings.map((one) => examineSetting(nodes, one)),
    examineClocks(nodes),
    ...(isCluster(redis) ? examineCluster(facts) : []),
    examineWaits(redis, facts),
    ...(isCluster(redis) ? [await examinePlacement(redis, nodes)] : []),
  ];
}

/** What all nodes have, or what those have that are not as they should be. @param placeOf empty = the only server */
function shown(
  nodes: readonly NodeFacts[],
  tellOf: (node: NodeFacts) => string,
  isOk: (value: string) => boolean,
): string {
  const all = [...new Set(nodes.map(tellOf))];
  const [only = UNKNOWN] = all;
  if (all.length <= 1) return only;
  const bad = nodes.filter((node) => !isOk(tellOf(node)));
  if (bad.length === 0) return all.join(", ");
  return listed(bad.map((node) => `${tellOf(node)} (${node.place})`));
}

function listed(texts: readonly string[]): string {
  const more = texts.length - NAMED;
  return [...texts.slice(0, NAMED), ...(more > 0 ? [`and ${more} more`] : [])].join(", ");
}

/** @param slots ascending @returns such as `0-5460` */
function rangesOf(slots: readonly number[]): string[] {
  const starts = slots.filter((slot, at) => slots[at - 1] !== slot - 1);
  const ends = slots.filter((slot, at) => slots[at + 1] !== slot + 1);
  return starts.map((start, at) => (start === ends[at] ? `${start}` : `${start}-${ends[at]}`));
}

function examineReach({ nodes, silent }: RedisFacts): Finding {
  const unreachable = [
    ...silent,
    ...nodes.filter(({ isFailing }) => isFailing).map(({ place }) => place),
  ];
  return finding("redis-nodes", {
    check: "Every node of the cluster answers",
    ok: unreachable.length === 0,
    found:
      unreachable.length === 0
        ? `${nodes.length} nodes`
        : `not ${listed([...new Set(unreachable)])}`,
    wanted: "all of them",
    advice:
      "Bring the node back, or remove it from the cluster (CLUSTER FORGET) if it will not return.",
  });
}

function examineSetting(
  nodes: readonly NodeFacts[],
  { check, setting, wanted, isOk, advice }: Wanted,
): Finding {
  const tellOf = ({ settings }: NodeFacts) => settings[setting] ?? UNKNOWN;
  const ok = nodes.every((node) => isOk(tellOf(node)));
  const isHidden = nodes.some((node) => tellOf(node) === UNKNOWN);
  const hidden = `The server does not show ${setting}: check it where the server is configured.`;
  const found = `${setting} ${shown(nodes, tellOf, isOk)}`;
  return finding(setting, { check, ok, found, wanted, advice: isHidden ? hidden : advice });
}

function examineVersion(nodes: readonly NodeFacts[]): Finding {
  // Valkey also reports the version of Redis that it is compatible with.
  const isOk = (version: string) =>
    version.startsWith("Valkey ") || Number.parseInt(version, 10) >= LEAST_VERSION;
  const tellOf = ({ version }: NodeFacts) => version ?? UNKNOWN;
  return finding("redis-version", {
    check: "Redis is recent enough",
    ok: nodes.every((node) => isOk(tellOf(node))),
    found: shown(nodes, tellOf, isOk),
    wanted: `${LEAST_VERSION}.0 or later, or Valkey`,
    advice: "Upgrade Redis: scripts use what 7.0 has brought.",
  });
}

function examineClocks(nodes: readonly NodeFacts[]): Finding {
  const worst = nodes.toSorted((a, b) => Math.abs(b.aheadMs) - Math.abs(a.aheadMs))[0];
  const aheadMs = worst?.aheadMs ?? 0;
  const place = nodes.length > 1 ? ` (${worst?.place})` : "";
  return finding("redis-clock", {
    check: "The clocks agree",
    ok: Math.abs(aheadMs) <= CLOCK_LIMIT_MS,
    found: `${aheadMs} ms${place}`,
    wanted: `at most ${CLOCK_LIMIT_MS} ms`,
    advice: "Let NTP set the clocks of this machine and of Redis.",
  });
}

function examineCluster({ nodes, uncovered, open }: RedisFacts): Finding[] {
  const masters = nodes.filter(({ hasSlots }) => hasSlots);
  const bare = masters.filter(({ onlineReplicas }) => onlineReplicas === 0);
  const served = SLOTS - uncovered.length;
  const least = Math.min(...masters.map(({ onlineReplicas }) => onlineReplicas));
  return [
    finding("redis-slots", {
      check: "Every slot has a master",
      ok: uncovered.length === 0,
      found: `${served}${uncovered.length > 0 ? `, without ${listed(rangesOf(uncovered))}` : ""}`,
      wanted: `${SLOTS}`,
      advice:
        "Bring the masters of these slots back, or assign the slots (redis-cli --cluster fix): what they hold is answered 503.",
    }),
    finding("redis-moves", {
      check: "No slot is between two masters",
      ok: open.length === 0,
      found: open.length === 0 ? "none" : listed(open.map(String)),
      wanted: "none",
      advice:
        "Wait for the move of slots that is going on, or finish it: npx waybill slots --apply.",
    }),
    finding("redis-replicas", {
      check: "Every master has a replica",
      ok: masters.length > 0 && bare.length === 0,
      found:
        bare.length === 0
          ? `${masters.length > 0 ? `${least} or more` : UNKNOWN}${ofThoseThatAnswer(uncovered)}`
          : `none: ${listed(bare.map(({ place }) => place))}`,
      wanted: "1 or more each",
      advice:
        "Give each of these masters a replica that is connected: nothing takes over from them.",
    }),
  ];
}

/** What is said of masters holds for those that answer. */
function ofThoseThatAnswer(uncovered: readonly number[]): string {
  return uncovered.length > 0 ? " (of the masters that answer)" : "";
}

/** `REDIS_WAIT_REPLICAS` against the replicas that there are. */
function examineWaits(redis: Redis, { nodes, uncovered }: RedisFacts): Finding {
  const { wanted } = replicaTermsOf(redis);
  const masters = nodes.filter(({ hasSlots }) => hasSlots);
  const least = Math.min(...masters.map(({ onlineReplicas }) => onlineReplicas));
  const short = masters.filter(({ onlineReplicas }) => onlineReplicas < wanted);
  const many = Number.isFinite(least) ? least : 0;
  const places =
    isCluster(redis) && short.length > 0 ? `: ${listed(short.map(({ place }) => place))}` : "";
  return finding("redis-wait-replicas", {
    check: "Writes wait for the replicas that there are",
    ok: short.length === 0 && (wanted > 0 || many === 0),
    found: `REDIS_WAIT_REPLICAS ${wanted}, replicas of each master ${many}${many < wanted ? places : " or more"}${ofThoseThatAnswer(uncovered)}`,
    wanted: "at least 1 where there are replicas, and no more than each master has",
    advice:
      "Set REDIS_WAIT_REPLICAS to 1 where there are replicas: without it a failover loses what was acknowledged last. Where it is more than there are, bring the replicas back.",
  });
}

/** By what they take (`npx waybill slots`), which is not known of a master that does not answer: the others are compared without it. */
async function examinePlacement(redis: Redis, nodes: readonly NodeFacts[]): Promise<Finding> {
  const masters = nodes.filter(({ hasSlots }) => hasSlots).map(({ place }) => place);
  const loads = await readKnownLoads(redis).catch(() => []);
  const known = loads.flatMap(({ tag, bytes, calls }) =>
    bytes === null ? [] : [{ tag, bytes, calls: calls ?? 0 }],
  );
  const weights = weigh(known);
  const placed = loads.flatMap(({ tag, master }) => {
    const weight = weights.get(tag);
    return master === null || weight === undefined ? [] : [{ tag, master, weight }];
  });
  const shares = loadsOf(placed, masters);
  const counts = masters.map((place) => {
    const tags = placed.filter(({ master }) => master === place).length;
    return `${place} ${tags} (${Math.round(100 * (shares.get(place) ?? 0))} %)`;
  });
  const unknown = Map.groupBy(
    loads.filter(({ tag }) => !weights.has(tag)),
    ({ master }) => master ?? "no master",
  );
  const silent = [...unknown].map(([place, own]) => `${place} ${own.length} (${UNKNOWN})`);
  return finding("redis-placement", {
    check: "The masters share the partitions evenly",
    ok: placed.length > 0 && unevenness(placed, masters) <= UNEVEN,
    found: loads.length > 0 ? [...counts, ...silent].join(", ") : UNKNOWN,
    wanted: `at most ${UNEVEN} times as much as in the best placement`,
    advice: "See `npx waybill slots --masters N`, which plans a placement and applies it.",
  });
}
