/**
 * Detects connections whose server no longer responds: its machine has disappeared without closing them, or its process is
 * frozen. Such a connection can stay open for a quarter of an hour, and its commands would wait that long, even if a replica
 * took over long ago. One that gets no answer for ten seconds is closed, so that its commands fail, and is reopened.
 */
import type { Log } from "#core/log.ts";

const TICK_MS = 1_000;
/** Longer than a healthy server is ever busy. Counted in ticks, so that a pause of this process is not blamed on the server. */
const SILENT_TICKS = 10;
export const SILENT_MS = SILENT_TICKS * TICK_MS;
/**
 * What a newly found master is given to accept a connection before others are asked for its successor. It is given up at its first
 * failed attempt after that.
 */
const UNREACHED_TICKS = 2;

/** A client of one server. */
interface Connection {
  readonly isReady: boolean;
  readonly isOpen: boolean;
  readonly on: (
    event: "connect" | "error" | "ready" | "reconnecting" | "terminated",
    listener: () => void,
  ) => unknown;
  readonly ping: () => Promise<unknown>;
  readonly connect: () => Promise<unknown>;
  readonly destroy: () => void;
}

interface Watch {
  readonly tick: () => void;
  /** Closed and not connected since then, or given up without ever being reached. */
  readonly isLost: () => boolean;
}

export function watchServer(client: Connection, log: Log): void {
  const watch = watchConnection(client, log);
  const timer = setInterval(() => {
    if (client.isOpen || watch.isLost()) watch.tick();
    else clearInterval(timer);
  }, TICK_MS);
  timer.unref();
}

interface Cluster {
  readonly isOpen: boolean;
  readonly destroy: () => void;
  readonly masters: readonly { readonly address: string; readonly client?: Connection }[];
  readonly _slots: {
    readonly rediscover: (from: undefined, without: ReadonlySet<string>) => Promise<void>;
  };
}

/** The client looks for new masters when a connection breaks, but not when one is silent or was never made. */
export function watchCluster(cluster: Cluster, log: Log): void {
  const watches = new WeakMap<Connection, Watch>();
  let isSearching = false;

  async function search(lost: ReadonlySet<string>): Promise<void> {
    isSearching = true;
    await cluster._slots.rediscover(undefined, lost).catch(() => {});
    isSearching = false;
  }

  const timer = setInterval(() => {
    if (!cluster.isOpen) {
      // A search that is under way connects to the masters although the cluster has been closed meanwhile.
      cluster.destroy();
      if (!isSearching) clearInterval(timer);
      return;
    }
    const lost = new Set<string>();
    for (const { address, client } of cluster.masters) {
      if (client === undefined) {
        lost.add(address);
        continue;
      }
      const watch = watches.get(client) ?? watchConnection(client, log);
      watches.set(client, watch);
      watch.tick();
      if (watch.isLost()) lost.add(address);
    }
    if (lost.size > 0) void search(lost);
  }, TICK_MS);
  timer.unref();
}

function watchConnection(client: Connection, log: Log): Watch {
  let quietTicks = 0;
  let isLost = false;
  let isAsking = false;
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
  });
  // The search that found this master waits for it to connect, and later searches wait for that search: give it up. Only here,
  // between attempts: one under way would go on beside the next.
  client.on("error", () => {
    if (isGivenUp()) client.destroy();
  });
  // The client does not reconnect after the socket's time limit.
  client.on("terminated", () => {
    isLost = true;
  });

  async function ask(): Promise<void> {
    isAsking = true;
    await client.ping().catch(() => {});
    isAsking = false;
    quietTicks = 0;
  }

  function connectAgain(): void {
    quietTicks = 0;
    void client.connect().catch(() => {});
  }

  return {
    isLost: () => isLost || isGivenUp(),
    tick() {
      if (!isReached) unreachedTicks += 1;
      if ((isLost || isGivenUp()) && !client.isOpen) {
        connectAgain();
        return;
      }
      if (client.isReady && !isAsking) void ask();
      quietTicks += 1;
      if (quietTicks <= SILENT_TICKS) return;
      if (!isLost) log.error("a Redis server is silent; reconnecting");
      isLost = true;
      const wasReady = client.isReady;
      client.destroy();
      // A handshake that is under way has to end first: it has done so by the next tick.
      if (wasReady) connectAgain();
    },
  };
}
