/** The servers of the tests where a container engine answers: those that compose.yaml and compose.cluster.yaml ship. */
export const REDIS_IMAGE = "redis:7.4-alpine";
export const CLICKHOUSE_IMAGE = "clickhouse/clickhouse-server:26.7";
