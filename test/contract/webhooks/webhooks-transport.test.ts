import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { spawn } from "node:child_process";
import { createSocket } from "node:dgram";
import { Resolver } from "node:dns/promises";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { parseCidr } from "#core/platform/network/cidr.ts";
import { createNameResolver } from "#core/platform/network/resolve-name.ts";
import {
  createTransport,
  type Transport,
  type TransportOptions,
} from "#core/webhooks/store/transport/transport.ts";
import { eventually } from "#test/support/eventually.ts";
import {
  AUTHORITY,
  certificate,
  type Receiver,
  startReceiver,
} from "#test/support/servers/receiver.ts";

/** Of those that time out; the others have the 10 s of the product. */
const LIMIT_MS = 400;
const SHORT = { limitMs: LIMIT_MS };
/** Connections after which a backlog of one must be full. */
const FILLING_LIMIT = 50;
const allowed = ["127.0.0.0/8"].map(parseCidr).filter((cidr) => cidr !== null);

let receiver: Receiver;
/** Hangs, and is asked while the other tests run. */
let hanging: Receiver;
let tenSeconds: ReturnType<Transport["post"]>;
const opened: Transport[] = [];

function transport(options: Partial<TransportOptions> = {}): Transport {
  const made = createTransport({ allowed, ca: AUTHORITY.pem, ...options });
  opened.push(made);
  return made;
}

const post = (url: string, options: Partial<TransportOptions> = {}) =>
  transport(options).post(url, { "Content-Type": "application/json" }, "{}");

beforeAll(async () => {
  receiver = await startReceiver({
    keys: await AUTHORITY.issue(["a.localhost", "b.localhost"]),
    name: "a.localhost",
  });
  hanging = await startReceiver();
  hanging.behave(() => {});
  tenSeconds = post(hanging.url);
});

beforeEach(() => {
  receiver.requests.length = 0;
  receiver.behave(200);
});

afterAll(async () => {
  for (const one of opened) one.close();
  await Promise.all([receiver.stop(), hanging.stop()]);
});

/** Answers a quarter of a second after it has said that it was asked; in a process of its own, since this one stands still meanwhile. */
const SLOW_RECEIVER = `
  const { port } = Bun.serve({ hostname: "127.0.0.1", port: 0, async fetch() {
    console.log("asked");
    await Bun.sleep(250);
    return new Response("OK");
  } });
  console.log(port);`;

test("an answer that came while this process stood still, past the limit, is no timeout", async () => {
  const limitMs = 3_000;
  const child = Bun.spawn([process.execPath, "-e", SLOW_RECEIVER], { stdout: "pipe" });
  try {
    const output = child.stdout.getReader();
    const line = async () =>
      Buffer.from((await output.read()).value ?? [])
        .toString()
        .trim();
    const url = `http://127.0.0.1:${await line()}/`;
    const fromMs = performance.now();
    const sending = transport({ limitMs }).post(url, {}, "{}", { allowHttp: true });
    expect(await line()).toBe("asked");
    Bun.sleepSync(fromMs + limitMs + 500 - performance.now());
    expect(await sending).toMatchObject({ kind: "answered", httpStatus: 200 });
  } finally {
    child.kill();
  }
}, 60_000);

describe("document 3, Transport rules: the certificate is verified for the host's name", () => {
  test("a certificate of a trusted authority is accepted", async () => {
    expect(await post(receiver.url)).toMatchObject({ kind: "answered", httpStatus: 200 });
  });

  test("another host's certificate is a connection error", async () => {
    const sent = await post(receiver.url.replace("a.localhost", "c.localhost"));
    expect(sent).toMatchObject({ kind: "unreachable" });
    expect(sent).toHaveProperty("error", "tls: ERR_TLS_CERT_ALTNAME_INVALID");
    expect(receiver.requests).toEqual([]);
  });

  test.each([
    ["expired", () => AUTHORITY.issue(["a.localhost"], Date.now() - 1_000)],
    ["self-signed", () => certificate(["a.localhost"])],
  ])("an %s certificate is a connection error", async (_, keys) => {
    const other = await startReceiver({ keys: await keys(), name: "a.localhost" });
    const sent = await post(other.url);
    expect(sent).toMatchObject({ kind: "unreachable" });
    expect(sent).toHaveProperty("error", expect.stringMatching(/^tls: /));
    expect(other.requests).toEqual([]);
    await other.stop();
  });

  test("without the extra authority its certificates are refused", async () => {
    expect(await post(receiver.url, { ca: null })).toMatchObject({ kind: "unreachable" });
  });

  test("a literal address is verified as an address", async () => {
    const sent = await post(receiver.url.replace("a.localhost", "127.0.0.1"));
    expect(sent).toHaveProperty("error", "tls: ERR_TLS_CERT_ALTNAME_INVALID");
  });
});

describe("keep-alive", () => {
  test("a connection is used again", async () => {
    const kept = transport();
    const before = receiver.connections();
    for (let n = 0; n < 20; n += 1) await kept.post(receiver.url, {}, "{}");
    expect(receiver.connections() - before).toBe(1);
  });

  test("connections of different names are never mixed, though address and port are the same", async () => {
    const kept = transport();
    const names = ["a.localhost", "b.localhost", "a.localhost", "b.localhost"];
    const before = receiver.connections();
    for (const name of names) {
      await kept.post(receiver.url.replace("a.localhost", name), {}, "{}");
    }
    expect(receiver.connections() - before).toBe(2);
    expect(receiver.requests.map(({ serverName }) => serverName)).toEqual(names);
    const hosts = receiver.requests.map(({ headers }) => headers.host?.split(":")[0]);
    expect(hosts).toEqual(names);
    const wrong = await kept.post(receiver.url.replace("a.localhost", "c.localhost"), {}, "{}");
    expect(wrong).toMatchObject({ kind: "unreachable" });
  });

  test("one attempt is one POST: what a connection that is reset took is not sent again", async () => {
    const kept = transport();
    let requests = 0;
    receiver.behave((_, response) => {
      requests += 1;
      if (requests === 1) response.end();
      else response.socket?.destroy();
    });
    expect(await kept.post(receiver.url, {}, "{}")).toMatchObject({ httpStatus: 200 });
    expect(await kept.post(receiver.url, {}, "{}")).toMatchObject({ kind: "unreachable" });
    expect(requests).toBe(2);
  });

  test("a connection that the receiver closed while idle is not used again", async () => {
    const kept = transport();
    receiver.behave((_, response) => {
      response.end();
      // Closed without a word, as a restarted receiver or a middlebox does.
      response.once("close", () => response.socket?.destroy());
    });
    for (let n = 0; n < 5; n += 1) {
      expect(await kept.post(receiver.url, {}, "{}")).toMatchObject({ httpStatus: 200 });
      await eventually(() => receiver.openConnections() === 0, "the connection is closed");
      // What the kernel has told this process of it by now is heard in a turn of the loop.
      for (let turn = 0; turn < 2; turn += 1) await new Promise(setImmediate);
    }
    expect(receiver.requests).toHaveLength(5);
  });
});

describe("document 3: non-public addresses are refused on every send", () => {
  test.each([
    "https://127.0.0.1/",
    "https://127.1/",
    "https://2130706433/",
    "https://0x7f.0.0.1/",
    "https://0177.0.0.1/",
    "https://[::1]/",
    "https://[::ffff:127.0.0.1]/",
    "https://[64:ff9b::7f00:1]/",
    "https://169.254.169.254/latest/meta-data/",
    "https://10.0.0.1/",
    "https://localhost/",
  ])("%s", async (url) => {
    expect(await post(url, { allowed: [] })).toMatchObject({
      kind: "refused",
      error: "host resolves to a non-public address",
      responseSnippet: null,
    });
  });

  test("one non-public address among public ones is enough to refuse", async () => {
    const resolve = async () => ["93.184.216.34", "10.0.0.1"];
    expect(await post("https://mixed.test/", { resolve })).toMatchObject({ kind: "refused" });
  });
});

describe("every address of a name is tried, IPv4 and IPv6, each vetted", () => {
  const everywhere = ["127.0.0.0/8", "::1/128"].map(parseCidr).filter((cidr) => cidr !== null);
  const to = (...addresses: string[]) => ({
    allowed: everywhere,
    resolve: async () => addresses,
  });

  test.each([
    ["an IPv4 address where nobody listens", ["127.0.0.2", "127.0.0.1"]],
    ["an IPv6 address where nobody listens", ["::1", "127.0.0.1"]],
    ["three of them", ["127.0.0.2", "127.0.0.3", "::1", "127.0.0.1"]],
  ])("after %s the next one", async (_, addresses) => {
    expect(await post(receiver.url, to(...addresses))).toMatchObject({ httpStatus: 200 });
    expect(receiver.requests).toHaveLength(1);
  });

  test("after one that does not answer for 2 s the next one", async () => {
    const full = await startFullListener("127.0.0.2", receiver.port);
    const sent = await post(receiver.url, to("127.0.0.2", "127.0.0.1"));
    expect(sent).toMatchObject({ httpStatus: 200 });
    expect(sent.durationMs).toBeGreaterThanOrEqual(1_900);
    full.stop();
  });

  test("four are tried and a fifth is not", async () => {
    const dead = ["127.0.0.2", "127.0.0.3", "127.0.0.4"];
    expect(await post(receiver.url, to(...dead, "127.0.0.1"))).toMatchObject({ httpStatus: 200 });
    const five = await post(receiver.url, to(...dead, "127.0.0.5", "127.0.0.1"));
    expect(five).toMatchObject({ kind: "unreachable", error: "connection: ECONNREFUSED" });
  });

  test("a non-public one among them refuses all", async () => {
    const sent = await post(receiver.url, to("127.0.0.1", "fe80::1"));
    expect(sent).toMatchObject({ kind: "refused" });
    expect(receiver.requests).toEqual([]);
  });

  test("one that has taken the connection is the last: the request may have arrived", async () => {
    receiver.behave((_, response) => void response.socket?.destroy());
    const sent = await post(receiver.url, to("127.0.0.1", "127.0.0.1"));
    expect(sent).toMatchObject({ kind: "unreachable" });
    expect(receiver.requests).toHaveLength(1);
  });
});

describe("name servers", () => {
  test("are asked on every send: an answer is kept for a second at most, whatever its time to live", async () => {
    const asked: string[] = [];
    const answer = (type: string, address: string) => async (host: string) => {
      asked.push(`${host} ${type}`);
      return [address];
    };
    const ask = { v4: answer("A", "192.0.2.1"), v6: answer("AAAA", "2001:db8::1") };
    const resolve = createNameResolver({ ask });
    const both = await Promise.all([resolve("x.test"), resolve("x.test")]);
    const expected = ["192.0.2.1", "2001:db8::1"];
    expect(both).toEqual([expected, expected]);
    expect(asked).toEqual(["x.test A", "x.test AAAA"]);
    await eventually(async () => (await resolve("x.test")) && asked.length === 4, "asked again");
  });

  test("of which one type alone answers give what there is", async () => {
    const none = async () => {
      throw new Error("ENODATA");
    };
    const resolve = createNameResolver({ ask: { v4: none, v6: async () => ["2001:db8::1"] } });
    expect(await resolve("six.test")).toEqual(["2001:db8::1"]);
  });

  test("the connection goes to the address that was judged, whatever the name server says next", async () => {
    const names = await startNameServer(["127.0.0.1", "10.0.0.1", "127.0.0.1"]);
    const kept = transport({ resolve: names.resolve });
    const url = receiver.url.replace("a.localhost", "b.localhost");
    expect(await kept.post(url, {}, "{}")).toMatchObject({ kind: "answered" });
    expect(await kept.post(url, {}, "{}")).toMatchObject({ kind: "refused" });
    expect(await kept.post(url, {}, "{}")).toMatchObject({ kind: "answered" });
    expect(names.questions()).toBe(3);
    expect(receiver.requests).toHaveLength(2);
    names.stop();
  });

  test("a name that does not exist is a connection error", async () => {
    const sent = await post("https://nowhere.invalid/");
    expect(sent).toMatchObject({ kind: "unreachable" });
    expect(sent).toHaveProperty("error", expect.stringMatching(/^dns: /));
  });

  test("a name server that does not answer is a timeout", async () => {
    const names = await startNameServer([]);
    expectTimeout(await post("https://hanging.test/", { resolve: names.resolve, ...SHORT }));
    names.stop();
  });
});

describe("document 3, Limits: the time is for the whole request", () => {
  const servers: Server[] = [];
  const sockets = new Set<Socket>();

  async function rawServer(onConnection: (socket: Socket) => void): Promise<string> {
    const server = createServer((socket) => {
      sockets.add(socket);
      socket.on("error", () => {});
      onConnection(socket);
    });
    servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return `https://a.localhost:${(server.address() as AddressInfo).port}/`;
  }

  afterAll(() => {
    for (const socket of sockets) socket.destroy();
    for (const server of servers) server.close();
  });

  test("a receiver that never answers", async () => {
    receiver.behave(() => {});
    expectTimeout(await post(receiver.url, SHORT));
  });

  test("the time is 10 seconds", async () => {
    const sent = await tenSeconds;
    expect(sent).toMatchObject({ kind: "unreachable", error: "timeout" });
    expect(sent.durationMs).toBeGreaterThanOrEqual(10_000 - 5);
  }, 300_000);

  test("a TLS handshake that hangs", async () => {
    expectTimeout(await post(await rawServer(() => {}), SHORT));
  });

  test("a TCP connection that hangs", async () => {
    const full = await startFullListener();
    expectTimeout(await post(`https://a.localhost:${full.port}/`, SHORT));
    full.stop();
  });

  test("a status line that drips", async () => {
    receiver.behave((_, response) => drip(response.socket, "HTTP/1.1 200 ", "O"));
    expectTimeout(await post(receiver.url, SHORT));
  });

  test("the status line is the answer, though the header lines behind it drip", async () => {
    receiver.behave((_, response) => drip(response.socket, "HTTP/1.1 200 OK\r\n", "x-more: 1\r\n"));
    expect(await post(receiver.url, SHORT)).toMatchObject({ kind: "answered", httpStatus: 200 });
  });

  test.each([200, 404])(
    "the status line %d is the answer, though the body drips",
    async (httpStatus) => {
      receiver.behave((_, response) => {
        response.writeHead(httpStatus);
        drip(response, "{", " ");
      });
      const sent = await post(receiver.url, SHORT);
      expect(sent).toMatchObject({ kind: "answered", httpStatus });
      expect(sent.responseSnippet).toStartWith("{ ");
    },
  );
});

describe("answers that are none", () => {
  test.each([
    ["garbage", "hello there\r\n\r\n"],
    ["a status line without end", `HTTP/1.1 200 ${"y".repeat(400_000)}`],
  ])("%s is a connection error", async (_, text) => {
    receiver.behave((__, response) => void response.socket?.end(text));
    expect(await post(receiver.url)).toMatchObject({ kind: "unreachable" });
  });

  test.each([204, 200, 404])(
    "the status line %d is the answer, though its body breaks off",
    async (httpStatus) => {
      receiver.behave((_, response) => {
        response.writeHead(httpStatus, { "content-length": "100" });
        response.write("some", () => response.socket?.destroy());
      });
      expect(await post(receiver.url)).toMatchObject({ kind: "answered", httpStatus });
    },
  );

  test("the status line is the answer, though its body is no valid HTTP", async () => {
    receiver.behave((_, response) => {
      const head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
      response.socket?.write(`${head}not a size\r\n`);
    });
    expect(await post(receiver.url)).toMatchObject({ kind: "answered", httpStatus: 200 });
  });

  test("a protocol switch is no answer", async () => {
    receiver.behave((_, response) => {
      const head = "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n";
      response.socket?.write(head);
    });
    expect(await post(receiver.url)).toMatchObject({ kind: "answered", httpStatus: 101 });
  });

  test("a refused connection is a connection error", async () => {
    const gone = await startReceiver({ keys: await AUTHORITY.issue(["a.localhost"]) });
    await gone.stop();
    const sent = await post(`https://a.localhost:${gone.port}/`);
    expect(sent).toHaveProperty("error", "connection: ECONNREFUSED");
  });
});

test("an endless body is cut off at 16 KiB and judged by its status", async () => {
  let written = 0;
  receiver.behave((_, response) => {
    response.writeHead(500);
    const pump = () => {
      written += 8_192;
      if (response.writable) response.write("x".repeat(8_192), () => setImmediate(pump));
    };
    pump();
  });
  const sent = await post(receiver.url);
  expect(sent).toMatchObject({ kind: "answered", httpStatus: 500 });
  expect(sent.responseSnippet).toBe("x".repeat(1_024));
  expect(written).toBeLessThan(64 * 1024 * 1024);
});

function expectTimeout(sent: Awaited<ReturnType<Transport["post"]>>): void {
  expect(sent).toMatchObject({ kind: "unreachable", error: "timeout" });
  expect(sent.durationMs).toBeGreaterThanOrEqual(LIMIT_MS - 5);
}

/**
 * A listener that never accepts and whose backlog is full: the kernel drops every further SYN, so a connection attempt
 * neither succeeds nor fails. Its event loop stands still, in a process of its own.
 */
async function startFullListener(host = "127.0.0.1", listenPort = 0) {
  const program = `
    const server = require("node:net").createServer();
    server.listen({ port: ${listenPort}, host: "${host}", backlog: 1 }, () => {
      require("node:fs").writeSync(1, String(server.address().port));
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
    });`;
  const child = spawn("node", ["-e", program], { stdio: ["ignore", "pipe", "inherit"] });
  const port = await new Promise<number>((resolve) => {
    child.stdout.once("data", (text: Buffer) => resolve(Number(String(text).trim())));
  });
  const sockets: Socket[] = [];
  let isFull = false;
  while (!isFull && sockets.length < FILLING_LIMIT) {
    const socket = connect(port, host);
    socket.on("error", () => {});
    sockets.push(socket);
    const connected = new Promise<boolean>((resolve) =>
      socket.once("connect", () => resolve(true)),
    );
    const isIn = () => Promise.race([connected, Bun.sleep(300).then(() => false)]);
    // Twice: on a busy machine the time may be over before anybody has looked at the connection.
    isFull = !((await isIn()) || (await isIn()));
  }
  if (!isFull) throw new Error("the backlog does not fill");
  return {
    port,
    stop() {
      for (const socket of sockets) socket.destroy();
      child.kill("SIGKILL");
    },
  };
}

/** Writes something every 50 ms for ever: never silent, never done. */
function drip(
  to: { write: (text: string) => unknown; destroyed: boolean } | null,
  first: string,
  next: string,
): void {
  to?.write(first);
  const timer = setInterval(() => {
    if (!to || to.destroyed) clearInterval(timer);
    else to.write(next);
  }, 50);
}

/** A name server that gives one A record after the other, and no answer when it has none left. */
async function startNameServer(answers: string[]) {
  const socket = createSocket("udp4");
  let asked = 0;
  socket.on("message", (question, from) => {
    const address = answers[asked];
    if (address === undefined) return;
    asked += 1;
    const end = question.indexOf(0, 12) + 5;
    const head = Buffer.from(question.subarray(0, end));
    head.writeUInt16BE(0x8180, 2);
    head.writeUInt16BE(1, 6);
    head.writeUInt32BE(0, 8);
    const record = Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4]);
    const bytes = Buffer.from(address.split(".").map(Number));
    socket.send(Buffer.concat([head, record, bytes]), from.port, from.address);
  });
  await new Promise<void>((resolve) => socket.bind(0, "127.0.0.1", resolve));
  const resolver = new Resolver();
  resolver.setServers([`127.0.0.1:${socket.address().port}`]);
  return {
    resolve: (host: string) => resolver.resolve4(host),
    questions: () => asked,
    stop: () => socket.close(),
  };
}
