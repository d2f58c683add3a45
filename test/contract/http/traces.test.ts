/** Traces over OTLP: from the courier's request through the logs to the merchant's answer, and nothing where they are off. */

import { afterEach, describe, expect, test } from "bun:test";
import { openBenchmarks } from "#analytics/benchmarks.ts";
import { createApiApp } from "#api/app.ts";
import type { CourierEvent } from "#core/events/rules/event.ts";
import { decodeLoggedEvent, encodeLoggedEvent } from "#core/events/store/event-log.ts";
import { readConfig } from "#core/platform/environment/config.ts";
import { type Consumer, startConsumer } from "#core/platform/log/consumer.ts";
import { createLog } from "#core/platform/process/log.ts";
import { currentSpan, isTracing } from "#core/platform/process/tracing.ts";
import { VERSION } from "#core/platform/process/version.ts";
import { NO_ARCHIVE } from "#core/search/store/archive-search.ts";
import { createIngestApp } from "#ingest/app.ts";
import { trackHandler } from "#processors/track/track.ts";
import { event, push } from "#test/support/clients/courier.ts";
import { addShipment } from "#test/support/data/shipments.ts";
import { eventually } from "#test/support/eventually.ts";
import { forAll } from "#test/support/for-all.ts";
import { BARE, newProduct, READY_LIMIT_MS } from "#test/support/product/product.ts";
import type { TestRuntime } from "#test/support/product/runtime.ts";
import { NO_CLICKHOUSE } from "#test/support/product/runtime.ts";
import {
  openWebhookRuntime,
  type Pipeline,
  STATUS,
  sendDeps,
  startPipeline,
} from "#test/support/product/webhooks.ts";
import { type CollectedSpan, startCollector } from "#test/support/servers/collector.ts";
import { startReceiver } from "#test/support/servers/receiver.ts";

const TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT_ID = "00f067aa0ba902b7";
const SAMPLED = { traceparent: `00-${TRACE_ID}-${PARENT_ID}-01` };
const UNSAMPLED = { traceparent: `00-${TRACE_ID}-${PARENT_ID}-00` };

interface Started {
  readonly runtime: TestRuntime;
  readonly ingest: string;
  readonly pipeline: Pipeline;
  readonly track: Consumer;
  /** Lines of the log. */
  readonly lines: Array<Readonly<Record<string, unknown>>>;
  readonly end: () => Promise<void>;
}

let started: Started | null = null;

const receiver = forAll(startReceiver);
const collector = forAll(async () => startCollector());

afterEach(async () => {
  await started?.end();
  started = null;
  receiver.requests.length = 0;
  collector.spans.length = 0;
});

async function start(env: Readonly<Record<string, string>> = {}): Promise<Started> {
  const runtime = await openWebhookRuntime([{ url: receiver.url }], env);
  const lines: Started["lines"] = [];
  const log = createLog("info", { write: (line) => void lines.push(JSON.parse(line)) });
  const { redis, live, config } = runtime;
  const app = createIngestApp({ ...runtime, log });
  app.listen({ port: 0, hostname: "127.0.0.1" });
  const track = startConsumer({
    redis,
    log,
    source: "event",
    group: "track",
    batch: 100,
    handler: trackHandler({ redis, live, eventsPerDay: config.eventsPerDay }),
  });
  const pipeline = startPipeline(runtime, sendDeps(runtime));
  started = {
    runtime,
    pipeline,
    track,
    lines,
    ingest: `http://127.0.0.1:${app.server?.port}`,
    async end() {
      await app.stop(true);
      await track.stop();
      await pipeline.stop();
      await runtime.end();
    },
  };
  return started;
}

/** A shipment's first event, until the merchant has its webhook. */
async function deliverOne(
  { runtime, ingest }: Started,
  headers: Readonly<Record<string, string>> = {},
): Promise<{ readonly sent: CourierEvent; readonly traceparent: unknown }> {
  const number = `TRACE-${crypto.randomUUID()}`;
  await addShipment(runtime, number);
  const sent = event({ trackingNumber: number, status: STATUS.inTransit });
  const { body } = await push(ingest, [sent], { headers });
  expect(body.results).toMatchObject([{ outcome: "ACCEPTED" }]);
  const request = await eventually(() => receiver.requests.at(-1) ?? null, "the webhook arrives");
  return { sent, traceparent: request.headers["traceparent"] };
}

const traced = () => ({
  OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
  OTEL_EXPORTER_OTLP_HEADERS: "authorization=Bearer%20collector-token",
  OTEL_SERVICE_NAME: "waybill-test",
});

/** Ends the runtime, which sends what is left. */
async function collected(): Promise<Map<string, CollectedSpan>> {
  await started?.end();
  started = null;
  return new Map(collector.spans.map((span) => [span.name, span]));
}

const CHAIN = ["POST /v1/events", "track", "decide webhooks", "send webhook"] as const;

describe("with a collector", () => {
  test("a trace follows an event from its courier's span to the merchant's answer", async () => {
    const running = await start(traced());
    receiver.behave(202);
    const { sent, traceparent } = await deliverOne(running, SAMPLED);
    const spans = await collected();
    const chain = CHAIN.map((name) => spans.get(name));
    expect(chain.map((span) => span?.traceId)).toEqual(CHAIN.map(() => TRACE_ID));
    const [request, track, decide, send] = chain;
    expect(chain.map((span) => span?.parentSpanId)).toEqual([
      PARENT_ID,
      ...[request, track, decide].map((span) => span?.spanId ?? ""),
    ]);
    expect(traceparent).toBe(`00-${TRACE_ID}-${send?.spanId}-01`);
    expect(request).toMatchObject({
      service: "waybill-test",
      facts: {
        "http.response.status_code": 200,
        "waybill.courier": "GLS_ITA",
        "waybill.accepted": 1,
        // What OpenTelemetry's conventions require.
        "http.request.method": "POST",
        "http.route": "/v1/events",
        "url.path": "/v1/events",
        "url.scheme": "http",
      },
    });
    expect(request?.facts["waybill.request_id"]).toBeString();
    expect(track?.facts).toMatchObject({ "waybill.event_id": sent.eventId });
    expect(track?.facts).toMatchObject({
      "messaging.system": "redis",
      "messaging.destination.name": "event",
      "messaging.operation.name": "track",
      "messaging.operation.type": "process",
    });
    expect(decide?.facts).toMatchObject({ "messaging.destination.name": "change" });
    expect(send?.facts).toMatchObject({ "http.response.status_code": 202, "waybill.attempt": 1 });
    expect(send?.facts["server.address"]).toBeString();
    expect(send?.facts["server.port"]).toBeNumber();
    expect(send?.facts["url.full"]).toEndWith("/REDACTED");
    expect(collector.authorizations).toContain("Bearer collector-token");
    expect(JSON.stringify([...spans.values()])).not.toContain(sent.trackingNumber);
  });

  test.each([
    ["http/json", "application/json"],
    ["http/protobuf", "application/x-protobuf"],
    ["grpc", "application/x-protobuf"],
  ])(
    "with %s the spans arrive as %s, with the instance, the version and OTEL_RESOURCE_ATTRIBUTES",
    async (protocol, type) => {
      const running = await start({
        ...traced(),
        OTEL_EXPORTER_OTLP_PROTOCOL: protocol,
        OTEL_RESOURCE_ATTRIBUTES:
          "deployment.environment.name=pr%C3%BCfung, k8s.pod.name=waybill-0",
      });
      collector.contentTypes.length = 0;
      receiver.behave(202);
      await deliverOne(running, SAMPLED);
      const spans = await collected();
      expect(new Set(collector.contentTypes)).toEqual(new Set([type]));
      for (const name of CHAIN) {
        const span = spans.get(name);
        expect(span?.traceId).toBe(TRACE_ID);
        expect(span?.resource).toMatchObject({
          "service.name": "waybill-test",
          "service.version": VERSION,
          "service.instance.id": expect.stringMatching(/^[0-9a-f-]{36}$/),
          "deployment.environment.name": "prüfung",
          "k8s.pod.name": "waybill-0",
        });
      }
      expect(spans.get("send webhook")?.facts).toMatchObject({ "http.response.status_code": 202 });
    },
  );

  test("without tracecontext among OTEL_PROPAGATORS, no caller's trace is continued, and no receiver is sent one", async () => {
    const running = await start({ ...traced(), OTEL_PROPAGATORS: "none" });
    const { traceparent } = await deliverOne(running, SAMPLED);
    expect(traceparent).toBeUndefined();
    const spans = await collected();
    const ids = new Set(CHAIN.map((name) => spans.get(name)?.traceId));
    expect([ids.size, ids.has(TRACE_ID)]).toEqual([1, false]);
  });

  test("a request of the API has a span in its caller's trace, named by its route and not by its path", async () => {
    const clickhouse = { CLICKHOUSE_URL: NO_CLICKHOUSE };
    const { runtime } = await start({ ...traced(), ...clickhouse });
    const benchmarks = await openBenchmarks(runtime.config);
    const answer = await createApiApp({ ...runtime, benchmarks, archive: NO_ARCHIVE }).handle(
      new Request("http://localhost/v2/shipments/4711", { headers: SAMPLED }),
    );
    expect(answer.status).toBe(401);
    await benchmarks.close();
    const span = (await collected()).get("GET /v2/shipments/:id");
    expect(span).toMatchObject({ traceId: TRACE_ID, parentSpanId: PARENT_ID });
    expect(span?.facts).toMatchObject({ "http.response.status_code": 401, "waybill.role": "api" });
    expect(JSON.stringify(collector.spans)).not.toContain("4711");
  });

  test("a refused webhook is an error of its span, and every attempt has one", async () => {
    const running = await start(traced());
    receiver.behave(500);
    await deliverOne(running, SAMPLED);
    expect((await collected()).get("send webhook")).toMatchObject({ isError: true });
  });

  test("log lines of a traced request name its trace, its message and its request", async () => {
    const running = await start(traced());
    receiver.behave(200);
    await deliverOne(running, SAMPLED);
    const line = running.lines.find(({ msg }) => msg === "message processed");
    expect(line).toMatchObject({ traceId: TRACE_ID, messageId: expect.any(String) });
    expect(line?.["requestId"]).toBeString();
  });

  test("a caller without a trace begins one", async () => {
    const running = await start(traced());
    const { traceparent } = await deliverOne(running);
    const spans = await collected();
    expect(spans.get("POST /v1/events")?.parentSpanId).toBe("");
    expect(traceparent).toBe(
      `00-${spans.get("track")?.traceId}-${spans.get("send webhook")?.spanId}-01`,
    );
  });

  test("what the sampler leaves out is neither sent nor carried on", async () => {
    const running = await start({ ...traced(), OTEL_TRACES_SAMPLER: "parentbased_always_on" });
    const { traceparent } = await deliverOne(running, UNSAMPLED);
    expect(traceparent).toBeUndefined();
    expect((await collected()).size).toBe(0);
  });

  test("a sampler that ignores its callers records none of theirs at ratio 0", async () => {
    const ratio = { OTEL_TRACES_SAMPLER: "traceidratio", OTEL_TRACES_SAMPLER_ARG: "0" };
    const running = await start({ ...traced(), ...ratio });
    expect((await deliverOne(running, SAMPLED)).traceparent).toBeUndefined();
    expect((await collected()).size).toBe(0);
  });

  test("a collector that is away holds nothing up", async () => {
    const running = await start({ ...traced(), OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:1" });
    expect((await deliverOne(running, SAMPLED)).traceparent).toStartWith(`00-${TRACE_ID}-`);
  });
});

describe("without a collector", () => {
  test("an entry of the event log has the bytes that it had before there were traces", () => {
    const one = {
      shipmentId: 16,
      courier: "GLS_ITA",
      factKey: "k",
      receivedAtMs: 1,
      messageIndex: 0,
    };
    const sent = event();
    const line = encodeLoggedEvent({ ...one, event: sent, messageId: "m" });
    expect(line).toBe(JSON.stringify([16, "GLS_ITA", "k", 1, 0, sent, "m"]));
    const traced = { ...one, event: sent, traceparent: SAMPLED.traceparent };
    expect(decodeLoggedEvent(encodeLoggedEvent(traced))).toEqual(traced);
  });

  test("a caller's trace is ignored: no span is made, and nothing is stored or sent of it", async () => {
    const running = await start();
    expect([isTracing(), currentSpan()]).toEqual([false, null]);
    const { traceparent } = await deliverOne(running, SAMPLED);
    expect(traceparent).toBeUndefined();
    const { redis } = running.runtime;
    const streams = (await redis.keys("*")).filter(
      (key) => key.endsWith(":log") || key.includes("dlv_"),
    );
    const texts = await Promise.all(
      streams.map(async (key) =>
        (await redis.type(key)) === "stream"
          ? JSON.stringify(await redis.xRange(key, "-", "+"))
          : JSON.stringify(await redis.hGetAll(key).catch(() => ({}))),
      ),
    );
    expect(texts.join("")).not.toContain(TRACE_ID);
  });

  test("OTEL_SDK_DISABLED and OTEL_TRACES_EXPORTER=none end them without a warning", () => {
    for (const off of [{ OTEL_SDK_DISABLED: "True" }, { OTEL_TRACES_EXPORTER: "none" }]) {
      const { tracing, otelWarnings } = readConfig({ ...traced(), ...off });
      expect([tracing, otelWarnings]).toEqual([null, []]);
    }
  });
});

describe("the variables of OpenTelemetry", () => {
  test.each([
    ["OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", true],
    ["OTEL_EXPORTER_OTLP_PROTOCOL", "thrift", true],
    ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "collector:4317", false],
    ["OTEL_TRACES_EXPORTER", "zipkin", false],
    ["OTEL_TRACES_EXPORTER", "otlp,console", true],
    ["OTEL_TRACES_SAMPLER", "jaeger_remote", true],
    ["OTEL_TRACES_SAMPLER_ARG", "1.5", true],
    ["OTEL_EXPORTER_OTLP_TIMEOUT", "soon", true],
    ["OTEL_EXPORTER_OTLP_HEADERS", "no pair", true],
    ["OTEL_RESOURCE_ATTRIBUTES", "a=%", true],
    ["OTEL_PROPAGATORS", "b3", true],
    ["OTEL_PROPAGATORS", "tracecontext,baggage,b3,xray", true],
    ["OTEL_SDK_DISABLED", "maybe", true],
    ["OTEL_METRICS_EXPORTER", "otlp", true],
    ["OTEL_LOGS_EXPORTER", "otlp", true],
    ["OTEL_NOBODY_KNOWS", "1", true],
  ])("%s=%s has one warning and stops no start", (name, value, hasTraces) => {
    const { tracing, otelWarnings } = readConfig({ ...traced(), [name]: value });
    expect(otelWarnings).toEqual([expect.stringMatching(new RegExp(`^${name}: `))]);
    expect(tracing !== null).toBe(hasTraces);
  });

  test("those that ask for nothing else have no warning", () => {
    const silent = {
      OTEL_METRICS_EXPORTER: "none",
      OTEL_LOGS_EXPORTER: "none",
      OTEL_BSP_SCHEDULE_DELAY: "500",
      OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: "http://collector:4317",
      OTEL_RESOURCE_ATTRIBUTES_POD_NAME: "waybill-0",
    };
    expect(readConfig({ ...traced(), ...silent }).otelWarnings).toEqual([]);
  });

  test(
    "a start is not stopped and writes each warning once, the library's too",
    async () => {
      const product = await newProduct(
        BARE,
        {},
        {
          ...traced(),
          OTEL_EXPORTER_OTLP_TIMEOUT: "soon",
          OTEL_NOBODY_KNOWS: "1",
          OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT: "many",
        },
      );
      try {
        await product.start();
        const lines = product.output().split("\n");
        const saying = (name: string) => lines.filter((line) => line.includes(name)).length;
        expect(saying("OTEL_EXPORTER_OTLP_TIMEOUT")).toBe(1);
        expect(saying("OTEL_NOBODY_KNOWS")).toBe(1);
        expect(saying("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT")).toBe(1);
      } finally {
        await product.end();
      }
    },
    READY_LIMIT_MS,
  );

  test.each([
    ["http://all:4317", undefined, "http://all:4318/v1/traces"],
    ["https://all:443/base", undefined, "https://all/base/v1/traces"],
    ["http://all:4317", "http://traces:4317", "http://traces:4318/v1/traces"],
    [undefined, "http://traces:4318/v1/traces", "http://traces:4318/v1/traces"],
  ])("with grpc, %p and %p mean %s over HTTP", (all, traces, url) => {
    const { tracing, otelWarnings } = readConfig({
      OTEL_EXPORTER_OTLP_ENDPOINT: all,
      OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: traces,
      OTEL_EXPORTER_OTLP_PROTOCOL: "grpc",
    });
    expect(tracing).toMatchObject({ url, protocol: "http/protobuf" });
    expect(otelWarnings).toEqual([expect.stringContaining(url.replace(/^https?:\/\//, ""))]);
  });

  test("those for traces override those for all signals, and OTEL_SERVICE_NAME the attribute", () => {
    const { tracing } = readConfig({
      OTEL_EXPORTER_OTLP_ENDPOINT: "http://all:4318",
      OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "http://traces:4318/own",
      OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: "http/protobuf",
      OTEL_EXPORTER_OTLP_HEADERS: "a=1,b=1",
      OTEL_EXPORTER_OTLP_TRACES_HEADERS: "b=2",
      OTEL_EXPORTER_OTLP_TRACES_TIMEOUT: "500",
      OTEL_RESOURCE_ATTRIBUTES: "service.name=attribute",
    });
    expect(tracing).toMatchObject({
      url: "http://traces:4318/own",
      protocol: "http/protobuf",
      headers: { a: "1", b: "2" },
      timeoutMs: 500,
      attributes: { "service.name": "attribute" },
    });
    const named = { ...traced(), OTEL_RESOURCE_ATTRIBUTES: "service.name=attribute" };
    expect(readConfig(named).tracing?.attributes["service.name"]).toBe("waybill-test");
  });
});
