/** The nodes of a cluster as its masters know them, and a connection to each: commands of the cluster's client only reach masters with slots. */
import { isCluster, mastersOf, type Redis } from "#core/platform/redis/client.ts";

export type SlotRange = readonly [from: number, to: number];

/** A slot that is on its way, as the node says that was asked; `other` is the node at the other end. */
export interface OpenSlot {
  readonly slot: number;
  readonly way: "migrating" | "importing";
  readonly other: string;
}

export interface ClusterNode {
  readonly id: string;
  readonly host: string;
  readonly port: number;
  /** As the other nodes reach it. */
  readonly ip: string;
  /** `host:port`, for people. */
  readonly place: string;
  readonly isMaster: boolean;
  /** Whom it follows; empty for a master. */
  readonly masterId: string;
  /** Other nodes do not reach it, or are not sure. */
  readonly isFailing: boolean;
  readonly epoch: number;
  readonly slots: readonly SlotRange[];
  readonly open: readonly OpenSlot[];
}

/** How long a node may take to accept a connection. */
const CONNECT_LIMIT_MS = 5_000;

/** @param own host of the node that was asked, which need not know its own address */
export function parseNodes(text: string, own: string): ClusterNode[] {
  return text
    .trim()
    .split("\n")
    .map((line) => parseNode(line.trim().split(" "), own))
    .filter(({ port }) => port > 0);
}

function parseNode(fields: readonly string[], own: string): ClusterNode {
  const [id = "", address = "", flagText = "", masterId = "", , , epoch = "0", , ...places] =
    fields;
  const flags = flagText.split(",");
  const [place = "", hostname = ""] = address.split(",");
  const [ipAndPort = ""] = place.split("@");
  const colon = ipAndPort.lastIndexOf(":");
  const ip = ipAndPort.slice(0, colon) || own;
  const port = Number(ipAndPort.slice(colon + 1));
  const host = hostname || ip;
  return {
    id,
    host,
    port,
    ip,
    place: `${host}:${port}`,
    epoch: Number(epoch),
    isMaster: flags.includes("master"),
    masterId: masterId === "-" ? "" : masterId,
    isFailing: flags.some((flag) => ["fail", "fail?", "noaddr", "handshake"].includes(flag)),
    slots: places.flatMap(rangeOf),
    open: places.flatMap(openSlotOf),
  };
}

/** `5461-10922` or `12` */
function rangeOf(place: string): SlotRange[] {
  const [, from, to = from] = /^(\d+)(?:-(\d+))?$/.exec(place) ?? [];
  return from === undefined ? [] : [[Number(from), Number(to)]];
}

/** `[93->-<id>]` or `[77-<-<id>]` */
function openSlotOf(place: string): OpenSlot[] {
  const [, slot, arrow, other = ""] = /^\[(\d+)-([<>])-(\w+)\]$/.exec(place) ?? [];
  if (slot === undefined) return [];
  return [{ slot: Number(slot), way: arrow === ">" ? "migrating" : "importing", other }];
}

/** A connection to one node. */
export interface Link {
  readonly node: ClusterNode;
  readonly send: (...command: string[]) => Promise<unknown>;
}

export interface Links {
  /** What each node in reach says of all of them. */
  readonly links: readonly Link[];
  /** Nodes that do not accept a connection. */
  readonly silent: readonly ClusterNode[];
  /** By which a node logs in at another one, as `MIGRATE` takes it. */
  readonly credentials: readonly string[];
  readonly close: () => void;
}

/**
 * A connection of its own to every node of a cluster.
 * @param limitMs how long a command may take
 * @throws when no master answers
 */
export async function linkNodes(redis: Redis, limitMs: number): Promise<Links> {
  const nodes = await readNodes(redis);
  const clients: Redis[] = [];
  const silent: ClusterNode[] = [];
  const links: Link[] = [];
  await Promise.all(
    nodes.map(async (node) => {
      try {
        const client = await connectNode(redis, node, limitMs);
        clients.push(client);
        const send = (...command: string[]) => client.sendCommand(command);
        links.push({ node: await withOwnRole(node, nodes, send), send });
      } catch {
        silent.push(node);
      }
    }),
  );
  const order = (node: ClusterNode) => nodes.indexOf(node);
  return {
    links: links.toSorted((a, b) => order(a.node) - order(b.node)),
    silent,
    credentials: credentialsOf(redis),
    close() {
      for (const client of clients) client.destroy();
    },
  };
}

/**
 * Whom it follows, as it says itself, also while it loads its data: the others hear of a new replica seconds later, and take it for a
 * master without slots until then.
 */
async function withOwnRole(
  node: ClusterNode,
  nodes: readonly ClusterNode[],
  send: Link["send"],
): Promise<ClusterNode> {
  const info = String(await send("INFO", "replication"));
  const [, ip, port] = /^master_host:(\S+)\s+master_port:(\d+)/m.exec(info) ?? [];
  if (!/^role:slave\b/m.test(info)) return { ...node, isMaster: true, masterId: "" };
  const master = nodes.find((one) => one.ip === ip && one.port === Number(port));
  return { ...node, isMaster: false, masterId: master?.id ?? node.masterId };
}

function credentialsOf(redis: Redis): string[] {
  const { username, password } = mastersOf(redis)[0]?.options ?? {};
  if (!password) return [];
  return username ? ["AUTH2", username, password] : ["AUTH", password];
}

/** @throws when no master answers, or there is no cluster */
export async function readNodes(redis: Redis): Promise<ClusterNode[]> {
  if (!isCluster(redis)) throw new Error("this Redis is no cluster");
  let failure: unknown = new Error("no master of the cluster is in reach");
  for (const master of mastersOf(redis)) {
    try {
      const text = String(await master.sendCommand(["CLUSTER", "NODES"]));
      const { host = "" } = { host: "", ...master.options.socket };
      return parseNodes(text, host);
    } catch (error) {
      failure = error;
    }
  }
  throw failure;
}

/** Ends when it breaks, and never reconnects. */
async function connectNode(
  redis: Redis,
  { host, port }: ClusterNode,
  limitMs: number,
): Promise<Redis> {
  const [any] = mastersOf(redis);
  if (!any) throw new Error("no master of the cluster is in reach");
  const timing = { connectTimeout: CONNECT_LIMIT_MS, socketTimeout: limitMs };
  const client = any.duplicate({
    socket: { ...(any.options.socket as object), host, port, reconnectStrategy: false, ...timing },
  }) as Redis;
  client.on("error", () => {});
  try {
    await client.connect();
    return client;
  } catch (error) {
    client.destroy();
    throw error;
  }
}

export const SLOTS = 16_384;

export function hasSlot({ slots }: ClusterNode, slot: number): boolean {
  return slots.some(([from, to]) => from <= slot && slot <= to);
}
