/** design.md, "Starting, stopping, failing": a request that was accepted is answered, however long it waits for others. */
import { describe, expect, test } from "bun:test";
import { REQUEST_LIMIT_MS } from "#analytics/clickhouse/time-limits.ts";
import { SECONDS } from "#analytics/sql/open-reader.ts";
import { GATEWAY_LIMIT_MS } from "#api/http/gateway.ts";
import { LOCK_TERMS } from "#api/labels/confirm.ts";
import { WAIT_LIMIT_MS } from "#api/labels/obtain-label.ts";
import { IDLE_SECONDS as API_IDLE_SECONDS } from "#api/main.ts";
import { SETUP_LOCK_TERMS } from "#core/configuration/store/setup-lock.ts";
import { RESOLVE_LIMIT_MS } from "#core/platform/network/vetted-address.ts";
import { ANSWER_LIMIT_MS } from "#core/platform/process/stop-limits.ts";
import { IDLE_SECONDS as PANEL_IDLE_SECONDS } from "#panel/main.ts";
import { LIMITS } from "#processors/webhooks/deliver-limits.ts";

/** For what the answer needs beside its waits. */
const MARGIN_MS = 5_000;

const WAITS: ReadonlyArray<readonly [request: string, waitMs: number]> = [
  ["a change of the configuration", SETUP_LOCK_TERMS.waitLimitMs + RESOLVE_LIMIT_MS],
  ["a label that another request asks for", WAIT_LIMIT_MS + 2 * GATEWAY_LIMIT_MS],
  ["a confirmation of labels", LOCK_TERMS.waitLimitMs + GATEWAY_LIMIT_MS],
  ["a statement of SQL access", SECONDS * 1_000],
  ["a survey of benchmarks", REQUEST_LIMIT_MS.survey],
  ["the result of a webhook without a store", LIMITS.stopWaitMs],
];

describe("a stop waits longer than the longest answer takes", () => {
  test.each([...WAITS])("%s", (_, waitMs) => {
    expect(waitMs + MARGIN_MS).toBeLessThanOrEqual(ANSWER_LIMIT_MS);
  });
});

describe("no connection counts as idle while its request waits for the longest answer", () => {
  test.each([
    ["api", API_IDLE_SECONDS],
    ["panel", PANEL_IDLE_SECONDS],
  ])("%s", (_, idleSeconds) => {
    expect(idleSeconds * 1_000).toBeGreaterThanOrEqual(ANSWER_LIMIT_MS + MARGIN_MS);
  });
});
