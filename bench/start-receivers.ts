/** The receivers of `webhook-receivers.ts` as a process of their own, under a certificate of a test authority. */
import { spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { createAuthority, type TestAuthority } from "#test/support/servers/receiver.ts";
import { type Arrivals, type Counts, SLOW_PATH } from "./webhook-receivers.ts";

export interface Receivers {
  readonly urlOf: (n: number) => string;
  /** The same, whose answer takes so long. */
  readonly slowUrlOf: (n: number, tookMs: number) => string;
  /** The authority, as PEM and as WEBHOOK_CA_FILE takes it. */
  readonly ca: string;
  readonly caFile: string;
  readonly counts: () => Promise<Counts>;
  /** Deliveries since it was asked last, by the number in their fact's text. */
  readonly arrivals: () => Promise<Arrivals>;
  readonly stop: () => Promise<void>;
}

const nameOf = (n: number) => `r${n}.localhost`;

/**
 * @param count names that lead to the one server
 * @param shared the authority, where several processes need the same one; its owner ends it
 */
export async function startReceivers(count: number, shared?: TestAuthority): Promise<Receivers> {
  const folder = await mkdtemp(join(tmpdir(), "waybill-bench-"));
  const authority = shared ?? (await createAuthority());
  const keys = await authority.issue(Array.from({ length: count }, (_, n) => nameOf(n)));
  const files = [join(folder, "key.pem"), join(folder, "cert.pem")] as const;
  await writeFile(files[0], keys.private);
  await writeFile(files[1], keys.cert);
  const program = join(import.meta.dir, "webhook-receivers.ts");
  const child = spawn(process.execPath, [program, ...files], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const read = async () => JSON.parse((await lines.next()).value ?? "{}");
  const ask = (what: "counts" | "arrivals") => {
    child.stdin.write(`${what}\n`);
    return read();
  };
  const { port }: { port: number } = await read();
  return {
    urlOf: (n) => `https://${nameOf(n)}:${port}/hook`,
    slowUrlOf: (n, tookMs) => `https://${nameOf(n)}:${port}${SLOW_PATH}${tookMs}`,
    ca: authority.pem,
    caFile: authority.file,
    counts: () => ask("counts"),
    arrivals: () => ask("arrivals"),
    async stop() {
      child.stdin.end();
      if (!shared) await authority.end();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
