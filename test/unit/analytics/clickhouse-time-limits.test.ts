/** Waits of ClickHouse and of its clients: whoever waits for another waits longer (`analytics/clickhouse/time-limits.ts`). */
import { describe, expect, test } from "bun:test";
import { settingsOf } from "#analytics/clickhouse/clickhouse.ts";
import {
  FILL_LIMIT_SECONDS,
  PING_LIMIT_MS,
  QUORUM_LIMIT_MS,
  READ_LIMIT_SECONDS,
  REQUEST_LIMIT_MS,
  SCHEMA_LEASE_MS,
  SCHEMA_STATEMENT_LIMIT_SECONDS,
  SURVEY_LIMIT_SECONDS,
} from "#analytics/clickhouse/time-limits.ts";
import { READY_LIMIT_MS } from "#core/runtime/ops.ts";

/** Within which an answer that the server gave in time reaches us. */
const MARGIN_MS = 500;

const PAIRS: ReadonlyArray<readonly [what: string, innerMs: number, outerMs: number]> = [
  ["a question and its client", READ_LIMIT_SECONDS * 1_000, REQUEST_LIMIT_MS.read],
  ["a survey and its client", SURVEY_LIMIT_SECONDS * 1_000, REQUEST_LIMIT_MS.survey],
  ["the quorum of an insert and its client", QUORUM_LIMIT_MS, REQUEST_LIMIT_MS.write],
  [
    "a statement of the schema and its client",
    SCHEMA_STATEMENT_LIMIT_SECONDS * 1_000,
    REQUEST_LIMIT_MS.write,
  ],
  [
    "a statement that fills the index and its client",
    FILL_LIMIT_SECONDS * 1_000,
    REQUEST_LIMIT_MS.write,
  ],
  [
    "a statement of the schema and the lease of its lock",
    SCHEMA_STATEMENT_LIMIT_SECONDS * 1_000,
    SCHEMA_LEASE_MS,
  ],
  ["a ping and the readiness that waits for it", PING_LIMIT_MS, READY_LIMIT_MS],
];

describe("the server answers before its client gives up", () => {
  test.each([...PAIRS])("%s", (_, innerMs, outerMs) => {
    expect(innerMs + MARGIN_MS).toBeLessThanOrEqual(outerMs);
  });

  test("by the settings that it is sent", () => {
    const cluster = { clickhouseCluster: "main" };
    expect(settingsOf(cluster, "write")).toMatchObject({
      insert_quorum_timeout: String(QUORUM_LIMIT_MS),
      distributed_ddl_task_timeout: String(SCHEMA_STATEMENT_LIMIT_SECONDS),
    });
    expect(settingsOf(cluster, "read").max_execution_time).toBe(READ_LIMIT_SECONDS);
    expect(settingsOf(cluster, "survey").max_execution_time).toBe(SURVEY_LIMIT_SECONDS);
  });
});
