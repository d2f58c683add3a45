/**
 * How long a command of a cluster's client waits for the connection to its master. While the connection is being made for the first
 * time the client lets commands wait for it: those to an unavailable shard would take seconds to fail, each of them, and hold up
 * whatever was asked for together with them.
 */
import { ClientOfflineError } from "redis";
import { limit } from "#core/platform/schema/limit.ts";

/** From the first command that finds a master without a connection; until it has one, further commands fail at once. */
export const CONNECT_WAIT_MS = limit(
  500,
  "wait of a cluster's command for the connection to its master",
  "it fails as unavailable, and those after it at once, until the connection is there",
);

interface Node<Client> {
  readonly client?: Client;
  readonly connectPromise?: Promise<Client> | undefined;
}

interface Slots<Client, Of extends Node<Client>> {
  nodeClient: (node: Of) => Promise<Client>;
}

export function limitConnectWaits<Client, Of extends Node<Client>>(slots: Slots<Client, Of>): void {
  const connect = slots.nodeClient.bind(slots);
  const sinceMs = new WeakMap<Of, number>();

  async function connectInTime(node: Of): Promise<Client> {
    const nowMs = performance.now();
    const untilMs = (sinceMs.get(node) ?? nowMs) + CONNECT_WAIT_MS;
    if (!sinceMs.has(node)) sinceMs.set(node, nowMs);
    const connecting = connect(node).then((client) => {
      sinceMs.delete(node);
      return client;
    });
    return within(connecting, Math.max(0, untilMs - nowMs));
  }

  slots.nodeClient = (node) =>
    node.client && !node.connectPromise ? connect(node) : connectInTime(node);
}

async function within<Client>(connecting: Promise<Client>, ms: number): Promise<Client> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(new ClientOfflineError()), ms);
  try {
    return await Promise.race([connecting, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}
