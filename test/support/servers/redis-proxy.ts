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
  /** From now on every answer of Redis comes so much later; in its order. */
  readonly delay: (lateMs: number) => void;
  /**
   * The answer to the next request that holds a text is kept back, and with it all later ones of its connection. The request arrives.
   * @returns lets them pass
   */
  readonly keepAnswerTo: (text: string) => () => void;
  /** Resets every connection in the middle of its next answer; settles once one was. */
  readonly tear: () => Promise<void>;
  /** New connections pass again; those that were cut end. */
  readonly heal: () => void;
  readonly stop: () => Promise<void>;
}

/** @param address path of the Unix socket of a Redis, or its port */
export async function startRedisProxy(
  address: string | { readonly port: number },
): Promise<RedisProxy> {
  let lateMs = 0;
  let torn: (() => void) | null = null;
  let losing: "requests" | "replies" | null = null;
  let lost = "";
  let awaited: string | null = null;
  let kept: { readonly to: Socket; readonly answers: Buffer[] } | null = null;
  const open = new Set<Socket>();
  const server = createServer((client) => {
    const redis =
      typeof address === "string" ? connect(address) : connect(address.port, "127.0.0.1");
    for (const [from, to, what] of [
      [client, redis, "requests"],
      [redis, client, "replies"],
    ] as const) {
      open.add(from);
      /** Answers that are kept back, in their order: one that comes at once waits for those before it. */
      const late: Buffer[] = [];
      const pass = () => {
        const [bytes] = late.splice(0, 1);
        if (bytes) to.write(bytes);
      };
      from.on("data", (bytes: Buffer) => {
        if (what === "requests" && awaited !== null && bytes.includes(awaited)) {
          kept = { to: from, answers: [] };
          awaited = null;
        }
        if (kept?.to === to) kept.answers.push(bytes);
        else if (losing === what) lost += bytes.toString("latin1");
        else if (what === "replies" && torn) {
          while (late.length > 0) pass();
          to.write(bytes.subarray(0, bytes.length / 2), () => client.resetAndDestroy());
          torn();
        } else if (what === "replies" && (lateMs > 0 || late.length > 0)) {
          late.push(bytes);
          setTimeout(pass, lateMs);
        } else to.write(bytes);
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
    delay(ms) {
      lateMs = ms;
    },
    keepAnswerTo(text) {
      awaited = text;
      return () => {
        for (const bytes of kept?.answers ?? []) kept?.to.write(bytes);
        kept = null;
      };
    },
    async tear() {
      await new Promise<void>((resolve) => {
        torn = resolve;
      });
      torn = null;
    },
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
