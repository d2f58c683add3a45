/**
 * A loopback port that nobody listens on at this moment, another one with every call. Below those that the system gives to
 * outgoing connections (from 32,768 on): one of these could take it before its server does, or while that is started again.
 */
import { createServer } from "node:net";

const [LOWEST, HIGHEST] = [20_000, 32_000];

let next = LOWEST + Math.floor(Math.random() * (HIGHEST - LOWEST));

export async function freePort(): Promise<number> {
  for (;;) {
    const port = next;
    next = port < HIGHEST ? port + 1 : LOWEST;
    if (await isFree(port)) return port;
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(false));
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
  });
}
