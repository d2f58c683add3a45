/**
 * Receivers for `bench/webhooks.ts`, a process of their own: one HTTPS server under many names. Its first line of output
 * tells its port; every line it is given on standard input is answered with the counts so far.
 */
import { readFile } from "node:fs/promises";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";

const [keyFile = "", certFile = ""] = process.argv.slice(2);
const say = (value: object) => process.stdout.write(`${JSON.stringify(value)}\n`);

let connections = 0;
let requests = 0;

const server = createServer(
  { key: await readFile(keyFile, "utf8"), cert: await readFile(certFile, "utf8") },
  (message, response) => {
    requests += 1;
    message.on("end", () => response.end());
    message.resume();
  },
);
server.keepAliveTimeout = 60_000;
server.on("secureConnection", () => {
  connections += 1;
});
server.listen({ port: 0, host: "127.0.0.1", backlog: 4_096 }, () =>
  say({ port: (server.address() as AddressInfo).port }),
);
for await (const _ of process.stdin) say({ connections, requests });
process.exit(0);
