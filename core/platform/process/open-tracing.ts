/** Sends traces to a collector over OTLP/HTTP. */

import { hostname } from "node:os";
import type { Config } from "#core/platform/environment/config.ts";
import type { TracingConfig } from "#core/platform/environment/tracing-config.ts";
import { VARIABLES } from "#core/platform/environment/variables.ts";
import { limit } from "#core/platform/schema/limit.ts";
import type { Log } from "./log.ts";
import { type SpanKind, type Tracing, useTracing } from "./tracing.ts";
import { VERSION } from "./version.ts";

const KINDS: Readonly<Record<SpanKind, "SERVER" | "CONSUMER" | "CLIENT">> = {
  server: "SERVER",
  consumer: "CONSUMER",
  client: "CLIENT",
};
const FLUSH_LIMIT_MS = limit(
  2_000,
  "time for the last traces to be sent when a process stops",
  "what is left is dropped",
);

/** Loads the library only when traces are on. @returns what sends the rest and ends tracing */
export async function openTracing(
  { tracing }: Pick<Config, "tracing">,
  log: Log,
): Promise<() => Promise<void>> {
  if (tracing === null) return async () => {};
  const { trace, ROOT_CONTEXT, SpanKind, SpanStatusCode, TraceFlags } = await import(
    "@opentelemetry/api"
  );
  const { parseTraceParent } = await import("@opentelemetry/core");
  const provider = await withWarnings(log, () => openProvider(tracing));
  const tracer = provider.getTracer("waybill");

  const begin: Tracing["begin"] = (kind, name, parent) => {
    const remote = parent === null ? null : parseTraceParent(parent);
    const context = remote
      ? trace.setSpanContext(ROOT_CONTEXT, { ...remote, isRemote: true })
      : ROOT_CONTEXT;
    const span = tracer.startSpan(name, { kind: SpanKind[KINDS[kind]] }, context);
    if (!span.isRecording()) return null;
    const { traceId, spanId } = span.spanContext();
    return {
      traceparent: `00-${traceId}-${spanId}-0${TraceFlags.SAMPLED}`,
      traceId,
      set: (facts) => void span.setAttributes(facts),
      rename: (next) => void span.updateName(next),
      end(failure) {
        if (failure !== undefined) {
          span.setStatus({ code: SpanStatusCode.ERROR, message: failure });
        }
        span.end();
      },
    };
  };
  useTracing({ begin, propagates: tracing.propagates });
  return async () => {
    useTracing(null);
    const sent = provider.shutdown().catch(() => {});
    await Promise.race([sent, Bun.sleep(FLUSH_LIMIT_MS)]);
  };
}

/** What the library finds wrong with the variables that it reads itself; `config.otelWarnings` has the others. */
async function withWarnings<T>(log: Log, open: () => Promise<T>): Promise<T> {
  const { diag, DiagLogLevel } = await import("@opentelemetry/api");
  const warnings = new Set<string>();
  const warn = (text: string) => void warnings.add(text);
  const ignore = () => {};
  const logger = { error: warn, warn, info: ignore, debug: ignore, verbose: ignore };
  diag.setLogger(logger, { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true });
  try {
    return await open();
  } finally {
    diag.disable();
    const own = Object.keys(VARIABLES);
    for (const text of warnings) {
      if (!own.some((name) => text.includes(name))) log.warn(`OpenTelemetry: ${text}`);
    }
  }
}

async function openProvider(tracing: TracingConfig) {
  const { sampler, share } = tracing;
  const sdk = await import("@opentelemetry/sdk-trace-base");
  const { defaultResource, resourceFromAttributes } = await import("@opentelemetry/resources");
  const own = {
    always_on: () => new sdk.AlwaysOnSampler(),
    always_off: () => new sdk.AlwaysOffSampler(),
    traceidratio: () => new sdk.TraceIdRatioBasedSampler(share),
  };
  const root = own[sampler.replace("parentbased_", "") as keyof typeof own]();
  return new sdk.BasicTracerProvider({
    sampler: sampler.startsWith("parentbased_") ? new sdk.ParentBasedSampler({ root }) : root,
    resource: defaultResource().merge(
      resourceFromAttributes({ ...instance(), ...tracing.attributes }),
    ),
    // A full queue drops spans: an unavailable collector delays nothing.
    spanProcessors: [new sdk.BatchSpanProcessor(await openExporter(tracing))],
  });
}

/** What tells the processes of one service apart; OTEL_RESOURCE_ATTRIBUTES may say otherwise. */
function instance(): Readonly<Record<string, string | number>> {
  return {
    "service.version": VERSION,
    "service.instance.id": crypto.randomUUID(),
    "host.name": hostname(),
    "process.pid": process.pid,
  };
}

async function openExporter({ url, protocol, headers, timeoutMs }: TracingConfig) {
  const { OTLPTraceExporter } =
    protocol === "http/protobuf"
      ? await import("@opentelemetry/exporter-trace-otlp-proto")
      : await import("@opentelemetry/exporter-trace-otlp-http");
  return new OTLPTraceExporter({ url, headers, timeoutMillis: timeoutMs });
}
