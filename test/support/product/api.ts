/** The merchant API in this process, on a Redis of its own, and a merchant who calls it. */
import { openArchive } from "#analytics/archive.ts";
import { openBenchmarks } from "#analytics/benchmarks.ts";
import { createApiApp } from "#api/app.ts";
import { MERCHANT_API } from "#api/openapi.ts";
import { advanceClock } from "#core/configuration/store/live.ts";
import type { Route } from "#core/platform/http/no-route.ts";
import {
  type DescribedRoute,
  describedRoutes,
  openApiDocument,
} from "#core/platform/openapi/document.ts";
import { openRuntime, type Runtime } from "#core/runtime/runtime.ts";
import type { SetupFile } from "#core/setup/rules/setup.ts";
import { type AnswerChecker, answerChecker } from "#test/support/clients/described-answers.ts";
import { NO_CLICKHOUSE, openTestRuntime, type TestRuntime } from "./runtime.ts";

/** Of every request that `call` sends. */
const TEST_REQUEST_ID = "test-request";

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into whatever the API answered
  readonly body: any;
}

export interface CallOptions {
  readonly token?: string;
  readonly body?: unknown;
  /** Sent as it is. */
  readonly text?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export type Call = (method: string, path: string, options?: CallOptions) => Promise<Answer>;

/** Every answer is compared with the OpenAPI document. */
export interface TestApi {
  readonly runtime: TestRuntime;
  readonly routes: readonly Route[];
  readonly operations: readonly DescribedRoute[];
  readonly document: ReturnType<typeof openApiDocument>;
  /** `<operationId> <status>` of the answers to `call`. */
  readonly seen: ReadonlySet<string>;
  readonly call: Call;
  /** For clients that bring requests of their own. */
  readonly fetch: (request: Request) => Promise<Response>;
  /** The API as another process with its own connection to the same store serves it. */
  readonly another: () => Promise<Call>;
  /** Exchanges an API key for a token; each key once. */
  readonly token: (apiKey: string) => Promise<string>;
  /** Moves the service clock forward. */
  readonly advance: (seconds: number) => Promise<void>;
  readonly end: () => Promise<void>;
}

/** @param clickhouse what the benchmarks read; "embedded" is the engine in this process */
export async function openTestApi(
  setup: SetupFile,
  clickhouse: "away" | "embedded" = "away",
  env: Readonly<Record<string, string>> = {},
): Promise<TestApi> {
  const benchmarked = clickhouse === "away" ? { CLICKHOUSE_URL: NO_CLICKHOUSE } : {};
  const runtime = await openTestRuntime(setup, { ...benchmarked, ...env });
  const benchmarks = await openBenchmarks(runtime.config);
  const archive = openArchive(runtime.config, runtime.secrets.vault);
  const app = createApiApp({ ...runtime, benchmarks, archive });
  const checker = answerChecker(app.routes, MERCHANT_API);
  const call = callerOf(app, checker.check);
  const others: Runtime[] = [];
  const tokens = new Map<string, string>();

  async function token(apiKey: string): Promise<string> {
    const known = tokens.get(apiKey);
    if (known !== undefined) return known;
    const { body } = await call("POST", "/v2/auth/token", { body: { apiKey } });
    tokens.set(apiKey, body.token);
    return body.token;
  }

  return {
    runtime,
    routes: app.routes,
    get operations() {
      return describedRoutes(app.routes);
    },
    get document() {
      return openApiDocument(app.routes, MERCHANT_API);
    },
    seen: checker.seen,
    call,
    fetch: async (request) => app.handle(request),
    async another() {
      const other = await openRuntime(runtime.config, runtime.log);
      others.push(other);
      return callerOf(createApiApp({ ...other, benchmarks, archive }), checker.check);
    },
    token,
    async advance(seconds) {
      await advanceClock(runtime.redis, seconds);
      await runtime.live.refresh();
    },
    async end() {
      await Promise.all([benchmarks.close(), archive.close()]);
      for (const other of others) await other.close();
      await runtime.end();
    },
  };
}

function callerOf(app: ReturnType<typeof createApiApp>, check: AnswerChecker["check"]): Call {
  return async (method, path, options = {}) => {
    const { token, body, text = body === undefined ? null : JSON.stringify(body) } = options;
    const headers = {
      // The same for all, so that answers that must not differ are equal.
      "x-request-id": TEST_REQUEST_ID,
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
      ...(text !== null && { "content-type": "application/json" }),
      ...options.headers,
    };
    const request = new Request(`http://localhost${path}`, { method, headers, body: text });
    const response = await app.handle(request);
    const { status, headers: answered } = response;
    const answer = await response.text();
    const parsed = answer === "" ? null : JSON.parse(answer);
    check({ method, path, status, headers: answered, body: parsed });
    return { status, headers: answered, body: parsed };
  };
}

/** A valid item of `POST /v2/shipments`; members given replace its own. */
export function item(trackingNumber: string, members: Readonly<Record<string, unknown>> = {}) {
  return { trackingNumber, courier: "GLS_ITA", shipDate: "2026-11-10", ...members };
}
