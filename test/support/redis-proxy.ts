/** A TCP connection to Redis that a test can cut on one side: what was asked is lost, or what was answered. */
import { connect, createServer, type Socket } from "node:net";
import { freePort } from "./free-port.ts";

export interface RedisProxy {
  /** `redis://127.0.0.1:port` */
  readonly url: string;
  /** From now on nothing that a client asks arrives (`requests`), or nothing that Redis answers (`replies`). */
  readonly lose: (what: "requests" | "replies") => void;
  /** What has been lost since then. */
  readonly lost: () => string;
  /** New connections pass again; those that were cut end. */
  readonly heal: () => void;
  readonly stop: () => Promise<void>;
}

/** @param address path of the Unix socket of a Redis */
export async function startRedisProxy(address: string): Promise<RedisProxy> {
  let losing: "requests" | "replies" | null = null;
  let lost = "";
  const open = new Set<Socket>();
  const server = createServer((client) => {
    const redis = connect(address);
    for (const [from, to, what] of [
      [client, redis, "requests"],
      [redis, client, "replies"],
    ] as const) {
      open.add(from);
      from.on("data", (bytes) => {
        if (losing === what) lost += bytes.toString("latin1");
        else to.write(bytes);
      });
      // A killed client resets its connection.
      from.on("error", () => {});
      from.on("close", () => {
        open.delete(from);
        to.destroy();
      });
    }
  });
  const port = await freePort();
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  const endAll = () => {
    for (const socket of open) socket.destroy();
  };
  return {
    url: `redis://127.0.0.1:${port}`,
    lose(what) {
      losing = what;
      lost = "";
    },
    lost: () => lost,
    heal() {
      endAll();
      losing = null;
    },
    async stop() {
      endAll();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
