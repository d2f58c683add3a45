/** The panel's HTTP API in this process, and an operator who calls it. Every answer is compared with the OpenAPI document. */
import { openBenchmarks } from "#analytics/benchmarks.ts";
import { createPanelApp } from "#panel/server/app.ts";
import { PANEL_API } from "#panel/server/openapi.ts";
import { answerChecker } from "#test/support/clients/described-answers.ts";
import type { Answer } from "./api.ts";
import { NO_CLICKHOUSE, type TestRuntime } from "./runtime.ts";

export interface TestPanel {
  readonly handle: (request: Request) => Promise<Response>;
  /** A body that is a text is sent as CSV, anything else as JSON. */
  readonly call: (method: string, path: string, body?: unknown) => Promise<Answer>;
  readonly end: () => Promise<void>;
}

export async function openTestPanel(runtime: TestRuntime): Promise<TestPanel> {
  const benchmarks = await openBenchmarks({ ...runtime.config, clickhouseUrl: NO_CLICKHOUSE });
  const app = createPanelApp(runtime, benchmarks);
  const checker = answerChecker(app.routes, PANEL_API);
  return {
    handle: app.handle,
    async call(method, path, body) {
      const headers = {
        authorization: `Bearer ${runtime.secrets.panelToken}`,
        ...(body !== undefined && {
          "content-type": typeof body === "string" ? "text/csv" : "application/json",
        }),
      };
      const text = typeof body === "string" || body === undefined ? body : JSON.stringify(body);
      const request = new Request(`http://localhost${path}`, {
        method,
        headers,
        body: text ?? null,
      });
      const response = await app.handle(request);
      const answer = await response.text();
      const isText = response.headers.get("content-type")?.startsWith("text/");
      const reported = answer === "" ? null : isText ? answer : JSON.parse(answer);
      const { status, headers: answered } = response;
      checker.check({ method, path, status, headers: answered, body: reported });
      return { status, headers: answered, body: reported };
    },
    end: () => benchmarks.close(),
  };
}
