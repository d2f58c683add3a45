/** A merchant's receiver: a real HTTPS server whose certificate a test authority has signed, with answers as wanted. */
import { rmSync } from "node:fs";
import { mkdtemp, writeFile } from "node:fs/promises";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer } from "node:https";
import { type AddressInfo, isIP } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TLSSocket } from "node:tls";
import { generate } from "selfsigned";

const DAY_MS = 86_400_000;

interface KeyPair {
  readonly private: string;
  readonly cert: string;
}

/**
 * Until every webhook is delivered. An attempt that a receiver in a busy test process answers too late is made again after 48 to
 * 72 s.
 */
export const DELIVERED_LIMIT_MS = 120_000;

async function createAuthority() {
  const authority = await generate([{ name: "commonName", value: "Waybill test authority" }], {
    algorithm: "sha256",
    keyType: "ec",
    extensions: [
      { name: "basicConstraints", cA: true, critical: true },
      { name: "keyUsage", keyCertSign: true, critical: true },
    ],
  });
  const folder = await mkdtemp(join(tmpdir(), "waybill-ca-"));
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, "ca.pem");
  await writeFile(file, authority.cert);
  return {
    file,
    pem: authority.cert,
    issue: (names: readonly string[], validUntilMs = Date.now() + DAY_MS) =>
      certificate(names, validUntilMs, { key: authority.private, cert: authority.cert }),
  };
}

/** The certificate authority of this process, which ends with it. `file` is what WEBHOOK_CA_FILE takes. */
export const AUTHORITY = await createAuthority();

/** What lets a product send to receivers of this machine. */
export const WEBHOOK_ENV = {
  WEBHOOK_ALLOWED_CIDRS: "127.0.0.0/8",
  WEBHOOK_CA_FILE: AUTHORITY.file,
} as const;

/** Signed by nobody but itself where no authority is given. */
export function certificate(
  names: readonly string[],
  validUntilMs = Date.now() + DAY_MS,
  ca?: { readonly key: string; readonly cert: string },
): Promise<KeyPair> {
  return generate([{ name: "commonName", value: names[0] ?? "none" }], {
    algorithm: "sha256",
    keyType: "ec",
    notBeforeDate: new Date(validUntilMs - 30 * DAY_MS),
    notAfterDate: new Date(validUntilMs),
    extensions: [{ name: "subjectAltName", altNames: names.map(altName) }],
    ...(ca && { ca }),
  });
}

function altName(name: string) {
  return isIP(name) === 0 ? { type: 2 as const, value: name } : { type: 7 as const, ip: name };
}

export interface ReceivedRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage["headers"];
  /** Exactly as transmitted. */
  readonly raw: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into whatever was sent
  readonly body: any;
  /** The name asked for in the TLS handshake. */
  readonly serverName: string | false | null;
  readonly atMs: number;
}

/**
 * Attempts by event and number. Each is made once; an event has a second one only after a failure of the first, such as a receiver in a
 * busy test process that answers too late (document 3, "Delivery").
 */
export function attemptsOf(requests: readonly ReceivedRequest[]): string[] {
  return requests.map(({ body, headers }) => `${body.id} ${headers["x-service-delivery-attempt"]}`);
}

/** What a receiver does with a request. A number is answered as that status with an empty body. */
export type Behaviour =
  | number
  | ((request: ReceivedRequest, response: ServerResponse) => void | Promise<void>);

export interface Receiver {
  readonly url: string;
  readonly port: number;
  readonly requests: ReceivedRequest[];
  /** TLS connections opened so far. */
  readonly connections: () => number;
  /** Those that are open now. */
  readonly openConnections: () => number;
  /** Requests being answered at this moment, and the most there ever were. */
  readonly open: () => number;
  readonly mostOpen: () => number;
  readonly behave: (behaviour: Behaviour) => void;
  readonly stop: () => Promise<void>;
}

export interface ReceiverOptions {
  /** By default those of `localhost`, from the authority. */
  readonly keys?: KeyPair;
  readonly name?: string;
  readonly path?: string;
  readonly host?: string;
}

/**
 * Listens on a free port, of loopback unless another address is named; `localhost` and every name under it lead there.
 */
export async function startReceiver(options: ReceiverOptions = {}): Promise<Receiver> {
  const { name = "localhost", path = "/hook", host = "127.0.0.1" } = options;
  const keys = options.keys ?? (await AUTHORITY.issue(["localhost"]));
  const requests: ReceivedRequest[] = [];
  let behaviour: Behaviour = 200;
  let connections = 0;
  let openConnections = 0;
  let open = 0;
  let mostOpen = 0;
  const server = createServer({ key: keys.private, cert: keys.cert }, (message, response) => {
    open += 1;
    mostOpen = Math.max(mostOpen, open);
    response.once("close", () => {
      open -= 1;
    });
    void receive(message).then((request) => {
      if (request === null) return;
      requests.push(request);
      if (typeof behaviour === "number") response.writeHead(behaviour).end();
      else void behaviour(request, response);
    });
  });
  server.on("secureConnection", (socket) => {
    connections += 1;
    openConnections += 1;
    socket.once("close", () => {
      openConnections -= 1;
    });
  });
  server.on("tlsClientError", () => {});
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `https://${name}:${port}${path}`,
    port,
    requests,
    connections: () => connections,
    openConnections: () => openConnections,
    open: () => open,
    mostOpen: () => mostOpen,
    behave(next) {
      behaviour = next;
    },
    stop() {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

/** @returns null where the sender is killed before its request is whole */
async function receive(message: IncomingMessage): Promise<ReceivedRequest | null> {
  const chunks: Buffer[] = [];
  try {
    for await (const chunk of message) chunks.push(chunk as Buffer);
  } catch {
    return null;
  }
  const raw = Buffer.concat(chunks).toString("utf8");
  return {
    method: message.method ?? "",
    path: message.url ?? "",
    headers: message.headers,
    raw,
    body: raw === "" ? null : JSON.parse(raw),
    serverName: (message.socket as TLSSocket & { servername?: string }).servername ?? null,
    atMs: Date.now(),
  };
}
