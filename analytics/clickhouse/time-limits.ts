/**
 * How long each side waits when ClickHouse is asked. Whoever waits for another gives it more time than it takes at most: a client that
 * gave up first would not know what became of its statement, which goes on running, and would send it again beside it
 * (`test/unit/analytics/clickhouse-time-limits.test.ts` compares them).
 */
import { limit } from "#core/platform/schema/limit.ts";

/** A client's wait for an answer, by what it is used for. */
export const REQUEST_LIMIT_MS = { write: 60_000, read: 6_000, survey: 21_000 } as const;

/** The server's own limits of a question (`max_execution_time`). */
export const READ_LIMIT_SECONDS = limit(5, "time of a benchmark question", "503");
export const SURVEY_LIMIT_SECONDS = 20;

/** An insert waits so long for most replicas to have its rows (`insert_quorum_timeout`; 10 minutes by default). */
export const QUORUM_LIMIT_MS = limit(
  40_000,
  "wait of a cluster's insert for most replicas",
  "written again",
);
/** A statement of the schema waits so long for the other servers of the cluster (`distributed_ddl_task_timeout`; 3 minutes by default). */
export const SCHEMA_STATEMENT_LIMIT_SECONDS = limit(
  20,
  "wait of a statement of a cluster's schema",
  "it goes on without the server",
);
/** One statement that fills the index of the archive. */
export const FILL_LIMIT_SECONDS = 50;

/** Lease of the process that changes the schema: if it dies, others wait this long. */
export const SCHEMA_LEASE_MS = limit(
  30_000,
  "lease of the turn to change the tables of ClickHouse",
  "others wait for as long if the process is killed",
);
/** Longest single wait for the lock; between waits the process checks whether it must stop. */
export const SCHEMA_WAIT_MS = limit(
  5_000,
  "wait for the turn to change the tables of ClickHouse",
  "tried again a second later",
);
export const SCHEMA_RETRY_MS = limit(
  30_000,
  "wait after a statement that a cluster of ClickHouse refused to change its tables",
  "nothing is sent meanwhile",
);

/** A replica that lacks an archived row gets so long to fetch it before it is asked once more: fetches take about 0.1 s. */
export const CATCH_UP_MS = limit(
  500,
  "wait for a replica that lacks an archived row",
  "asked once more, then 503 if it is behind",
);

/** Of the question whether a server answers, which a readiness check waits for. */
export const PING_LIMIT_MS = limit(1_500, "wait in `/readyz` for a ClickHouse server", "503");
