/**
 * Receivers for the measurements of webhooks, a process of their own: one HTTPS server under many names. Its first line of
 * output tells its port; requests to `/slow/<ms>` are answered after that time; "counts" on standard input is answered with the counts so far, "arrivals" with what has arrived
 * since: deliveries whose fact's text is a number, and when.
 */
import { readFile } from "node:fs/promises";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { createInterface } from "node:readline";

export interface Counts {
  readonly connections: number;
  readonly requests: number;
  /** CPU of this process, microseconds. */
  readonly cpuUs: number;
}

/** Number and UTC milliseconds in turn. */
export type Arrivals = readonly number[];

export const SLOW_PATH = "/slow/";
const NUMBERED = /"courierStatus":"(\d+)"/;
const say = (value: object) => process.stdout.write(`${JSON.stringify(value)}\n`);

async function serve(keyFile: string, certFile: string): Promise<void> {
  let connections = 0;
  let requests = 0;
  let arrivals: number[] = [];
  const server = createServer(
    { key: await readFile(keyFile, "utf8"), cert: await readFile(certFile, "utf8") },
    (message, response) => {
      const atMs = Date.now();
      requests += 1;
      let text = "";
      message.on("data", (chunk) => {
        text += chunk;
      });
      message.on("end", () => {
        const tookMs = message.url?.startsWith(SLOW_PATH) ? message.url.slice(SLOW_PATH.length) : 0;
        if (tookMs === 0) response.end();
        else setTimeout(() => response.end(), Number(tookMs));
        const number = NUMBERED.exec(text)?.[1];
        if (number !== undefined) arrivals.push(Number(number), atMs);
      });
    },
  );
  server.keepAliveTimeout = 60_000;
  server.on("secureConnection", () => {
    connections += 1;
  });
  server.listen({ port: 0, host: "127.0.0.1", backlog: 4_096 }, () =>
    say({ port: (server.address() as AddressInfo).port }),
  );
  for await (const line of createInterface({ input: process.stdin })) {
    const { user, system } = process.cpuUsage();
    if (line === "arrivals") {
      say(arrivals);
      arrivals = [];
    } else say({ connections, requests, cpuUs: user + system } satisfies Counts);
  }
  process.exit(0);
}

if (import.meta.main) await serve(process.argv[2] ?? "", process.argv[3] ?? "");
