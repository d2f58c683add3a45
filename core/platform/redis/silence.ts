/**
 * Detects connections whose server no longer responds: its machine has disappeared without closing them, or its process is
 * frozen. Such a connection can stay open for a quarter of an hour, and its commands would wait that long, even if a replica
 * took over long ago. One that gets no answer for ten seconds is closed, so that its commands fail, and is reopened. On a cluster,
 * other nodes are asked for the successor of a master that is lost.
 */
import type { Log } from "#core/platform/process/log.ts";
import { limit } from "#core/platform/schema/limit.ts";

const TICK_MS = 1_000;
/** Longer than a healthy server is ever busy. Counted in ticks, so that a pause of this process is not blamed on the server. */
const SILENT_TICKS = 10;
export const SILENT_MS = limit(
  SILENT_TICKS * TICK_MS,
  "a connection to Redis without any answer",
  "closed and reopened; its pending calls fail as unavailable",
);
/**
 * How long a newly found master may take to accept a connection; its first failed attempt after that gives it up, and other nodes
 * are asked for its successor.
 */
const UNREACHED_MS = limit(
  2_000,
  "time for a newly found master to accept a connection, before its next failed attempt gives it up",
  "the commands that waited for it fail as unavailable, and another one is looked for",
);
const UNREACHED_TICKS = UNREACHED_MS / TICK_MS;

/** A client of one server. */
interface Connection {
  readonly isReady: boolean;
  readonly isOpen: boolean;
  readonly on: (
    event: "connect" | "error" | "ready" | "reconnecting" | "terminated",
    listener: () => void,
  ) => unknown;
  readonly ping: () => Promise<unknown>;
  readonly sendCommand: (command: string[]) => Promise<unknown>;
  readonly connect: () => Promise<unknown>;
  readonly destroy: () => void;
}

interface Watch {
  readonly tick: () => void;
  /** Silent and not yet reconnected, given up before it was ever reached, or no longer in the cluster. */
  readonly isLost: () => boolean;
  /** Closed by the watch, or given up by the client; never closed by its owner. */
  readonly isToReopen: () => boolean;
}

export function watchServer(client: Connection, log: Log): void {
  const watch = watchConnection(
    client,
    () => client.ping(),
    () => log.error(SILENT),
  );
  let closedTicks = 0;
  const timer = setInterval(() => {
    if (client.isOpen || watch.isToReopen()) {
      watch.tick();
      return;
    }
    closedTicks += 1;
    if (closedTicks <= SILENT_TICKS) return;
    // Its owner has closed it, and may still be waiting for a silent server.
    client.destroy();
    clearInterval(timer);
  }, TICK_MS);
  timer.unref();
}

const SILENT = "a Redis server is silent; reconnecting";

interface Master {
  readonly address: string;
  readonly client?: Connection;
}

interface Cluster<Node extends Master> {
  readonly isOpen: boolean;
  readonly destroy: () => void;
  readonly masters: readonly Node[];
  readonly slots: readonly unknown[];
  readonly _slots: {
    readonly rediscover: (from: undefined, without: ReadonlySet<string>) => Promise<void>;
    readonly nodeClient: (master: Node) => Promise<unknown>;
  };
}

/** The client looks for new masters when a connection breaks, but not when one is silent or could never be made. */
export function watchCluster<Node extends Master>(cluster: Cluster<Node>, log: Log): void {
  const watches = new WeakMap<Connection, Watch>();
  const silent = new Set<string>();
  let lost: ReadonlySet<string> = new Set();
  let clients: readonly Connection[] = [];
  let isSearching = false;
  let closedTicks = 0;

  function watch(node: string, client: Connection): Watch {
    const onSilent = () => {
      if (silent.has(node)) return;
      silent.add(node);
      log.error({ node }, SILENT);
    };
    return watchConnection(client, () => isMember(client), onSilent);
  }

  /** @returns whether it is lost, also while a connection that was given up is attempted again */
  function tickMaster(master: Node): boolean {
    const { address, client } = master;
    if (!client) {
      // It was given up. By itself the client connects only masters that it did not know, or that a command needs.
      void cluster._slots.nodeClient(master).catch(() => {});
      return true;
    }
    const own = watches.get(client) ?? watch(address, client);
    watches.set(client, own);
    own.tick();
    if (client.isReady && !own.isLost()) silent.delete(address);
    return own.isLost() || (lost.has(address) && !client.isReady);
  }

  async function search(): Promise<void> {
    isSearching = true;
    await cluster._slots.rediscover(undefined, lost).catch(() => {});
    isSearching = false;
  }

  function tick(): void {
    lost = new Set(cluster.masters.filter(tickMaster).map(({ address }) => address));
    clients = cluster.masters.flatMap(({ client }) => client ?? []);
    if (lost.size > 0 || !isCovered(cluster.slots)) void search();
  }

  const timer = setInterval(() => {
    if (cluster.isOpen) {
      tick();
      return;
    }
    // A search that is under way connects to the masters although the cluster has been closed meanwhile.
    cluster.destroy();
    closedTicks += 1;
    if (closedTicks <= SILENT_TICKS || isSearching) return;
    // Its owner may still be waiting for a silent master.
    for (const client of clients) client.destroy();
    clearInterval(timer);
  }, TICK_MS);
  timer.unref();
}

/**
 * Whether a node still belongs to the cluster. One that was removed or has lost its files goes on answering, but knows of no
 * masters, and the client would take that to mean there are none.
 */
async function isMember(client: Connection): Promise<boolean> {
  const info = await client.sendCommand(["CLUSTER", "INFO"]);
  return !String(info).includes("cluster_slots_assigned:0\r\n");
}

const covered = new WeakMap<readonly unknown[], boolean>();

/** Whether each slot has a master. The client makes a new array whenever it has looked for them. */
export function isCovered(slots: readonly unknown[]): boolean {
  const known = covered.get(slots);
  if (known !== undefined) return known;
  const isComplete = !slots.includes(undefined);
  covered.set(slots, isComplete);
  return isComplete;
}

/** @param ask any question; the answer false means that the server is not the one wanted any more */
function watchConnection(
  client: Connection,
  ask: () => Promise<unknown>,
  onSilent: () => void,
): Watch {
  let quietTicks = 0;
  let isLost = false;
  let isForeign = false;
  let isAsking = false;
  let isToReopen = false;
  let isReached = client.isReady;
  let unreachedTicks = 0;
  const isGivenUp = () => !isReached && unreachedTicks > UNREACHED_TICKS;
  /**
   * The client reconnects by itself. Between two attempts, and until the server accepts one (5 s), `connect` must not be called: the
   * client would then make two attempts at once, and match the replies of one connection to the commands of the other.
   */
  const goesOn = () => {
    if (!client.isReady) quietTicks = 0;
  };
  for (const step of ["connect", "error", "reconnecting"] as const) client.on(step, goesOn);
  client.on("ready", () => {
    quietTicks = 0;
    isLost = false;
    isReached = true;
    // Closing it while it connects does not end the attempt.
    if (!client.isOpen) client.destroy();
  });
  // The search that found this master waits for it to connect, and later searches wait for that search: give it up. Only here,
  // between attempts: one under way would go on beside the next.
  client.on("error", () => {
    if (isGivenUp()) close();
  });
  // The client does not reconnect after the socket's time limit.
  client.on("terminated", () => {
    isLost = true;
    isToReopen = true;
  });

  async function askNow(): Promise<void> {
    isAsking = true;
    isForeign = (await ask().catch(() => null)) === false;
    isAsking = false;
    quietTicks = 0;
  }

  function close(): void {
    isToReopen = true;
    client.destroy();
  }

  function reopen(): void {
    isToReopen = false;
    quietTicks = 0;
    void client.connect().catch(() => {});
  }

  return {
    isLost: () => isLost || isForeign || isGivenUp(),
    isToReopen: () => isToReopen,
    tick() {
      if (!isReached) unreachedTicks += 1;
      if (!client.isOpen) {
        if (isToReopen) reopen();
        return;
      }
      if (client.isReady && !isAsking) void askNow();
      quietTicks += 1;
      if (quietTicks <= SILENT_TICKS) return;
      if (!isLost) onSilent();
      isLost = true;
      const wasReady = client.isReady;
      close();
      // A handshake that is under way has to end first: it has done so by the next tick.
      if (wasReady) reopen();
    },
  };
}
