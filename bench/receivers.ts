/**
 * Receivers of webhooks, a process of their own, of this file: one HTTPS server under many names and a certificate of a test
 * authority. Requests to `/slow/<ms>` are answered after that time, others at once. "counts" on standard input is answered with the
 * counts so far, "arrivals" with what has arrived since: deliveries whose fact's text is a number, and when.
 */
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { AUTHORITY } from "#test/support/servers/receiver.ts";
import { type Defer, startProgram, tempFolder } from "./harness.ts";

export type Receivers = Awaited<ReturnType<typeof startReceivers>>;

const SLOW_PATH = "/slow/";
const nameOf = (n: number) => `r${n}.localhost`;

/** @param count names that lead to the one server */
export async function startReceivers(defer: Defer, count: number) {
  const folder = await tempFolder(defer);
  const keys = await AUTHORITY.issue(Array.from({ length: count }, (_, n) => nameOf(n)));
  const files = [join(folder, "key.pem"), join(folder, "cert.pem")] as const;
  await Bun.write(files[0], keys.private);
  await Bun.write(files[1], keys.cert);
  const { say, read, first: port } = await startProgram(defer, "receivers.ts", files);
  const ask = async (what: "counts" | "arrivals") => {
    say(what);
    return JSON.parse(await read());
  };
  return {
    urlOf: (n: number, tookMs?: number) =>
      `https://${nameOf(n)}:${port}${tookMs === undefined ? "/hook" : `${SLOW_PATH}${tookMs}`}`,
    /** The authority, as PEM and as WEBHOOK_CA_FILE takes it. */
    ca: AUTHORITY.pem,
    caFile: AUTHORITY.file,
    /** CPU of the receivers' process. */
    counts: (): Promise<Readonly<Record<"connections" | "cpuUs", number>>> => ask("counts"),
    /** Of deliveries since it was asked last: the number in their fact's text and UTC milliseconds in turn. */
    arrivals: (): Promise<readonly number[]> => ask("arrivals"),
  };
}

async function serve([keyFile = "", certFile = ""]: readonly string[]): Promise<void> {
  let connections = 0;
  let arrivals: number[] = [];
  const [key, cert] = [await Bun.file(keyFile).text(), await Bun.file(certFile).text()];
  const server = createServer({ key, cert }, async (message, response) => {
    const atMs = Date.now();
    let text = "";
    for await (const chunk of message) text += chunk;
    const { url = "" } = message;
    if (url.startsWith(SLOW_PATH)) await Bun.sleep(Number(url.slice(SLOW_PATH.length)));
    response.end();
    const number = /"courierStatus":"(\d+)"/.exec(text)?.[1];
    if (number !== undefined) arrivals.push(Number(number), atMs);
  });
  server.keepAliveTimeout = 60_000;
  server.on("secureConnection", () => {
    connections += 1;
  });
  server.listen({ port: 0, host: "127.0.0.1", backlog: 4_096 }, () =>
    process.stdout.write(`${(server.address() as AddressInfo).port}\n`),
  );
  for await (const line of createInterface({ input: process.stdin })) {
    const { user, system } = process.cpuUsage();
    const answer = line === "arrivals" ? arrivals : { connections, cpuUs: user + system };
    process.stdout.write(`${JSON.stringify(answer)}\n`);
    if (line === "arrivals") arrivals = [];
  }
  process.exit(0);
}

if (import.meta.main) await serve(process.argv.slice(2));
