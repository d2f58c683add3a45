/**
 * TLS with client certificates. Bun's HTTP server does not tell a request's client certificate, its TLS sockets do: so
 * TLS ends here, each connection goes on to the HTTP server over the loopback network, and the port it comes from
 * there tells the request whose connection it is.
 */
import { X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { createConnection } from "node:net";
import { createServer, type TLSSocket } from "node:tls";
import { ConfigFaults, type IngestTls } from "#core/platform/environment/config.ts";
import { type PortRefused, refusalOf } from "#core/platform/http/listener.ts";
import type { Peer } from "#core/platform/http/peer.ts";
import {
  type ClientCertificate,
  canonicalSubject,
  plainFingerprint,
} from "#core/platform/network/client-certificate.ts";
import { limit } from "#core/platform/schema/limit.ts";

const CONNECTIONS_LIMIT = limit(10_000, "TLS connections of an ingest process", "refused");
const HANDSHAKE_LIMIT_MS = limit(10_000, "a TLS handshake with ingest", "closed");
const LOOPBACK = "127.0.0.1";

export interface TlsFront {
  readonly port: number;
  /** The far end of the connection that comes from this loopback port; null when it is none of ours. */
  readonly connectionFrom: (port: number) => Peer | null;
  /** No new connections. */
  readonly close: () => void;
  /** Ends those that are left. */
  readonly end: () => void;
}

/** @throws {ConfigFaults} for files that cannot be used {PortRefused} */
export async function startTlsFront(
  tls: IngestTls,
  listen: PortRefused["terms"],
  httpPort: number,
): Promise<TlsFront> {
  const peers = new Map<number, Peer>();
  const sockets = new Set<TLSSocket>();
  const server = createTlsServer(await readFiles(tls), (socket) =>
    passOn(socket, httpPort, peers, sockets),
  );
  server.maxConnections = CONNECTIONS_LIMIT;
  server.on("tlsClientError", () => {
    // A failed handshake is the caller's affair, and scanners make many.
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", (error) => reject(refusalOf(listen, error)));
    server.listen(listen.port, listen.host, resolve);
  });
  const address = server.address();
  return {
    port: typeof address === "object" ? (address?.port ?? 0) : 0,
    connectionFrom: (port) => peers.get(port) ?? null,
    close: () => void server.close(),
    end() {
      for (const socket of sockets) socket.destroySoon();
    },
  };
}

interface TlsFiles {
  readonly cert: string;
  readonly key: string;
  /** Absent = no client certificate is asked for. */
  readonly ca?: string;
}

async function readFiles({ certFile, keyFile, clientCaFile }: IngestTls): Promise<TlsFiles> {
  const faults: string[] = [];
  const read = (variable: string, path: string) =>
    readFile(path, "utf8").catch((error: Error) => {
      faults.push(`${variable}: cannot be read: ${error.message}.`);
      return "";
    });
  const cert = await read("INGEST_TLS_CERT_FILE", certFile);
  const key = await read("INGEST_TLS_KEY_FILE", keyFile);
  const roots = clientCaFile && { ca: await read("INGEST_TLS_CLIENT_CA_FILE", clientCaFile) };
  if (faults.length > 0) throw new ConfigFaults(faults);
  return { cert, key, ...roots };
}

/** @throws {ConfigFaults} where the certificate or the key is none, or one is not the other's */
function createTlsServer(files: TlsFiles, onConnection: (socket: TLSSocket) => void) {
  try {
    return createServer(
      {
        ...files,
        minVersion: "TLSv1.2",
        handshakeTimeout: HANDSHAKE_LIMIT_MS,
        // Who must show one is known only once the token is read, so a missing one does not end the handshake.
        requestCert: files.ca !== undefined,
        rejectUnauthorized: false,
      },
      onConnection,
    );
  } catch (error) {
    throw new ConfigFaults([
      `INGEST_TLS_CERT_FILE, INGEST_TLS_KEY_FILE: no certificate with its key: ${(error as Error).message}.`,
    ]);
  }
}

function passOn(
  socket: TLSSocket,
  httpPort: number,
  peers: Map<number, Peer>,
  sockets: Set<TLSSocket>,
): void {
  const peer: Peer = { address: socket.remoteAddress ?? "", certificate: certificateOf(socket) };
  sockets.add(socket);
  let port = 0;
  const inner = createConnection(httpPort, LOOPBACK, () => {
    port = inner.localPort ?? 0;
    peers.set(port, peer);
    socket.pipe(inner).pipe(socket);
  });
  const finish = () => {
    sockets.delete(socket);
    inner.destroy();
  };
  socket.on("error", finish).on("close", finish);
  inner.on("error", () => inner.destroy());
  inner.on("close", () => {
    peers.delete(port);
    // What it has answered may not have left us yet.
    socket.destroySoon();
  });
}

/** Only what a configured root has signed counts. */
function certificateOf(socket: TLSSocket): ClientCertificate | null {
  if (!socket.authorized) return null;
  const { raw } = socket.getPeerCertificate();
  if (!raw) return null;
  const certificate = new X509Certificate(raw);
  return {
    fingerprint: plainFingerprint(certificate.fingerprint256),
    subject: canonicalSubject(certificate.subject),
  };
}
