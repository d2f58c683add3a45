/**
 * TLS with client certificates. Bun's HTTP server does not tell a request's client certificate, its TLS sockets do: so
 * TLS ends here, each connection goes on to the HTTP server over the loopback network, and the port it comes from
 * there tells the request whose connection it is.
 */
import { X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { createConnection } from "node:net";
import { createServer, type TLSSocket } from "node:tls";
import type { IngestTls } from "#core/config.ts";
import {
  type ClientCertificate,
  canonicalSubject,
  plainFingerprint,
} from "#core/domain/courier-events/client-certificate.ts";
import type { Peer } from "#core/http/peer.ts";

const CONNECTIONS_LIMIT = 10_000;
const HANDSHAKE_LIMIT_MS = 10_000;
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

/** @throws when a file cannot be read or the port is in use */
export async function startTlsFront(
  { certFile, keyFile, clientCaFile }: IngestTls,
  listen: { readonly host: string; readonly port: number },
  httpPort: number,
): Promise<TlsFront> {
  const peers = new Map<number, Peer>();
  const sockets = new Set<TLSSocket>();
  const server = createServer(
    {
      cert: await readFile(certFile),
      key: await readFile(keyFile),
      minVersion: "TLSv1.2",
      handshakeTimeout: HANDSHAKE_LIMIT_MS,
      // Who must show one is known only once the token is read, so a missing one does not end the handshake.
      ...(clientCaFile !== null && { ca: await readFile(clientCaFile), requestCert: true }),
      rejectUnauthorized: false,
    },
    (socket) => passOn(socket, httpPort, peers, sockets),
  );
  server.maxConnections = CONNECTIONS_LIMIT;
  server.on("tlsClientError", () => {
    // A failed handshake is the caller's affair, and scanners make many.
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(listen.port, listen.host, resolve);
  });
  const address = server.address();
  return {
    port: typeof address === "object" ? (address?.port ?? 0) : 0,
    connectionFrom: (port) => peers.get(port) ?? null,
    close: () => void server.close(),
    end() {
      for (const socket of sockets) socket.destroy();
    },
  };
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
    peers.delete(port);
    socket.destroy();
    inner.destroy();
  };
  socket.on("error", finish).on("close", finish);
  inner.on("error", finish).on("close", finish);
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
