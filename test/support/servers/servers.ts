/**
 * Real servers for tests: containers when a Docker engine answers, else a private `redis-server` and the embedded
 * ClickHouse.
 */
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient } from "@clickhouse/client";
import { GenericContainer, Wait } from "testcontainers";
import { createLog } from "#core/platform/process/log.ts";
import { connectRedis, type Redis } from "#core/platform/redis/client.ts";
import { eventually } from "#test/support/eventually.ts";
import { startClickhouseHttp } from "./clickhouse-http.ts";
import { asReader, createReader, readerUser } from "./clickhouse-reader.ts";
import { DURABLE, hasLoaded, redisCommand } from "./redis-server.ts";
import { CLICKHOUSE_IMAGE, REDIS_IMAGE } from "./server-images.ts";

/** Where an engine answers unless `DOCKER_HOST` names another one. */
const DOCKER_SOCKET = "/var/run/docker.sock";

export interface TestServer {
  /** What `connectRedis` or `CLICKHOUSE_URL` takes; null = the embedded ClickHouse. */
  readonly address: string | null;
  readonly stop: () => Promise<void>;
}

export function dockerAnswers(): boolean {
  return Boolean(process.env["DOCKER_HOST"]) || existsSync(DOCKER_SOCKET);
}

/** A Redis of its own, append-only with `appendfsync always`, as the product runs it. */
export async function startTestRedis(): Promise<TestServer & { readonly address: string }> {
  return dockerAnswers() ? startRedisContainer() : startLocalRedis();
}

async function startRedisContainer() {
  const container = await new GenericContainer(REDIS_IMAGE)
    .withCommand(["redis-server", ...DURABLE])
    .withExposedPorts(6379)
    .withWaitStrategy(Wait.forLogMessage("Ready to accept connections"))
    .start();
  const address = `redis://${container.getHost()}:${container.getMappedPort(6379)}`;
  return { address, stop: async () => void (await container.stop()) };
}

/** An empty server, and a connection to it. */
export async function openTestRedis(): Promise<{ redis: Redis; stop: () => Promise<void> }> {
  const { address, stop } = await startTestRedis();
  const redis = await connectRedis(address, createLog("error"));
  return {
    redis,
    async stop() {
      redis.destroy();
      await stop();
    },
  };
}

export interface RestartableRedis extends TestServer {
  readonly address: string;
  /** SIGKILL; waits until it is gone. */
  readonly kill: () => Promise<void>;
  /** Starts it again on the same folder and address. */
  readonly restart: () => Promise<void>;
}

/** A local Redis that a test may kill and start again on the same data. */
export async function startRestartableRedis(): Promise<RestartableRedis> {
  const folder = await mkdtemp(join(tmpdir(), "waybill-test-"));
  let server = await launchRedis(folder);
  return {
    address: server.address,
    kill: () => server.end("SIGKILL"),
    async restart() {
      await rm(server.address, { force: true });
      server = await launchRedis(folder);
    },
    async stop() {
      await server.end("SIGTERM");
      await rm(folder, { recursive: true, force: true });
    },
  };
}

async function startLocalRedis() {
  const folder = await mkdtemp(join(tmpdir(), "waybill-test-"));
  const server = await launchRedis(folder);
  return {
    address: server.address,
    async stop() {
      await server.end("SIGTERM");
      await rm(folder, { recursive: true, force: true });
    },
  };
}

async function launchRedis(folder: string) {
  const address = join(folder, "redis.sock");
  const own = ["--port", "0", "--unixsocket", address, "--logfile", join(folder, "redis.log")];
  const [program, ...args] = redisCommand(folder, [...own, ...DURABLE]);
  const child = spawn(program, args, { stdio: "ignore" });
  const ended = new Promise((resolve) => child.once("exit", resolve));
  await eventually(() => hasLoaded({ path: address }), "the test redis-server has loaded its data");
  return {
    address,
    async end(signal: "SIGTERM" | "SIGKILL") {
      child.kill(signal);
      await ended;
    },
  };
}

/** How the product reaches its ClickHouse: its own engine, or a server by `CLICKHOUSE_URL`. */
export const CLICKHOUSE_KINDS = ["embedded", "server"] as const;
export type ClickhouseKind = (typeof CLICKHOUSE_KINDS)[number];

/**
 * For tests of tables and questions. Where no container engine answers, a server is the embedded engine behind HTTP, whose tables and
 * answers are the same: only tests of the way there try both (`CLICKHOUSE_KINDS`).
 */
export const CLICKHOUSES: readonly ClickhouseKind[] = dockerAnswers()
  ? CLICKHOUSE_KINDS
  : ["embedded"];

export interface TestClickhouseServer extends TestServer {
  /** As the user that may only read; null = the embedded ClickHouse. */
  readonly readAddress: string | null;
}

/** A server is a container, or the embedded engine behind HTTP (`clickhouse-http.ts` says what that proves). */
export async function startTestClickhouse(kind: ClickhouseKind): Promise<TestClickhouseServer> {
  if (kind === "embedded") return { address: null, readAddress: null, stop: async () => {} };
  if (dockerAnswers()) return startClickhouseContainer();
  const server = await startClickhouseHttp([readerUser()]);
  return { ...server, readAddress: asReader(server.address) };
}

async function startClickhouseContainer(): Promise<TestClickhouseServer> {
  const container = await new GenericContainer(CLICKHOUSE_IMAGE)
    .withEnvironment({
      CLICKHOUSE_USER: "waybill",
      CLICKHOUSE_PASSWORD: "waybill",
      CLICKHOUSE_DEFAULT_ACCESS_MANAGEMENT: "1",
    })
    .withExposedPorts(8123)
    .withWaitStrategy(Wait.forHttp("/ping", 8123))
    .start();
  const address = `http://waybill:waybill@${container.getHost()}:${container.getMappedPort(8123)}/default`;
  const admin = createClient({ url: address });
  await createReader(admin);
  await admin.close();
  return {
    address,
    readAddress: asReader(address),
    stop: async () => void (await container.stop()),
  };
}
