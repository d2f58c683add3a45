/** A Redis Cluster of its own: three masters, three replicas, from the same `redis-server` binary. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient } from "redis";
import { eventually, within } from "#test/support/eventually.ts";
import { freePort } from "./free-port.ts";
import { DURABLE, hasLoaded, redisCommand } from "./redis-server.ts";

const MASTERS = 3;
const SLOTS = 16_384;
const STATE_LIMIT_MS = 2_000;
const LOG_SHOWN = 2_000;

/** How long a node may be silent before its replica takes over. */
const NODE_TIMEOUT_MS = {
  /** On a busy machine a node stalls for seconds, and must not lose its slots by that. */
  steady: 15_000,
  /** While a test waits for a replica to take over. */
  quick: 1_500,
} as const;

export interface TestCluster {
  /** What REDIS_CLUSTER_URLS takes. */
  readonly urls: string;
  /** SIGKILL to the node of a shard that is master; its replica takes over and the killed one comes back as replica. */
  readonly killMaster: (shard: number) => Promise<void>;
  /** The same; its replica has taken over. @returns brings the killed one back, as replica */
  readonly loseMaster: (shard: number) => Promise<() => Promise<void>>;
  /**
   * SIGSTOP to the node that is master of a hash tag: its connections stay, and nothing is answered. Returns when its replica
   * has taken over. @returns wakes it up
   */
  readonly freezeMaster: (tag: string) => Promise<() => void>;
  /** SIGSTOP to the master of a hash tag and to its replica, so that nobody takes over. @returns wakes them up */
  readonly freezeShard: (tag: string) => Promise<() => Promise<void>>;
  /**
   * SIGKILL to the master of a hash tag, and to its replica as soon as that has taken over. Ends when all others know it.
   * @returns brings them back, with everything that they had acknowledged; or only the first, which takes over by an operator's command
   */
  readonly loseShard: (tag: string) => Promise<(which?: "both" | "first") => Promise<void>>;
  /** Which shard has the slot of a hash tag, or of a key without one, while no slots have been moved. */
  readonly shardOf: (tag: string) => Promise<number>;
  /** How often the master of a shard was asked to wait for its replicas. */
  readonly waitsOf: (shard: number) => Promise<number>;
  /** SIGKILL to a node, which stays away. */
  readonly loseNode: (port: number) => Promise<void>;
  /** A master becomes the replica of its replica, as before maintenance. */
  readonly demote: (port: number) => Promise<unknown>;
  /** Demotes a master and makes it forget the cluster; it goes on answering. */
  readonly dismiss: (port: number) => Promise<void>;
  /** A command to every node. */
  readonly everywhere: (...command: string[]) => Promise<void>;
  /**
   * Moves every slot that holds a key to another master, or back where it came from, in steps that leave it between two
   * masters for a while. Takes it that no master has been killed.
   * @returns how many slots were moved
   */
  readonly moveSlots: (way: "away" | "back") => Promise<number>;
  /** A master without slots joins, and a replica of it. @returns `host:port` of the master */
  readonly addShard: () => Promise<string>;
  /** The keys of a hash tag. */
  readonly keysOf: (tag: string) => Promise<string[]>;
  /** Moves the slot of a hash tag to another master, and does some work when these keys have gone and no others. */
  readonly whileMoving: (tag: string, gone: string[], work: () => Promise<void>) => Promise<void>;
  /** What each node says of the cluster and of its replication, and the end of its log; for the message of a failure. */
  readonly state: () => Promise<string>;
  readonly stop: () => Promise<void>;
}

interface Node {
  readonly port: number;
  readonly bus: number;
  readonly send: (...command: string[]) => Promise<unknown>;
  readonly start: () => Promise<void>;
  readonly kill: () => Promise<void>;
  readonly signal: (name: "SIGSTOP" | "SIGCONT") => void;
  /** Neither killed nor stopped. */
  readonly isAnswering: () => boolean;
  readonly state: () => Promise<string>;
  readonly close: () => void;
}

export async function startTestCluster(): Promise<TestCluster> {
  const folder = await mkdtemp(join(tmpdir(), "waybill-cluster-"));
  const nodes = await Promise.all(Array.from({ length: 2 * MASTERS }, () => startNode(folder)));
  const masters = nodes.slice(0, MASTERS);
  const replicas = nodes.slice(MASTERS);
  await form(nodes, masters, replicas);
  // Not before: a new cluster waits for about as long until it serves.
  await takeOverAfter(nodes, NODE_TIMEOUT_MS.steady);

  async function everywhere(...command: string[]): Promise<void> {
    await Promise.all(nodes.map(({ send }) => send(...command)));
  }

  /** The master of a shard, then its replica. */
  async function pairOf(shard: number): Promise<readonly [Node, Node]> {
    const [one, other] = [masters[shard], replicas[shard]] as [Node, Node];
    return (await isMaster(one)) ? [one, other] : [other, one];
  }

  async function demote(port: number): Promise<Node> {
    const [master, replica] = await pairOf(nodes.findIndex((node) => node.port === port) % MASTERS);
    await eventually(async () => {
      await replica.send("CLUSTER", "FAILOVER").catch(() => {});
      return isReplica(master);
    }, "it follows its replica");
    return master;
  }

  async function shardOfTag(tag: string): Promise<number> {
    const [first] = masters as [Node];
    return shardOf(Number(await first.send("CLUSTER", "KEYSLOT", tag)));
  }

  return {
    urls: nodes.map(({ port }) => `redis://127.0.0.1:${port}`).join(","),
    async killMaster(shard) {
      const bringBack = await loseOne(nodes, ...(await pairOf(shard)));
      await bringBack();
    },
    loseMaster: async (shard) => loseOne(nodes, ...(await pairOf(shard))),
    freezeMaster: async (tag) => freeze(nodes, ...(await pairOf(await shardOfTag(tag)))),
    freezeShard: async (tag) => freezeBoth(...(await pairOf(await shardOfTag(tag)))),
    loseShard: async (tag) => loseBoth(nodes, ...(await pairOf(await shardOfTag(tag)))),
    shardOf: shardOfTag,
    async waitsOf(shard) {
      const [master] = await pairOf(shard);
      const calls = String(await master.send("INFO", "commandstats"));
      return Number(/cmdstat_wait:calls=(\d+)/.exec(calls)?.[1] ?? 0);
    },
    async loseNode(port) {
      await nodes.find((node) => node.port === port)?.kill();
    },
    demote,
    async dismiss(port) {
      await (await demote(port)).send("CLUSTER", "RESET", "SOFT");
    },
    everywhere,
    moveSlots: (way) => moveSlots(nodes, way),
    addShard: () => addShard(nodes, folder),
    async keysOf(tag) {
      const { owner, slot } = await placeOf(masters, tag);
      return keysIn(owner, slot, ALL_KEYS);
    },
    async whileMoving(tag, gone, work) {
      const { owner, slot } = await placeOf(masters, tag);
      const at = masters.indexOf(owner);
      const move = await beginMove(masters, slot, at, (at + 1) % MASTERS);
      await move.migrate(gone);
      await work();
      await move.migrate(await keysIn(owner, slot, ALL_KEYS));
      await move.end();
      await agreeOnSlots(nodes);
    },
    state: async () => (await Promise.all(nodes.map((node) => node.state()))).join("\n"),
    async stop() {
      for (const node of nodes) {
        node.close();
        await node.kill();
      }
      await rm(folder, { recursive: true, force: true });
    },
  };
}

async function addShard(nodes: Node[], folder: string): Promise<string> {
  const [master, replica] = [await startNode(folder), await startNode(folder)];
  nodes.push(master, replica);
  for (const [at, { send }] of [master, replica].entries()) {
    await send("CONFIG", "SET", "cluster-node-timeout", String(NODE_TIMEOUT_MS.steady));
    await send("CONFIG", "SET", "cluster-require-full-coverage", "no");
    await send("CLUSTER", "SET-CONFIG-EPOCH", String(NEW_EPOCH + nodes.length + at));
  }
  await joinTogether(nodes);
  await follow(replica, master);
  await Promise.all(nodes.map(isServing));
  return `127.0.0.1:${master.port}`;
}

/** Makes a cluster of nodes that do not know each other. */
async function form(
  nodes: readonly Node[],
  masters: readonly Node[],
  replicas: readonly Node[],
): Promise<void> {
  // Each its own, as redis-cli does it: masters with the same epoch would settle it whenever they hear of each other.
  for (const [at, { send }] of nodes.entries()) {
    await send("CLUSTER", "SET-CONFIG-EPOCH", String(at + 1));
  }
  await joinTogether(nodes);
  await Promise.all(
    masters.map((master, at) => {
      const from = Math.round((at * SLOTS) / MASTERS);
      const to = Math.round(((at + 1) * SLOTS) / MASTERS) - 1;
      return master.send("CLUSTER", "ADDSLOTSRANGE", String(from), String(to));
    }),
  );
  await Promise.all(replicas.map((replica, at) => follow(replica, masters[at] as Node)));
  await Promise.all(nodes.map(isServing));
  await agreeOnSlots(nodes);
}

/** @param nodes those that answer are told */
async function takeOverAfter(nodes: readonly Node[], ms: number): Promise<void> {
  const answering = nodes.filter((node) => node.isAnswering());
  await Promise.all(
    answering.map(({ send }) => send("CONFIG", "SET", "cluster-node-timeout", String(ms))),
  );
}

/** @param fault ends when every node knows what has become of the one that it concerns */
async function failOver(nodes: readonly Node[], fault: () => Promise<void>): Promise<void> {
  await takeOverAfter(nodes, NODE_TIMEOUT_MS.quick);
  await fault().finally(() => takeOverAfter(nodes, NODE_TIMEOUT_MS.steady));
}

async function loseOne(nodes: readonly Node[], victim: Node, heir: Node) {
  await failOver(nodes, async () => {
    await victim.kill();
    await eventually(() => isMaster(heir), "the replica takes over");
  });
  return async () => {
    await victim.start();
    await eventually(() => isInStep(victim), "the killed node follows");
    await isServing(heir);
    await takeOverAfter(nodes, NODE_TIMEOUT_MS.steady);
  };
}

async function freeze(nodes: readonly Node[], victim: Node, heir: Node) {
  await failOver(nodes, async () => {
    victim.signal("SIGSTOP");
    await eventually(() => isMaster(heir), "the replica takes over");
  });
  return () => victim.signal("SIGCONT");
}

function freezeBoth(master: Node, replica: Node): () => Promise<void> {
  for (const node of [replica, master]) node.signal("SIGSTOP");
  return async () => {
    for (const node of [master, replica]) node.signal("SIGCONT");
    await Promise.all([master, replica].map(isServing));
  };
}

async function loseBoth(nodes: readonly Node[], master: Node, replica: Node) {
  await failOver(nodes, async () => {
    await master.kill();
    await eventually(() => isMaster(replica), "the replica takes over");
    await replica.kill();
    await eventually(
      () => areMissed(nodes, [master, replica]),
      "all others know that both have gone",
    );
  });
  return async (which: "both" | "first" = "both") => {
    if (which === "first") {
      await master.start();
      await eventually(() => isReplica(master), "the killed one is a replica");
      await master.send("CLUSTER", "FAILOVER", "TAKEOVER");
      await isServing(master);
      return;
    }
    await failOver(nodes, async () => {
      await replica.start();
      await master.start();
      await eventually(() => isInStep(master), "the first follows the one that had taken over");
      await Promise.all(nodes.filter((node) => node.isAnswering()).map(isServing));
    });
  };
}

/** Whether all that answer have been told so by a majority of the masters. */
async function areMissed(nodes: readonly Node[], gone: readonly Node[]): Promise<boolean> {
  const answering = nodes.filter((node) => node.isAnswering());
  const views = await Promise.all(answering.map(({ send }) => send("CLUSTER", "NODES")));
  return views
    .map(linesOf)
    .every((lines) =>
      gone.every(({ port }) =>
        lines.some((line) => line.includes(`:${port}@`) && /[ ,]fail[ ,]/.test(line)),
      ),
    );
}

async function startNode(parent: string): Promise<Node> {
  const [port, bus] = [await freePort(), await freePort()];
  const folder = await mkdtemp(join(parent, "node-"));
  const logfile = join(folder, "redis.log");
  const options: Record<string, string> = {
    port: String(port),
    "cluster-enabled": "yes",
    "cluster-port": String(bus),
    "cluster-node-timeout": String(NODE_TIMEOUT_MS.quick),
    // As the operations guide asks for it: by default a lost shard takes all others with it, as soon as a node has noticed.
    "cluster-require-full-coverage": "no",
    "cluster-config-file": "nodes.conf",
    bind: "127.0.0.1",
    "repl-diskless-sync-delay": "0",
    logfile,
  };
  const own = Object.entries(options).flatMap(([name, value]) => [`--${name}`, value]);
  const [program, ...args] = redisCommand(folder, [...own, ...DURABLE]);
  let child: ChildProcess;
  let isStopped = false;
  const hasEnded = () => child.exitCode !== null || child.signalCode !== null;

  async function start(): Promise<void> {
    child = spawn(program, args, { stdio: "ignore" });
    await eventually(() => {
      if (hasEnded()) throw new Error(`node ${port} ended with status ${child.exitCode}`);
      return hasLoaded({ port, host: "127.0.0.1" });
    }, "the node has loaded its data");
  }

  await start();
  const client = createClient({ url: `redis://127.0.0.1:${port}` });
  client.on("error", () => {});
  await client.connect();
  const send = (...command: string[]) => client.sendCommand(command);
  return {
    port,
    bus,
    send,
    start,
    async kill() {
      if (hasEnded()) return;
      const ended = new Promise((resolve) => child.once("exit", resolve));
      child.kill("SIGKILL");
      await ended;
    },
    signal(name) {
      isStopped = name === "SIGSTOP";
      child.kill(name);
    },
    isAnswering: () => !hasEnded() && !isStopped,
    async state() {
      const ask = (...command: string[]) =>
        within(send(...command), command.join(" "), STATE_LIMIT_MS).then(String, String);
      const said = [await ask("CLUSTER", "NODES"), await ask("INFO", "replication")];
      const written = await readFile(logfile, "utf8").catch(String);
      return [`node ${port}`, ...said, written.slice(-LOG_SHOWN)].join("\n");
    },
    close: () => client.destroy(),
  };
}

/** Above the epochs of the nodes that were there before. */
const NEW_EPOCH = 1_000;
/** A slot is moved in so many parts, so far apart: calls meet it half moved. */
const PARTS_OF_SLOT = 12;
const PART_GAP_MS = 25;
const MIGRATE_LIMIT_MS = 30_000;
const ALL_KEYS = 100_000;

/** Where a slot is at first. */
function shardOf(slot: number): number {
  return Math.floor((slot * MASTERS) / SLOTS);
}

async function moveSlots(nodes: readonly Node[], way: "away" | "back"): Promise<number> {
  const masters = nodes.slice(0, MASTERS);
  const beside = (slot: number) => (shardOf(slot) + 1) % MASTERS;
  const [from, to] = way === "away" ? [shardOf, beside] : [beside, shardOf];
  const slots = await Promise.all(masters.map(slotsOf));
  // One after the other, as redis-cli does it: two masters that move keys to each other would wait for each other.
  for (const [at, own] of slots.entries()) {
    for (const slot of own) {
      if (from(slot) === at) await moveSlot(masters, slot, at, to(slot));
    }
  }
  await agreeOnSlots(nodes);
  return slots.flat().length;
}

/**
 * Until then a client may learn the slots from a node that does not know, and be redirected again and again; and a master that
 * has not heard of the last move takes the same epoch for the next one, by which it may lose the slot and its keys again.
 */
async function agreeOnSlots(nodes: readonly Node[]): Promise<void> {
  await eventually(async () => {
    const views = await Promise.all(nodes.map(mastersSeenBy));
    const [first = []] = views;
    return first.length >= MASTERS && views.every((view) => Bun.deepEquals(view, first));
  }, "all nodes know the masters of all slots");
}

/** The masters as a node sees them: their ids, epochs and ranges of slots. */
async function mastersSeenBy({ send }: Node): Promise<string[]> {
  const lines = linesOf(await send("CLUSTER", "NODES")).map((line) => line.split(" "));
  const masters = lines.filter(([, , flags = ""]) => flags.split(",").includes("master"));
  return masters
    .map(([id, , , , , , epoch, , ...slots]) => [id, epoch, ...slots].join(" "))
    .toSorted();
}

/** Slots of a master that hold a key. */
async function slotsOf({ send }: Node): Promise<number[]> {
  const keys = (await send("KEYS", "*")) as string[];
  const tags = new Set(keys.map((key) => /^\{[^}]+\}/.exec(key)?.[0] ?? key));
  const slots = await Promise.all([...tags].map((tag) => send("CLUSTER", "KEYSLOT", tag)));
  return [...new Set(slots.map(Number))];
}

async function moveSlot(
  masters: readonly Node[],
  slot: number,
  fromAt: number,
  toAt: number,
): Promise<void> {
  const from = masters[fromAt] as Node;
  const move = await beginMove(masters, slot, fromAt, toAt);
  const count = Number(await from.send("CLUSTER", "COUNTKEYSINSLOT", String(slot)));
  for (;;) {
    const keys = await keysIn(from, slot, Math.ceil(count / PARTS_OF_SLOT) || 1);
    if (keys.length === 0) break;
    await move.migrate(keys);
    await Bun.sleep(PART_GAP_MS);
  }
  await move.end();
}

async function beginMove(masters: readonly Node[], slot: number, fromAt: number, toAt: number) {
  const [from, to] = [masters[fromAt], masters[toAt]] as [Node, Node];
  const others = masters.filter((node) => node !== from && node !== to);
  const [fromId, toId] = [await from.send("CLUSTER", "MYID"), await to.send("CLUSTER", "MYID")];
  const set = (node: Node, ...what: unknown[]) =>
    node.send("CLUSTER", "SETSLOT", String(slot), ...what.map(String));
  await set(to, "IMPORTING", fromId);
  await set(from, "MIGRATING", toId);
  const target = ["127.0.0.1", String(to.port), "", "0", String(MIGRATE_LIMIT_MS), "KEYS"];
  return {
    async migrate(keys: readonly string[]) {
      if (keys.length > 0) await from.send("MIGRATE", ...target, ...keys);
    },
    async end() {
      for (const node of [to, from, ...others]) await set(node, "NODE", toId);
    },
  };
}

async function keysIn({ send }: Node, slot: number, most: number): Promise<string[]> {
  return (await send("CLUSTER", "GETKEYSINSLOT", String(slot), String(most))) as string[];
}

/** Which master has the slot of a hash tag now. */
async function placeOf(masters: readonly Node[], tag: string) {
  const [first] = masters as [Node];
  const slot = Number(await first.send("CLUSTER", "KEYSLOT", tag));
  const ranges = (await first.send("CLUSTER", "SLOTS")) as [number, number, [string, number]][];
  const range = ranges.find(([from, to]) => from <= slot && slot <= to);
  const owner = masters.find(({ port }) => port === range?.[2][1]);
  if (!owner) throw new Error(`no master has slot ${slot}`);
  return { slot, owner };
}

const isMaster = (node: Node) => hasRole(node, "master");
const isReplica = (node: Node) => hasRole(node, "slave");

/** False also while the node cannot be asked. */
async function hasRole({ send }: Node, role: "master" | "slave"): Promise<boolean> {
  return String(await send("ROLE").catch(() => "")).startsWith(role);
}

async function isInStep({ send }: Node): Promise<boolean> {
  const reported = await send("INFO", "replication").catch(() => "");
  return String(reported).includes("master_link_status:up");
}

async function joinTogether(nodes: readonly Node[]): Promise<void> {
  const [first, ...others] = nodes as [Node, ...Node[]];
  await eventually(async () => {
    const texts = await Promise.all(nodes.map(({ send }) => send("CLUSTER", "NODES")));
    const views = texts.map(linesOf);
    const [known = []] = views;
    // A node that does not answer within the node timeout is dropped again; on a busy machine it may take longer.
    for (const { port, bus } of others) {
      if (known.some((line) => line.includes(`:${port}@`))) continue;
      await first.send("CLUSTER", "MEET", "127.0.0.1", String(port), String(bus));
    }
    return views.every(
      (lines) => lines.length === nodes.length && !lines.some((line) => line.includes("handshake")),
    );
  }, "the nodes know each other");
}

async function follow(replica: Node, master: Node): Promise<void> {
  const id = String(await master.send("CLUSTER", "MYID"));
  await eventually(
    () =>
      replica.send("CLUSTER", "REPLICATE", id).then(
        () => true,
        () => false,
      ),
    "the replica follows its master",
  );
  await eventually(() => isInStep(replica), "the replica is in step");
  // A master counts it from the replica's first word on.
  await eventually(
    async () => /\bstate=online\b/.test(String(await master.send("INFO", "replication"))),
    "the master counts its replica",
  );
}

async function isServing({ send }: Node): Promise<void> {
  await eventually(async () => {
    const info = String(await send("CLUSTER", "INFO"));
    return info.includes("cluster_state:ok") && info.includes(`cluster_slots_ok:${SLOTS}\r`);
  }, "the cluster serves");
}

function linesOf(text: unknown): string[] {
  return String(text).trim().split("\n");
}
