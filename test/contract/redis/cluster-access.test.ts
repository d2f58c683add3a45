/** A Redis Cluster behind a password and TLS (docs/operations/redis.md, "A cluster of your own"). */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient } from "redis";
import { eventually } from "#test/support/eventually.ts";
import { outcomeOf, startCommand } from "#test/support/product/command.ts";
import { createTestAuthority } from "#test/support/servers/certificates.ts";
import { freePort } from "#test/support/servers/free-port.ts";
import { hasLoaded } from "#test/support/servers/redis-server.ts";

/** With a character that a URL escapes. */
const PASSWORD = "with/slash";
const ALL_SLOTS = ["0", "16383"];

let folder: string;
let port: number;
let node: ReturnType<typeof Bun.spawn>;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "waybill-cluster-access-"));
  const { ca, server } = await createTestAuthority();
  await Bun.write(join(folder, "ca.crt"), ca);
  await Bun.write(join(folder, "node.crt"), server.cert);
  await Bun.write(join(folder, "node.key"), server.key);
  port = await freePort();
  const plain = await freePort();
  const settings: Record<string, string> = {
    dir: folder,
    bind: "127.0.0.1",
    port: String(plain),
    "tls-port": String(port),
    "tls-cluster": "yes",
    "tls-auth-clients": "no",
    "tls-cert-file": join(folder, "node.crt"),
    "tls-key-file": join(folder, "node.key"),
    "tls-ca-cert-file": join(folder, "ca.crt"),
    requirepass: PASSWORD,
    "cluster-enabled": "yes",
    "cluster-port": String(await freePort()),
    "cluster-announce-ip": "127.0.0.1",
  };
  const args = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value]);
  node = Bun.spawn(["redis-server", ...args], { stdio: ["ignore", "ignore", "ignore"] });
  await eventually(() => hasLoaded({ port: plain, host: "127.0.0.1" }), "the node has started");
  const redis = createClient({
    url: `redis://default:${encodeURIComponent(PASSWORD)}@127.0.0.1:${plain}`,
  });
  await redis.connect();
  await redis.sendCommand(["ACL", "SETUSER", "waybill", "on", `>${PASSWORD}`, "~*", "&*", "+@all"]);
  await redis.sendCommand(["CLUSTER", "ADDSLOTSRANGE", ...ALL_SLOTS]);
  await eventually(
    async () => String(await redis.sendCommand(["CLUSTER", "INFO"])).includes("cluster_state:ok"),
    "the cluster serves",
  );
  redis.destroy();
}, 120_000);
afterAll(async () => {
  node.kill("SIGKILL");
  await node.exited;
  await rm(folder, { recursive: true, force: true });
});

test.each(["", "waybill"])(
  "the first URL's protocol, user name %p and password reach the nodes that the cluster names",
  async (userName) => {
    const url = `rediss://${userName}:${encodeURIComponent(PASSWORD)}@127.0.0.1:${port}`;
    const env = { REDIS_CLUSTER_URLS: url, NODE_EXTRA_CA_CERTS: join(folder, "ca.crt") };
    const command = ["bun", "cli/main.ts", "slots"];
    const { output, errors, status } = await outcomeOf(startCommand(command, env));
    expect([errors, status, status === 0 ? "" : output]).toEqual(["", 0, ""]);
    expect(output.split(`127.0.0.1:${port}`)).toHaveLength(48 + 1);
  },
);
