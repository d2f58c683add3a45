/**
 * A ClickHouse server where no container engine answers: the HTTP interface in front of the embedded engine, in a process of
 * its own that can be killed and started again on the same folder and port.
 *
 * What it proves: everything that goes through `@clickhouse/client` over a socket (addresses, user and password, bound
 * parameters, settings in the query string, request and response compression, error codes in headers, time limits, refused
 * connections) with the answers of the real engine, whose SQL and tables are those of a server.
 * What it does not prove: that a server's own HTTP handler agrees with our reading of its documentation, users and grants
 * (the embedded engine has none: a name, a password and forced settings stand for them here), replication, answers that are
 * streamed while they are computed, and errors in the middle of a stream. With a container engine the same tests run against
 * the real image (`servers.ts`).
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync, gzipSync } from "node:zlib";
import { Session } from "chdb";
import { ADDRESS_BYTES } from "#analytics/engine/engine-limits.ts";
import {
  answerException,
  answerOf,
  type Exception,
  exceptionOf,
  execute,
  readStatement,
  type Statement,
} from "#analytics/engine/http-interface.ts";
import { type KeptSessions, keepSessions } from "#analytics/engine/kept-sessions.ts";
import { eventually } from "#test/support/eventually.ts";
import { freePort } from "./free-port.ts";

/** Who may ask, and which settings nobody changes for them. */
export interface ServerUser {
  readonly name: string;
  readonly password: string;
  readonly settings?: Readonly<Record<string, string>>;
  /** System tables beyond the catalogue are refused, as a server does where nothing but tables is granted. */
  readonly isGrantedTablesOnly?: boolean;
}

export interface ClickhouseServer {
  /** `http://user:password@host:port/default` of the first user. */
  readonly address: string;
  readonly addressOf: (user: ServerUser) => string;
  /** SIGKILL; waits until it is gone. */
  readonly kill: () => Promise<void>;
  readonly restart: () => Promise<void>;
  readonly stop: () => Promise<void>;
}

const ADMIN: ServerUser = { name: "waybill", password: "way&bill:1" };

/**
 * @param configFile of a server in a cluster, which runs `ON CLUSTER` statements by itself, as each server of a cluster does. The embedded
 * engine has no port for others to fetch rows from, so its replicas take no rows: without a Keeper in this configuration it keeps
 * replicated tables as plain ones, and with one they are replicas that can be looked at.
 */
export async function startClickhouseHttp(
  others: readonly ServerUser[] = [],
  configFile = "",
): Promise<ClickhouseServer> {
  const folder = await mkdtemp(join(tmpdir(), "waybill-clickhouse-http-"));
  const port = await freePort();
  let child = await launch();

  async function launch() {
    const users = JSON.stringify([ADMIN, ...others]);
    const args = [folder, String(port), users, configFile];
    const program = [process.execPath, `--max-http-header-size=${ADDRESS_BYTES}`, import.meta.path];
    const started = Bun.spawn([...program, ...args], {
      // Standard input is what tells the server that its test has ended.
      stdio: ["pipe", "ignore", "inherit"],
    });
    const isUp = () =>
      fetch(`http://127.0.0.1:${port}/ping`).then(
        ({ ok }) => ok,
        () => false,
      );
    await eventually(isUp, "the ClickHouse server answers");
    return started;
  }

  async function kill(): Promise<void> {
    child.kill("SIGKILL");
    await child.exited;
  }

  const addressOf = ({ name, password }: ServerUser) =>
    `http://${name}:${encodeURIComponent(password)}@127.0.0.1:${port}/default`;
  return {
    address: addressOf(ADMIN),
    addressOf,
    kill,
    async restart() {
      child = await launch();
    },
    async stop() {
      await kill();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** System tables that every user of a server may read. */
const CATALOGUE = new Set(["columns", "functions", "numbers", "one", "settings", "tables"]);

/** @throws {Exception} */
function refuseSystemTables(statement: string): void {
  const named = [...statement.matchAll(/\bsystem\.(\w+)/g)].map(([, name = ""]) => name);
  const [refused] = named.filter((name) => !CATALOGUE.has(name));
  if (refused === undefined) return;
  throw exception(497, "ACCESS_DENIED", `Not enough privileges: SELECT ON system.${refused}`);
}

/** @throws {Exception} */
async function understand(request: Request, users: readonly ServerUser[]): Promise<Statement> {
  const user = authenticate(request, users);
  const statement = await readStatement(unzipped(request));
  if (user.isGrantedTablesOnly) refuseSystemTables(statement.text);
  const [changed] = Object.entries(statement.settings);
  const isReadOnly = user.settings?.["readonly"] === "1";
  if (isReadOnly && changed && user.settings?.[changed[0]] !== changed[1]) {
    throw exception(164, "READONLY", `Cannot modify '${changed[0]}' setting in readonly mode.`);
  }
  return { ...statement, settings: { ...statement.settings, ...user.settings } };
}

function authenticate({ headers, url }: Request, users: readonly ServerUser[]): ServerUser {
  const params = new URL(url).searchParams;
  const basic = /^Basic (.+)$/.exec(headers.get("authorization") ?? "")?.[1] ?? "";
  const [basicName, basicPassword] = Buffer.from(basic, "base64").toString("utf8").split(/:(.*)/s);
  const name = headers.get("x-clickhouse-user") ?? (basicName || params.get("user")) ?? "default";
  const password = headers.get("x-clickhouse-key") ?? basicPassword ?? params.get("password") ?? "";
  const known = users.find((one) => one.name === name && one.password === password);
  if (known) return known;
  throw exception(516, "AUTHENTICATION_FAILED", `${name}: Authentication failed.`);
}

function unzipped(request: Request): Request {
  if (request.headers.get("content-encoding") !== "gzip") return request;
  const text = async () => gunzipSync(await request.arrayBuffer()).toString("utf8");
  return { url: request.url, method: request.method, text } as Request;
}

function exception(code: number, type: string, message: string): Exception {
  return { code: String(code), type, message };
}

/** How statements are run that go to every server of a cluster. */
type Place = "no cluster" | "cluster" | "cluster with Keeper";

async function placeOf(configFile: string): Promise<Place> {
  if (configFile === "") return "no cluster";
  const configuration = await Bun.file(configFile).text();
  return configuration.includes("<zookeeper>") ? "cluster with Keeper" : "cluster";
}

function asRunAt(place: Place, statement: string): string {
  if (place === "no cluster" || !/^\s*(?:--.*\n)*(?:CREATE|ALTER)\b/.test(statement))
    return statement;
  const own = statement.replace(/ ON CLUSTER '[^']*'/, "");
  if (place === "cluster with Keeper") return own;
  return own.replace(/ENGINE = Replicated(\w+)\('[^']*', '[^']*'(?:, )?/, "ENGINE = $1(");
}

async function answer(
  sessions: KeptSessions,
  place: Place,
  users: readonly ServerUser[],
  request: Request,
): Promise<Response> {
  const { pathname, searchParams } = new URL(request.url);
  if (pathname === "/ping") return new Response("Ok.\n");
  try {
    const statement = await understand(request, users);
    const result = await execute(sessions, { ...statement, text: asRunAt(place, statement.text) });
    const zipped =
      searchParams.get("enable_http_compression") === "1" &&
      (request.headers.get("accept-encoding") ?? "").includes("gzip");
    const response = answerOf(statement, zipped ? gzipSync(result) : result);
    if (zipped) response.headers.set("content-encoding", "gzip");
    return response;
  } catch (error) {
    return answerException(exceptionOf(error));
  }
}

if (import.meta.main) {
  const [folder = "", port = "", users = "[]", configFile = "", hostname = "127.0.0.1"] =
    Bun.argv.slice(2);
  const known = JSON.parse(users) as ServerUser[];
  const place = await placeOf(configFile);
  // Keeps the folder open between requests, which then have its configuration too.
  const connectionArgs = configFile === "" ? [] : [`--config-file=${configFile}`];
  new Session(folder, { connectionArgs }).query("SELECT 1");
  const sessions = keepSessions(folder);
  Bun.serve({
    port: Number(port),
    hostname,
    idleTimeout: 255,
    fetch: (request) => answer(sessions, place, known, request),
  });
  process.stdin.on("end", () => process.exit(0)).resume();
}
