/** The parties that tests play outlive a role that is killed while it speaks to them. */
import { expect, test } from "bun:test";
import { connect, type Socket } from "node:net";
import { connect as connectSecurely } from "node:tls";
import { startNationalCarrier } from "#demo/national-carrier.ts";
import { eventually } from "#test/support/eventually.ts";
import { startClickhouseHttp } from "#test/support/servers/clickhouse-http.ts";
import { startMailServer } from "#test/support/servers/mail-server.ts";
import { AUTHORITY, startReceiver } from "#test/support/servers/receiver.ts";

const KILLS = 5;
const HALF_A_REQUEST =
  "HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{";

const portOf = (url: string) => Number(new URL(url).port);

/** The kernel of a killed process resets its connections where data has come that it did not read. */
function killed(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    socket.once("close", () => resolve());
    socket.on("error", () => {});
    socket.resetAndDestroy();
  });
}

const opened = (socket: Socket, event: string) =>
  new Promise<Socket>((resolve, reject) => {
    socket.once(event, () => resolve(socket));
    socket.once("error", reject);
  });

/** Sends half a request and is killed, some times over. */
async function killSenders(url: string): Promise<void> {
  const { pathname } = new URL(url);
  for (let kill = 0; kill < KILLS; kill += 1) {
    const socket = url.startsWith("https:")
      ? await opened(
          connectSecurely({ port: portOf(url), rejectUnauthorized: false }),
          "secureConnect",
        )
      : await opened(connect(portOf(url), "127.0.0.1"), "connect");
    await new Promise((resolve) => socket.write(`POST ${pathname} ${HALF_A_REQUEST}`, resolve));
    await killed(socket);
  }
}

test("the mail server takes the next mail after a sender was killed in the middle of one", async () => {
  const server = await startMailServer();
  const commands = ["EHLO a", "MAIL FROM:<a@b.test>", "RCPT TO:<c@d.test>", "DATA"];
  const open = async () => {
    const socket = connect(portOf(server.url), "127.0.0.1");
    await opened(socket, "data");
    for (const command of commands) {
      const answered = opened(socket, "data");
      socket.write(`${command}\r\n`);
      await answered;
    }
    return socket;
  };
  for (let kill = 0; kill < KILLS; kill += 1) {
    const socket = await open();
    await new Promise((resolve) => socket.write("Subject: half\r\n\r\nhalf", resolve));
    await killed(socket);
  }
  const sender = await open();
  sender.write("Subject: whole\r\n\r\nwhole\r\n.\r\n");
  await eventually(() => server.received.length > 0, "the mail has been received");
  expect(server.received.map(({ subject }) => subject)).toEqual(["whole"]);
  sender.destroy();
  await server.stop();
});

test("a merchant's receiver takes the next webhook after a sender was killed in the middle of one", async () => {
  const receiver = await startReceiver();
  await killSenders(receiver.url);
  const { status } = await fetch(receiver.url, {
    method: "POST",
    body: "{}",
    tls: { ca: AUTHORITY.pem },
  });
  expect(status).toBe(200);
  expect(receiver.requests).toHaveLength(1);
  await receiver.stop();
});

test("the national carrier answers after a caller was killed in the middle of an order", async () => {
  const carrier = startNationalCarrier();
  await killSenders(`${carrier.url}/labels`);
  expect((await fetch(`${carrier.url}/nowhere`)).status).toBe(404);
  expect(carrier.orders).toEqual([]);
  await carrier.stop();
});

test("the ClickHouse server answers after a caller was killed in the middle of a statement", async () => {
  const server = await startClickhouseHttp();
  await killSenders(server.address ?? "");
  expect(await (await fetch(new URL("/ping", server.address ?? ""))).text()).toBe("Ok.\n");
  await server.stop();
});
