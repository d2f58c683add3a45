/** A row of the archive that Redis relies on, on a replica that has not fetched it yet: docs/analytics.md, "On a server or a cluster". */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { archiveRow } from "#analytics/archive/archive-rows.ts";
import { insertArchived } from "#analytics/archive/archive-table.ts";
import { type OpenArchive, openArchive } from "#analytics/archive.ts";
import { applySchema, TABLES } from "#analytics/clickhouse/apply-schema.ts";
import { openClickhouse } from "#analytics/clickhouse/clickhouse.ts";
import { onCluster } from "#analytics/clickhouse/on-cluster.ts";
import { readLeaving } from "#core/archive/store/remove-shipments.ts";
import type { Config } from "#core/platform/environment/config.ts";
import { channelOf, testSetup } from "#test/support/data/setup.ts";
import { deliver } from "#test/support/product/archive.ts";
import { openTestRuntime, type TestRuntime } from "#test/support/product/runtime.ts";
import {
  addressBehind,
  CLUSTER,
  passOn,
  startClusterServer,
  startProxy,
} from "#test/support/servers/clickhouse-cluster.ts";
import { startClickhouseHttp } from "#test/support/servers/clickhouse-http.ts";

let runtime: TestRuntime;
let id = 0;
let channelId = 0;

beforeAll(async () => {
  runtime = await openTestRuntime(testSetup());
  channelId = channelOf(runtime).id;
  [id = 0] = await deliver(runtime, ["BEHIND1"]);
});
afterAll(() => runtime.end());

const behind = (clickhouseUrl: string, clickhouseCluster: string | null): Config => ({
  ...runtime.config,
  clickhouseUrl,
  clickhouseCluster,
});

/** Whether the archive has the shipment's row. */
async function has(archive: OpenArchive, one = id): Promise<boolean> {
  return (await archive.read([one], [channelId])).length > 0;
}

describe("behind a proxy that has moved on to another replica", () => {
  /** Of `archived_shipments`, in the order in which they were asked. */
  const asked: string[] = [];
  const ends: (() => unknown)[] = [];
  let address = "";
  let catchesUp = true;

  beforeAll(async () => {
    const first = await startClickhouseHttp();
    const second = await startClickhouseHttp();
    for (const server of [first, second]) {
      const config = behind(server.address, null);
      const client = await openClickhouse(config, "write");
      await applySchema(client, config);
      if (server === first) {
        const [leaving] = await readLeaving(runtime.redis, [id]);
        if (!leaving) throw new Error("the shipment has not ended");
        await insertArchived(client, [archiveRow(runtime.secrets.vault, leaving, 1, "2026-11-22")]);
      }
      await client.close();
    }
    // The second replica has the row from the second question on.
    const proxy = startProxy(async (request) => {
      const statement = await request.clone().text();
      const isAboutRows = statement.includes("PREWHERE");
      const to = isAboutRows && asked.length > 0 && catchesUp ? first : second;
      if (isAboutRows) asked.push(statement);
      return passOn(request, to.address);
    });
    address = addressBehind(first.address, proxy.port);
    ends.push(() => proxy.stop(true), first.stop, second.stop);
  });
  afterAll(async () => {
    for (const end of ends) await end();
  });
  beforeEach(() => {
    asked.length = 0;
    catchesUp = true;
  });

  async function withArchive<T>(
    cluster: string | null,
    work: (archive: OpenArchive) => Promise<T>,
  ) {
    const archive = openArchive(behind(address, cluster), runtime.secrets.vault);
    try {
      return await work(archive);
    } finally {
      await archive.close();
    }
  }

  test("a row that is missing is asked for once more, and found", async () => {
    expect(await withArchive(CLUSTER, (archive) => has(archive))).toBe(true);
    expect(asked).toHaveLength(2);
  });

  test("a row that is found is asked for once", async () => {
    asked.push("an earlier question");
    expect(await withArchive(CLUSTER, (archive) => has(archive))).toBe(true);
    expect(asked).toHaveLength(2);
  });

  test("a shipment that was never archived is asked for twice and no more, and is missing", async () => {
    catchesUp = false;
    expect(await withArchive(CLUSTER, (archive) => has(archive, id + 1_600))).toBe(false);
    expect(asked).toHaveLength(2);
  });

  test("a single server is asked once: nothing is behind it", async () => {
    expect(await withArchive(null, (archive) => has(archive))).toBe(false);
    expect(asked).toHaveLength(1);
  });
});

test("a row that a replica lacks which is behind the others is no missing shipment: 503 ARCHIVE_UNAVAILABLE", async () => {
  // Replicas of the embedded engine never come into step, since no other one can reach them.
  const server = await startClusterServer(true);
  const config = behind(server.address, CLUSTER);
  const client = await openClickhouse(config, "write");
  for (const sql of TABLES) await client.command({ query: onCluster(sql, CLUSTER) });
  const archive = openArchive(config, runtime.secrets.vault);
  try {
    const fault = await has(archive).catch((error) => error);
    expect(fault).toMatchObject({ status: 503, code: "ARCHIVE_UNAVAILABLE" });
  } finally {
    await archive.close();
    await client.close();
    await server.stop();
  }
});
