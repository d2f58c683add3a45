/**
 * The archive on a cluster of replicas: no answer lacks rows that one of them does not have yet. A server stands for a replica and
 * refuses as one does; how replicas are kept in step is ClickHouse's part, and not covered here.
 */
import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { applySchema } from "#analytics/apply-schema.ts";
import { type OpenArchive, openArchive } from "#analytics/archive.ts";
import { insertArchived } from "#analytics/archive-table.ts";
import { openClickhouse } from "#analytics/clickhouse.ts";
import type { Config } from "#core/config.ts";
import { type ClickhouseServer, startClickhouseHttp } from "#test/support/clickhouse-http.ts";
import { openTestRuntime, type TestRuntime } from "#test/support/runtime.ts";
import { testSetup } from "#test/support/setup.ts";

const BEHIND =
  "Code: 289. DB::Exception: Replica doesn't have part 2026_7_7_0 which was successfully written to quorum of other replicas. " +
  "Send query to another replica or disable 'select_sequential_consistency' setting. (REPLICA_IS_NOT_IN_QUORUM) (version 25.8.2.29)";
const ROW = [
  ...[1, 1, 1, 1, 0, 740_000, 12, [], "0", "0", "0", "0", "2026-11-24"],
  ...["[]", "[]", "[]", "", Buffer.from("sealed").toString("base64")],
];

let runtime: TestRuntime;
let server: ClickhouseServer;
let replica: ReturnType<typeof startReplica>;
let alone: Config;
let clustered: Config;
let archive: OpenArchive;

beforeAll(async () => {
  runtime = await openTestRuntime(testSetup(), { LOG_LEVEL: "silent" });
  server = await startClickhouseHttp();
  replica = startReplica(server.address);
  alone = { ...runtime.config, clickhouseUrl: replica.address };
  clustered = { ...alone, clickhouseCluster: "main" };
  const writer = await openClickhouse(alone, "write");
  await applySchema(writer, alone);
  await writer.close();
  archive = openArchive(clustered, runtime.secrets.vault);
});
beforeEach(() => {
  replica.asked.length = 0;
  replica.refusals = 0;
});
afterAll(async () => {
  await archive.close();
  await replica.stop();
  await server.stop();
  await runtime.end();
});

/** In front of a server: what it is asked, and refusals of a replica that is behind. */
function startReplica(address: string) {
  const behind = new URL(address);
  const asked: { readonly settings: URLSearchParams; readonly statement: string }[] = [];
  const front = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(incoming) {
      const { search, searchParams, pathname } = new URL(incoming.url);
      const statement = await incoming.text();
      asked.push({ settings: searchParams, statement });
      if (one.refusals > 0) {
        one.refusals -= 1;
        const headers = { "x-clickhouse-exception-code": "289" };
        return new Response(BEHIND, { status: 500, headers });
      }
      const { method, headers } = incoming;
      const target = `http://${behind.host}${pathname}${search}`;
      return fetch(target, { method, headers, body: statement });
    },
  });
  const { username, password, pathname } = behind;
  const one = {
    address: `http://${username}:${password}@127.0.0.1:${front.port}${pathname}`,
    asked,
    refusals: 0,
    stop: () => front.stop(true),
  };
  return one;
}

test("the rows of one insert are on most replicas before those of the next", async () => {
  const writer = await openClickhouse(clustered, "write");
  await insertArchived(writer, [ROW as never]);
  await writer.close();
  const [insert] = replica.asked.filter(({ statement }) => statement.startsWith("INSERT"));
  expect(insert?.settings.get("insert_quorum")).toBe("auto");
  expect(insert?.statement).toContain("insert_quorum_parallel = 0");
});

test("only a replica that has all rows answers, and only the archive and its writer ask for that", async () => {
  const settingOf = async (config: Config, use: Parameters<typeof openClickhouse>[1]) => {
    const client = await openClickhouse(config, use);
    await (await client.query({ query: "SELECT 1" })).text();
    await client.close();
    return replica.asked.at(-1)?.settings.get("select_sequential_consistency");
  };
  expect(await settingOf(clustered, "archive")).toBe("1");
  expect(await settingOf(clustered, "write")).toBe("1");
  expect(await settingOf(clustered, "read")).toBe(null);
  expect(await settingOf(alone, "archive")).toBe(null);
});

test("a question that a replica refuses since it is behind is repeated until it is not", async () => {
  replica.refusals = 3;
  expect(await archive.storedBytes()).toBeGreaterThan(0);
  expect(replica.asked.length).toBe(4);
});

test("one that stays behind for a second answers 503 ARCHIVE_UNAVAILABLE, and once it is not the archive answers", async () => {
  replica.refusals = Number.POSITIVE_INFINITY;
  const fault = await archive.storedBytes().catch((error) => error);
  expect(fault).toMatchObject({ status: 503, code: "ARCHIVE_UNAVAILABLE" });
  expect(replica.asked.length).toBeGreaterThan(3);
  replica.refusals = 0;
  expect(await archive.storedBytes()).toBeGreaterThan(0);
});
