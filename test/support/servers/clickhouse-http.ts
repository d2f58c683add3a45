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
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync, gzipSync } from "node:zlib";
import { Session } from "chdb";
import { createChdbConnection } from "chdb/connection";
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
    const started = Bun.spawn([process.execPath, import.meta.path, ...args], {
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

/** What a server takes as a URL (`http_max_uri_size`). */
const HEADER_LIMIT_BYTES = 1024 * 1024;

interface Exception {
  readonly code: string;
  readonly type: string;
  readonly message: string;
}

/** The table of a server's HTTP handler, as far as we meet it; whatever is not on it is 500. */
const STATUSES: Readonly<Record<string, number>> = {
  ARGUMENT_OUT_OF_BOUND: 400,
  BAD_ARGUMENTS: 400,
  CANNOT_PARSE_DATE: 400,
  CANNOT_PARSE_DATETIME: 400,
  CANNOT_PARSE_INPUT_ASSERTION_FAILED: 400,
  CANNOT_PARSE_NUMBER: 400,
  CANNOT_PARSE_TEXT: 400,
  INCORRECT_DATA: 400,
  SYNTAX_ERROR: 400,
  TYPE_MISMATCH: 400,
  VALUE_IS_OUT_OF_RANGE_OF_DATA_TYPE: 400,
  REQUIRED_PASSWORD: 401,
  AUTHENTICATION_FAILED: 403,
  UNKNOWN_DATABASE: 404,
  UNKNOWN_FUNCTION: 404,
  UNKNOWN_IDENTIFIER: 404,
  UNKNOWN_SETTING: 404,
  UNKNOWN_TABLE: 404,
  NOT_IMPLEMENTED: 501,
};

/** System tables that every user of a server may read. */
const CATALOGUE = new Set(["columns", "functions", "numbers", "one", "settings", "tables"]);

/** @throws {Exception} */
function refuseSystemTables(statement: string): void {
  const named = [...statement.matchAll(/\bsystem\.(\w+)/g)].map(([, name = ""]) => name);
  const [refused] = named.filter((name) => !CATALOGUE.has(name));
  if (refused === undefined) return;
  throw exception(497, "ACCESS_DENIED", `Not enough privileges: SELECT ON system.${refused}`);
}

/** Of the query string, and of HTTP alone. */
const NO_SETTINGS = new Set([
  ...["query", "query_id", "database", "default_format", "user", "password", "role"],
  ...["wait_end_of_query", "enable_http_compression", "buffer_size", "compress", "decompress"],
  ...["send_progress_in_http_headers", "http_headers_progress_interval_ms", "session_id"],
]);

interface Asked {
  readonly statement: string;
  readonly params: URLSearchParams;
  readonly user: ServerUser;
  readonly settings: Readonly<Record<string, string>>;
}

/** @throws {Exception} */
async function understand(request: IncomingMessage, users: readonly ServerUser[]): Promise<Asked> {
  const url = new URL(request.url ?? "/", "http://server");
  const user = authenticate(request, url.searchParams, users);
  const body = await textOf(request);
  const query = url.searchParams.get("query");
  const statement = query === null ? body : `${query}\n${body}`;
  const asked = [...url.searchParams].filter(
    ([name]) => !NO_SETTINGS.has(name) && !name.startsWith("param_"),
  );
  if (user.isGrantedTablesOnly) refuseSystemTables(statement);
  const [changed] = asked;
  const isReadOnly = user.settings?.["readonly"] === "1";
  if (isReadOnly && changed && user.settings?.[changed[0]] !== changed[1]) {
    throw exception(164, "READONLY", `Cannot modify '${changed[0]}' setting in readonly mode.`);
  }
  // GET changes nothing.
  const isGet = request.method === "GET" ? { readonly: "1" } : {};
  return {
    statement,
    params: url.searchParams,
    user,
    settings: { ...Object.fromEntries(asked), ...user.settings, ...isGet },
  };
}

function authenticate(
  { headers }: IncomingMessage,
  params: URLSearchParams,
  users: readonly ServerUser[],
): ServerUser {
  const basic = /^Basic (.+)$/.exec(headers.authorization ?? "")?.[1] ?? "";
  const [basicName, basicPassword] = Buffer.from(basic, "base64").toString("utf8").split(/:(.*)/s);
  const name = headers["x-clickhouse-user"] ?? (basicName || params.get("user")) ?? "default";
  const password = headers["x-clickhouse-key"] ?? basicPassword ?? params.get("password") ?? "";
  const known = users.find((one) => one.name === name && one.password === password);
  if (known) return known;
  throw exception(516, "AUTHENTICATION_FAILED", `${name}: Authentication failed.`);
}

async function textOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(Buffer.from(chunk));
  const body = Buffer.concat(chunks);
  return (request.headers["content-encoding"] === "gzip" ? gunzipSync(body) : body).toString(
    "utf8",
  );
}

function exception(code: number, type: string, message: string): Exception {
  return { code: String(code), type, message };
}

const quoted = (text: string) => `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;

/** Everything a request sets lives on a connection of its own: opening one takes 2 ms. */
async function execute(folder: string, { statement, params, settings }: Asked): Promise<Buffer> {
  const connection = createChdbConnection({ path: folder });
  try {
    const { readonly, ...others } = settings;
    const bound = [...params].filter(([name]) => name.startsWith("param_"));
    // Once a connection is read-only nothing else can be set.
    const sets = [
      ...bound,
      ...Object.entries(others),
      ...(readonly ? [["readonly", readonly]] : []),
    ];
    const prologue = [
      `USE ${params.get("database") ?? "default"}`,
      ...sets.map(([name, value]) => `SET ${name} = ${quoted(value ?? "")}`),
    ];
    const { stream } = await connection.exec({
      query: `${prologue.join("; ")}; ${statement}`,
      clickhouse_settings: {
        default_format: params.get("default_format") ?? "TabSeparated",
      } as never,
    });
    const chunks: Buffer[] = [];
    for await (const chunk of stream) chunks.push(Buffer.from(chunk));
    return Buffer.concat(chunks);
  } finally {
    await connection.close();
  }
}

function answerException(response: ServerResponse, error: unknown): void {
  const { code = "1000", type = "UNKNOWN_EXCEPTION", message } = error as Exception;
  response.writeHead(STATUSES[type] ?? 500, {
    "content-type": "text/plain; charset=UTF-8",
    "x-clickhouse-exception-code": code,
  });
  response.end(`Code: ${code}. DB::Exception: ${message} (${type}) (version 26.7.1.1)\n`);
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
  folder: string,
  place: Place,
  users: readonly ServerUser[],
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  if (request.url === "/ping") return void response.end("Ok.\n");
  try {
    const understood = await understand(request, users);
    const asked = { ...understood, statement: asRunAt(place, understood.statement) };
    const from = performance.now();
    const result = await execute(folder, asked);
    const written = /FORMAT JSONEachRow\n/.test(asked.statement)
      ? asked.statement.trimEnd().split("\n").length - 1
      : 0;
    const zipped =
      asked.params.get("enable_http_compression") === "1" &&
      (request.headers["accept-encoding"] ?? "").includes("gzip");
    response.writeHead(200, {
      "content-type": "text/plain; charset=UTF-8",
      "x-clickhouse-query-id": asked.params.get("query_id") ?? crypto.randomUUID(),
      "x-clickhouse-timezone": "UTC",
      "x-clickhouse-summary": JSON.stringify({
        read_rows: "0",
        read_bytes: "0",
        written_rows: String(written),
        written_bytes: "0",
        total_rows_to_read: "0",
        result_rows: String(written),
        result_bytes: "0",
        elapsed_ns: String(Math.round((performance.now() - from) * 1e6)),
      }),
      ...(zipped && { "content-encoding": "gzip" }),
    });
    response.end(zipped ? gzipSync(result) : result);
  } catch (error) {
    answerException(response, error);
  }
}

if (import.meta.main) {
  const [folder = "", port = "", users = "[]", configFile = "", host = "127.0.0.1"] =
    Bun.argv.slice(2);
  const known = JSON.parse(users) as ServerUser[];
  const place = await placeOf(configFile);
  // Keeps the folder open between requests, which then have its configuration too.
  const connectionArgs = configFile === "" ? [] : [`--config-file=${configFile}`];
  new Session(folder, { connectionArgs }).query("SELECT 1");
  const server = createServer({ maxHeaderSize: HEADER_LIMIT_BYTES }, (request, response) => {
    void answer(folder, place, known, request, response);
  });
  server.listen(Number(port), host);
  process.stdin.on("end", () => process.exit(0)).resume();
}
