/**
 * A balancer between clients and the processes of a role: it asks each of them for `/readyz` every second, and gives a new connection
 * to those in turn that were ready then. A connection stays where it is, as it does behind most balancers.
 */
import { connect, createServer, type Socket } from "node:net";
import { areReady } from "#test/support/product/product.ts";

const POLL_MS = 1_000;

export interface Balancer {
  readonly url: string;
  /** Connections that a process did not take though it was ready, or for which none was. */
  readonly refused: () => number;
  /** Whether this process was ready at the last look. */
  readonly routesTo: (backend: string) => boolean;
  readonly stop: () => void;
}

export async function startBalancer(backends: readonly string[]): Promise<Balancer> {
  const ready = new Set<string>(backends);
  const sockets = new Set<Socket>();
  let turn = 0;
  let refused = 0;

  const look = (backend: string) =>
    areReady([backend]).then((is) => void (is ? ready.add(backend) : ready.delete(backend)));
  const timer = setInterval(() => backends.map(look), POLL_MS);

  function route(client: Socket): void {
    const routed = backends.filter((backend) => ready.has(backend));
    const chosen = routed[turn++ % Math.max(1, routed.length)];
    client.on("error", () => {});
    if (chosen === undefined) {
      refused += 1;
      client.destroy();
      return;
    }
    const { hostname, port } = new URL(chosen);
    let isOpen = false;
    const process = connect(Number(port), hostname, () => {
      isOpen = true;
      client.pipe(process).pipe(client);
    });
    process.on("error", () => {
      if (!isOpen) refused += 1;
      client.destroy();
    });
    process.on("close", () => client.destroySoon());
    for (const socket of [client, process]) {
      sockets.add(socket);
      socket.on("close", () => sockets.delete(socket));
    }
    client.on("close", () => process.destroy());
  }

  const server = createServer(route);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  const port = typeof address === "object" ? (address?.port ?? 0) : 0;
  return {
    url: `http://127.0.0.1:${port}`,
    refused: () => refused,
    routesTo: (backend) => ready.has(backend),
    stop() {
      clearInterval(timer);
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}
