/**
 * A port of this process. All of them are bound before anything is written to a store; until its role has started, a port answers
 * `/healthz`, and everything else with 503, so that no request waits for a start that may take a minute.
 */
import type { AnyElysia } from "elysia";
import { urlOf } from "#core/platform/environment/url-of.ts";
import { Problem } from "#core/platform/errors/problem.ts";
import { LAST_BODY_LIMIT_MS } from "#core/platform/process/stop-limits.ts";
import { COMMIT, VERSION } from "#core/platform/process/version.ts";

export interface ListenerTerms {
  /** The environment variable that names the port. */
  readonly variable: string;
  readonly host: string;
  /** 0 = a free one. */
  readonly port: number;
  readonly maxRequestBodySize: number;
  readonly idleTimeout?: number;
  /** An error as the role's callers know it. */
  readonly refuse: (problem: Problem) => Response;
}

export interface Listener {
  readonly port: number;
  readonly url: string;
  /** From now on the app answers. */
  readonly open: (app: AnyElysia) => void;
  /** From now on readiness is 503, and every answer ends its connection; requests are answered as before. */
  readonly drain: () => void;
  /** Aborted by the drain: answers without an end, such as streams, end then. */
  readonly draining: AbortSignal;
  /** Accepts nothing more. @returns once every request is answered */
  readonly stop: () => Promise<void>;
  /** Closes a port whose app was never opened. */
  readonly close: () => void;
}

/** The port or the address is unavailable; `core/platform/http/explain-port.ts` says why. */
export class PortRefused extends Error {
  constructor(
    readonly terms: Pick<ListenerTerms, "variable" | "host" | "port">,
    readonly code: string,
    message: string,
  ) {
    super(`${terms.variable}: ${message}`);
  }
}

/** What `/healthz` answers: who asks a port that is in use recognizes another Waybill by `service`. */
export const ALIVE = {
  status: "ok",
  service: "waybill",
  version: VERSION,
  commit: COMMIT,
};
const RETRY_SECONDS = "1";
const LOOK_EVERY_MS = 50;

type Answer = (request: Request, server: Bun.Server<unknown>) => Response | Promise<Response>;

/** @throws {PortRefused} */
export function bindListener(terms: ListenerTerms): Listener {
  const { host, port, maxRequestBodySize, idleTimeout = 10 } = terms;
  let opened: AnyElysia | null = null;
  let answer: Answer = (request) => whileStarting(request, terms.refuse);
  const drained = new AbortController();
  const draining = drained.signal;
  const server = orRefused(terms, () =>
    Bun.serve({
      // Two processes on one port would share it silently.
      reusePort: false,
      development: false,
      hostname: host,
      port,
      maxRequestBodySize,
      idleTimeout,
      fetch: answer,
      // A target that is no URL.
      error: () => new Response(null, { status: 400 }),
    }),
  );
  const bound = server.port ?? port;
  // What serves while nothing stops is the app itself: a drain costs a request nothing before it begins.
  const use = () => server.reload({ fetch: draining.aborted ? whileDraining(answer) : answer });
  return {
    port: bound,
    url: urlOf(host, bound),
    open(app) {
      app.compile();
      app.server = server;
      opened = app;
      answer = app.fetch;
      use();
      for (const { fn } of app.event.start ?? []) fn(app);
    },
    drain() {
      drained.abort();
      use();
    },
    draining,
    stop: () => Promise.race([opened?.stop(), areAnswered(server)]).then(() => {}),
    close: () => void server.stop(true),
  };
}

/** A head that is still arriving is no request: Bun's own stop would wait for it until the connection is idle. */
async function areAnswered(server: Bun.Server<unknown>): Promise<void> {
  await Bun.sleep(LAST_BODY_LIMIT_MS);
  while (server.pendingRequests > 0) await Bun.sleep(LOOK_EVERY_MS);
}

/** @throws {PortRefused} for what the system says of a port */
export function orRefused<T>(terms: PortRefused["terms"], listen: () => T): T {
  try {
    return listen();
  } catch (error) {
    throw refusalOf(terms, error);
  }
}

export function refusalOf(terms: PortRefused["terms"], error: unknown): unknown {
  const { code = "", message } = error as NodeJS.ErrnoException;
  return /^E[A-Z]+$/.test(code) ? new PortRefused(terms, code, message) : error;
}

function whileStarting(request: Request, refuse: ListenerTerms["refuse"]): Response {
  const { pathname } = new URL(request.url, "http://localhost");
  const headers = { "retry-after": RETRY_SECONDS };
  if (pathname === "/healthz") return Response.json(ALIVE);
  if (pathname === "/readyz") return notReady("starting", headers);
  const detail = "The service is starting; nothing was acknowledged.";
  return refuse(new Problem(503, "STORE_UNAVAILABLE", detail, { headers }));
}

/** A client that keeps its connection is told to close it: its next one goes to a process that stays. */
function whileDraining(answer: Answer): Answer {
  return async (request, server) => {
    const { pathname } = new URL(request.url, "http://localhost");
    const response = pathname === "/readyz" ? notReady("stopping") : await answer(request, server);
    response.headers.set("connection", "close");
    return response;
  };
}

function notReady(reason: string, headers: Readonly<Record<string, string>> = {}): Response {
  return Response.json({ status: "not ready", reason }, { status: 503, headers });
}
