/** A Redis Cluster of its own: three masters, three replicas, from the same `redis-server` binary. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient } from "redis";
import { eventually } from "./eventually.ts";
import { freePort } from "./free-port.ts";

const MASTERS = 3;
const SLOTS = 16_384;
const NODE_TIMEOUT_MS = 1_500;

export interface TestCluster {
  /** What REDIS_CLUSTER_URLS takes. */
  readonly urls: string;
  /** SIGKILL to the node of a shard that is master; its replica takes over and the killed one comes back as replica. */
  readonly killMaster: (shard: number) => Promise<void>;
  /** A command to every node. */
  readonly everywhere: (...command: string[]) => Promise<void>;
  readonly stop: () => Promise<void>;
}

interface Node {
  readonly port: number;
  readonly bus: number;
  readonly send: (...command: string[]) => Promise<unknown>;
  readonly start: () => void;
  readonly kill: () => Promise<void>;
  readonly close: () => void;
}

export async function startTestCluster(): Promise<TestCluster> {
  const folder = await mkdtemp(join(tmpdir(), "waybill-cluster-"));
  const nodes = await Promise.all(Array.from({ length: 2 * MASTERS }, () => startNode(folder)));
  const masters = nodes.slice(0, MASTERS);
  const replicas = nodes.slice(MASTERS);
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

  return {
    urls: nodes.map(({ port }) => `redis://127.0.0.1:${port}`).join(","),
    async killMaster(shard) {
      const pair = [masters[shard], replicas[shard]] as [Node, Node];
      const [victim, heir] = (await isMaster(pair[0])) ? pair : ([pair[1], pair[0]] as const);
      await victim.kill();
      await eventually(() => isMaster(heir), "the replica takes over", 30_000);
      victim.start();
      await eventually(() => isInStep(victim), "the killed node follows", 30_000);
      await isServing(heir);
    },
    async everywhere(...command) {
      await Promise.all(nodes.map(({ send }) => send(...command)));
    },
    async stop() {
      for (const node of nodes) {
        node.close();
        await node.kill();
      }
      await rm(folder, { recursive: true, force: true });
    },
  };
}

async function startNode(parent: string): Promise<Node> {
  const [port, bus] = [await freePort(), await freePort()];
  const folder = await mkdtemp(join(parent, "node-"));
  const options: Record<string, string> = {
    port: String(port),
    "cluster-enabled": "yes",
    "cluster-port": String(bus),
    "cluster-node-timeout": String(NODE_TIMEOUT_MS),
    "cluster-config-file": "nodes.conf",
    bind: "127.0.0.1",
    dir: folder,
    save: "",
    appendonly: "yes",
    appendfsync: "always",
    "repl-diskless-sync-delay": "0",
    logfile: join(folder, "redis.log"),
  };
  const args = Object.entries(options).flatMap(([name, value]) => [`--${name}`, value]);
  const launch = () => spawn("redis-server", args, { stdio: "ignore" });
  let child: ChildProcess = launch();
  const client = createClient({ url: `redis://127.0.0.1:${port}` });
  client.on("error", () => {});
  await client.connect();
  return {
    port,
    bus,
    send: (...command) => client.sendCommand(command),
    start() {
      child = launch();
    },
    async kill() {
      const ended = new Promise((resolve) => child.once("exit", resolve));
      child.kill("SIGKILL");
      await ended;
    },
    close: () => client.destroy(),
  };
}

/** False also while the node cannot be asked. */
async function isMaster({ send }: Node): Promise<boolean> {
  return String(await send("ROLE").catch(() => "")).startsWith("master");
}

async function isInStep({ send }: Node): Promise<boolean> {
  const told = await send("INFO", "replication").catch(() => "");
  return String(told).includes("master_link_status:up");
}

async function joinTogether(nodes: readonly Node[]): Promise<void> {
  const [first, ...others] = nodes;
  for (const other of others) {
    await first?.send("CLUSTER", "MEET", "127.0.0.1", String(other.port), String(other.bus));
  }
  await eventually(async () => {
    const known = await Promise.all(nodes.map(({ send }) => send("CLUSTER", "NODES")));
    return known.every((text) => linesOf(text).length === nodes.length);
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
}

async function isServing({ send }: Node): Promise<void> {
  await eventually(
    async () => String(await send("CLUSTER", "INFO")).includes("cluster_state:ok"),
    "the cluster serves",
  );
}

function linesOf(text: unknown): string[] {
  return String(text).trim().split("\n");
}
