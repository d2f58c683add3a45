/** A server of a ClickHouse cluster, behind something that passes requests on as a proxy does: what a test sees and changes. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startClickhouseHttp } from "./clickhouse-http.ts";

export const CLUSTER = "waybill";

/** Another server of the cluster is down: nothing listens on its port. */
const TOPOLOGY = `
  <tcp_port>9000</tcp_port>
  <remote_servers><${CLUSTER}><shard>
    <replica><host>127.0.0.1</host><port>9000</port></replica>
    <replica><host>127.0.0.1</host><port>1</port></replica>
  </shard></${CLUSTER}></remote_servers>`;
/** A Keeper inside the engine, for its own tests: it is empty at each start. */
const KEEPER = `
  <zookeeper>
    <implementation>testkeeper</implementation>
    <node><host>127.0.0.1</host><port>9181</port></node>
  </zookeeper>
  <macros><shard>1</shard><replica>clickhouse-1</replica></macros>`;

export interface ClusterServer {
  /** Of the proxy. */
  readonly address: string;
  /** Statements that went through it. */
  readonly statements: string[];
  /** The error of another server that it answers a statement with, which then reaches no server; null = it is passed on. */
  refuse: (statement: string) => string | null;
  readonly stop: () => Promise<void>;
}

/** @param withKeeper its tables are replicas in Keeper, and take no rows and no ALTER */
export async function startClusterServer(withKeeper = false): Promise<ClusterServer> {
  const folder = await mkdtemp(join(tmpdir(), "waybill-cluster-"));
  const configFile = join(folder, "config.xml");
  await writeFile(configFile, `<clickhouse>${TOPOLOGY}${withKeeper ? KEEPER : ""}</clickhouse>`);
  const server = await startClickhouseHttp([], configFile);
  const statements: string[] = [];
  const proxy = startProxy(async (request) => {
    const statement = await request.clone().text();
    statements.push(statement);
    const fault = cluster.refuse(statement);
    if (fault === null) return passOn(request, server.address);
    return new Response(
      `Code: 1. DB::Exception: There was an error on [clickhouse-2:9000]: (${fault}) (version 26.7.1.1)\n`,
      { status: 500, headers: { "x-clickhouse-exception-code": "1" } },
    );
  });
  const cluster: ClusterServer = {
    address: addressBehind(server.address, proxy.port),
    statements,
    refuse: () => null,
    async stop() {
      await proxy.stop(true);
      await server.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
  return cluster;
}

/** A proxy in front of ClickHouse servers. @param choose answers a request */
export function startProxy(choose: (request: Request) => Promise<Response>) {
  const proxy = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: choose });
  return { port: proxy.port as number, stop: (now: boolean) => proxy.stop(now) };
}

/** The same address, with the port of a proxy. */
export function addressBehind(address: string, port: number): string {
  return Object.assign(new URL(address), { port: String(port) }).href;
}

export async function passOn(request: Request, address: string): Promise<Response> {
  const url = Object.assign(new URL(request.url), { port: new URL(address).port });
  const { method, headers } = request;
  const body = method === "POST" ? await request.arrayBuffer() : undefined;
  const answer = await fetch(url, { method, headers, body, decompress: false } as RequestInit);
  return new Response(await answer.arrayBuffer(), {
    status: answer.status,
    headers: answer.headers,
  });
}
