/** ClickHouse's HTTP interface for BI tools and drivers, off by default: SQL access, with the same judgement and limits, behind a port. */
import { Elysia } from "elysia";
import type { Config } from "#core/platform/environment/config.ts";
import { problemResponse } from "#core/platform/errors/problem.ts";
import { everyRouteDeclared } from "#core/platform/http/access.ts";
import { toProblem } from "#core/platform/http/errors.ts";
import { bindListener, type Listener } from "#core/platform/http/listener.ts";
import { ONE_ROUTER, requestTarget } from "#core/platform/http/request-target.ts";
import { STORE_NEEDS } from "#core/platform/redis/store-needs.ts";
import { ops } from "#core/runtime/ops.ts";
import type { Role, Running, Runtime } from "#core/runtime/runtime.ts";
import { clickhouseRoutes, STATEMENT_BODY_BYTES } from "./sql/clickhouse-routes.ts";
import { SECONDS } from "./sql/open-reader.ts";
import { openSqlAccess } from "./sql-access.ts";

/** Longer than a statement may wait for its turn and run. */
const IDLE_SECONDS = 4 * SECONDS;

/** @throws {PortRefused} */
function bindSqlPort({ host, ports }: Config): Listener {
  return bindListener({
    variable: "SQL_PORT",
    host,
    port: ports.sql ?? 0,
    maxRequestBodySize: 2 * STATEMENT_BODY_BYTES,
    idleTimeout: IDLE_SECONDS,
    refuse: problemResponse,
  });
}

async function startSqlPort({ redis, log, config, listeners }: Runtime): Promise<Running> {
  const listener = listeners.get("sql") ?? bindSqlPort(config);
  const access = openSqlAccess(config, true);
  const app = new Elysia(ONE_ROUTER)
    .onError(({ error }) => problemResponse(toProblem(error, redis, log)))
    .use(requestTarget())
    .use(ops(redis, { config, needs: STORE_NEEDS.metrics }))
    .use(clickhouseRoutes(access, config.sqlPassword ?? ""));
  listener.open(everyRouteDeclared(app));
  log.info({ url: listener.url }, "ClickHouse's HTTP interface listens");
  return {
    name: "sql",
    url: listener.url,
    isServing: true,
    async stop() {
      await listener.stop();
      await access.close();
    },
  };
}

export const SQL_PORT: Role = {
  name: "sql",
  isWanted: ({ ports }) => ports.sql !== null,
  bind: bindSqlPort,
  start: startSqlPort,
};
