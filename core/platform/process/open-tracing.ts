/** Sends traces to a collector over OTLP/HTTP. */
import type { Config, TracingConfig } from "#core/platform/environment/config.ts";
import { type SpanKind, type Tracing, useTracing } from "./tracing.ts";

const KINDS: Readonly<Record<SpanKind, "SERVER" | "CONSUMER" | "CLIENT">> = {
  server: "SERVER",
  consumer: "CONSUMER",
  client: "CLIENT",
};
/** For what has not been sent when the process stops. */
const FLUSH_LIMIT_MS = 2_000;

/** Loads the library only when traces are on. @returns what sends the rest and ends tracing */
export async function openTracing({
  tracing,
}: Pick<Config, "tracing">): Promise<() => Promise<void>> {
  if (tracing === null) return async () => {};
  const { trace, ROOT_CONTEXT, SpanKind, SpanStatusCode, TraceFlags } = await import(
    "@opentelemetry/api"
  );
  const { parseTraceParent } = await import("@opentelemetry/core");
  const provider = await openProvider(tracing);
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
  useTracing({ begin });
  return async () => {
    useTracing(null);
    const sent = provider.shutdown().catch(() => {});
    await Promise.race([sent, Bun.sleep(FLUSH_LIMIT_MS)]);
  };
}

async function openProvider({ url, headers, serviceName, sampler, share }: TracingConfig) {
  const sdk = await import("@opentelemetry/sdk-trace-base");
  const { OTLPTraceExporter } = await import("@opentelemetry/exporter-trace-otlp-http");
  const { defaultResource, resourceFromAttributes } = await import("@opentelemetry/resources");
  const own = {
    always_on: () => new sdk.AlwaysOnSampler(),
    always_off: () => new sdk.AlwaysOffSampler(),
    traceidratio: () => new sdk.TraceIdRatioBasedSampler(share),
  };
  const root = own[sampler.replace("parentbased_", "") as keyof typeof own]();
  return new sdk.BasicTracerProvider({
    sampler: sampler.startsWith("parentbased_") ? new sdk.ParentBasedSampler({ root }) : root,
    resource: defaultResource().merge(resourceFromAttributes({ "service.name": serviceName })),
    // A full queue drops spans: an unavailable collector delays nothing.
    spanProcessors: [new sdk.BatchSpanProcessor(new OTLPTraceExporter({ url, headers }))],
  });
}
