/**
 * Names stop resolving: the merchant's, whose webhooks then wait for their retry, and that of the Redis server, whose
 * connections are cut meanwhile. Needs Linux and the right to mount: the product has a hosts file and name servers of its own.
 */
import { afterAll, beforeAll, describe, test } from "bun:test";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createShipments, startEventStream } from "#test/support/clients/event-stream.ts";
import { askPanel } from "#test/support/clients/operator.ts";
import { expectExactlyOnce } from "#test/support/data/oracle.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { eventually } from "#test/support/eventually.ts";
import { IS_MEASURED, noteSkipped, startMeasuring } from "#test/support/measured.ts";
import { newProduct, type Product } from "#test/support/product/product.ts";
import { NO_CLICKHOUSE } from "#test/support/product/runtime.ts";
import { mayMount } from "#test/support/servers/mounts.ts";
import { AUTHORITY, type Receiver, startReceiver } from "#test/support/servers/receiver.ts";
import { type RedisServer, startRedisServer } from "#test/support/servers/redis-server.ts";

const SHIPMENTS = 20;
const EVENTS_BETWEEN = 40;
const LIMIT_MS = 60_000;
/** A connection that is only cut is there again by the next look. */
const LOOKS = 5;
const LOOK_EVERY_MS = 400;
/** Longer than the first wait for a retry (1 minute and a fifth). */
const RETRY_SECONDS = 80;
const MERCHANT = "hooks.waybill.example";
const REDIS = "redis.waybill.example";
const HOSTS = `127.0.0.1 localhost ${MERCHANT} ${REDIS}\n`;
const NO_HOSTS = "127.0.0.1 localhost\n";
/** Knows no name, and says so at once. */
const NAME_SERVER = "127.0.0.53";
const NAME = "no name resolves, neither a merchant's nor that of Redis";

/** Its answer is the question with the bits for "answer" and "no such name" (RFC 1035, 4.1.1). */
function startNameServer() {
  return Bun.udpSocket({
    hostname: NAME_SERVER,
    port: 53,
    socket: {
      data(socket, question, port, address) {
        const answer = Buffer.from(question);
        answer[2] = (answer[2] ?? 0) | 0x80;
        answer[3] = ((answer[3] ?? 0) & 0xf0) | 3;
        socket.send(answer, port, address);
      },
    },
  });
}

const canMount = mayMount();
if (!canMount)
  await noteSkipped("Hurt everything", NAME, "this machine does not let us mount a file");

// The runtime remembers addresses for half a minute: too long for `npm run test:slow`.
describe.skipIf(!canMount || !IS_MEASURED)("with name servers of its own", () => {
  let folder: string;
  let hosts: string;
  let receiver: Receiver;
  let server: RedisServer;
  let nameServer: Awaited<ReturnType<typeof startNameServer>>;
  let product: Product;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "waybill-names-"));
    hosts = join(folder, "hosts");
    const servers = join(folder, "resolv.conf");
    await writeFile(hosts, HOSTS);
    nameServer = await startNameServer();
    await writeFile(servers, `nameserver ${NAME_SERVER}\n`);
    receiver = await startReceiver({ keys: await AUTHORITY.issue([MERCHANT]) });
    server = await startRedisServer();
    const setup = testSetup();
    const [channel] = setup.companies?.[0]?.channels ?? [];
    if (channel) {
      const url = receiver.url.replace("localhost", MERCHANT);
      const common = { trigger: "every_event", alertEmail: "ops@acme.test" } as const;
      channel.webhooks = [{ code: "main", url, ...common }];
    }
    const mounts = `mount --bind ${hosts} /etc/hosts && mount --bind ${servers} /etc/resolv.conf`;
    const start = `${mounts} && exec bun cli/main.ts start --quiet`;
    product = await newProduct(["unshare", "-m", "sh", "-c", start], setup, {
      REDIS_URL: `redis://${REDIS}:${server.port}`,
      WEBHOOK_ALLOWED_CIDRS: "127.0.0.0/8",
      WEBHOOK_CA_FILE: AUTHORITY.file,
      // The runtime's own cache of names, 30 s as it comes.
      BUN_CONFIG_DNS_TIME_TO_LIVE_SECONDS: "1",
      // Not what this test is about.
      CLICKHOUSE_URL: NO_CLICKHOUSE,
      CLICKHOUSE_READ_URL: NO_CLICKHOUSE,
    });
    await product.start();
  }, 300_000);

  afterAll(async () => {
    await product.end();
    await server.stop();
    await receiver.stop();
    nameServer.close();
    await rm(folder, { recursive: true, force: true });
  }, 300_000);

  const operator = async (method: string, path: string, body?: unknown) =>
    (await askPanel(product, method, `/${path}`, body)).body;

  test("webhooks wait, Redis is found again, nothing is lost or doubled", async () => {
    const ids = await createShipments(product, "NAME", SHIPMENTS);
    const measuring = startMeasuring("Hurt everything", NAME);
    const stream = startEventStream(product, "NAME", SHIPMENTS, { paceMs: 200 });
    await stream.grows("events are accepted", EVENTS_BETWEEN);
    await eventually(() => receiver.requests.length > 0, "webhooks arrive");

    await writeFile(hosts, NO_HOSTS);
    await stream.grows("events are accepted while no merchant is found", EVENTS_BETWEEN);
    const isRetried = async () =>
      /^waybill_webhook_attempts_total\{[^}]*outcome="retry"[^}]*\} [1-9]/m.test(
        await (await fetch(`${product.panel}/metrics`)).text(),
      );
    await eventually(isRetried, "webhooks wait for a retry", LIMIT_MS);

    let looks = 0;
    const isOut = async () => {
      await server.send("CLIENT", "KILL", "TYPE", "normal");
      looks = (await fetch(`${product.ingest}/readyz`)).status === 503 ? looks + 1 : 0;
      return looks >= LOOKS;
    };
    await eventually(isOut, "Redis is looked for and not found", LIMIT_MS, LOOK_EVERY_MS);
    await writeFile(hosts, HOSTS);
    const healedAtMs = performance.now();
    await stream.grows("one is accepted");
    measuring.recovered(healedAtMs);
    await stream.grows("events are accepted again", EVENTS_BETWEEN);
    await stream.stop();
    await operator("POST", "clock", { advanceSeconds: RETRY_SECONDS });
    const counted = await expectExactlyOnce(product, "NAME", ids, stream.accepted, {
      away: ["analytics", "attempts"],
    });
    const reported = () => new Set(receiver.requests.map(({ body }) => body.id));
    await eventually(
      () => reported().size === stream.accepted.size,
      () => `${stream.accepted.size} webhooks arrive; ${reported().size} have`,
      LIMIT_MS,
    );
    const further = {
      "webhooks received": reported().size,
      "requests repeated under their id": receiver.requests.length - reported().size,
    };
    await measuring.done({ faults: 2, ...counted, further });
  }, 300_000);
});
