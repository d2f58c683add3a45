/** Limits of the embedded ClickHouse as a program of its own. */
import { limit } from "#core/platform/schema/limit.ts";

/** It answers within 0.6 s when it is asked again. */
export const SLEEP_AFTER_MS = limit(
  600_000,
  "time without a statement after which the embedded ClickHouse ends",
  "started again by the next statement",
);
/** Beyond the statement's own limit: the engine checks that between two blocks of rows, and a busy machine takes its time. */
export const OVERTIME_MS = limit(
  5_000,
  "time of a statement of the embedded ClickHouse beyond its limit",
  "the engine ends together with the statement, and is started again",
);
/** Of inserts and of statements of the schema, whose clients wait for a minute. */
export const UNTIMED_LIMIT_SECONDS = limit(
  600,
  "time of a statement of the embedded ClickHouse that names no limit",
  "the engine ends together with the statement, and is started again",
);
/** Each occupies a thread of the process; the engine then divides it among threads of its own. */
export const SIDE_BY_SIDE = limit(
  24,
  "statements that the embedded ClickHouse runs side by side",
  "the next ones wait",
);
/** Of a process there are one that writes, eight that read, and four for surveys, besides those of SQL access. */
export const IDLE_SESSIONS = limit(
  12,
  "connections that the embedded ClickHouse keeps open for the next statement",
  "the one that was not used for longest is closed",
);
export const BODY_BYTES = limit(
  256 * 1024 * 1024,
  "a statement to the embedded ClickHouse with its rows",
  "413",
);
/** Parameters are part of the address; a server has the same limit (`http_max_uri_size`). */
export const ADDRESS_BYTES = limit(
  1024 * 1024,
  "the address of a request to the embedded ClickHouse",
  "431",
);
/** What it is running when it is told to end. */
export const DRAIN_LIMIT_MS = limit(
  5_000,
  "end of the embedded ClickHouse while statements run",
  "they are cut off, and repeated by whoever writes",
);
