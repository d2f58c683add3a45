/** Where traces go and which are recorded, as the OpenTelemetry variables say; they are off where no collector is named. */
import type { OtlpProtocol, TraceSampler, Values } from "./variables.ts";

export interface TracingConfig {
  /** Takes traces over OTLP/HTTP. */
  readonly url: string;
  readonly protocol: "http/json" | "http/protobuf";
  readonly headers: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  /** Of the resource; `service.name` is one of them. */
  readonly attributes: Readonly<Record<string, string>>;
  /** Whether callers' traces are continued, and receivers are sent ours. */
  readonly propagates: boolean;
  readonly sampler: TraceSampler;
  /** Of the traces that a ratio sampler records, from 0 to 1. */
  readonly share: number;
}

/** The ports of OTLP. */
const GRPC_PORT = "4317";
const HTTP_PORT = "4318";
const TRACES_PATH = "/v1/traces";

export function tracingOf(values: Values): TracingConfig | null {
  const asked = protocolOf(values);
  const url = asked === "grpc" ? urlBesideGrpc(values) : urlOf(values);
  if (url === null || values.OTEL_SDK_DISABLED === "true") return null;
  if (!values.OTEL_TRACES_EXPORTER.includes("otlp")) return null;
  const given = values.OTEL_RESOURCE_ATTRIBUTES ?? {};
  const name = values.OTEL_SERVICE_NAME ?? given["service.name"] ?? "waybill";
  return {
    url,
    protocol: asked === "grpc" ? "http/protobuf" : asked,
    headers: { ...values.OTEL_EXPORTER_OTLP_HEADERS, ...values.OTEL_EXPORTER_OTLP_TRACES_HEADERS },
    timeoutMs: values.OTEL_EXPORTER_OTLP_TRACES_TIMEOUT ?? values.OTEL_EXPORTER_OTLP_TIMEOUT,
    attributes: { ...given, "service.name": name },
    propagates: values.OTEL_PROPAGATORS.includes("tracecontext"),
    sampler: values.OTEL_TRACES_SAMPLER,
    share: values.OTEL_TRACES_SAMPLER_ARG ?? 1,
  };
}

/** Says what is done in place of gRPC. */
export function grpcWarnings(tracing: TracingConfig | null, values: Values): string[] {
  if (tracing === null || protocolOf(values) !== "grpc") return [];
  const name =
    values.OTEL_EXPORTER_OTLP_TRACES_PROTOCOL === null
      ? "OTEL_EXPORTER_OTLP_PROTOCOL"
      : "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL";
  const { host, pathname } = new URL(tracing.url);
  return [`${name}: gRPC is not supported; traces go to ${host}${pathname} as http/protobuf.`];
}

function protocolOf(values: Values): OtlpProtocol {
  return values.OTEL_EXPORTER_OTLP_TRACES_PROTOCOL ?? values.OTEL_EXPORTER_OTLP_PROTOCOL;
}

function urlOf(values: Values): string | null {
  const base = values.OTEL_EXPORTER_OTLP_ENDPOINT;
  return values.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT ?? (base === null ? null : tracesUnder(base));
}

/** A collector that takes gRPC mostly takes HTTP too, on the port beside it. gRPC's URL for traces has no path of its own. */
function urlBesideGrpc(values: Values): string | null {
  const base = values.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT ?? values.OTEL_EXPORTER_OTLP_ENDPOINT;
  if (base === null) return null;
  const url = new URL(base);
  if (url.port === GRPC_PORT) url.port = HTTP_PORT;
  return url.pathname.endsWith(TRACES_PATH) ? url.href : tracesUnder(url.href);
}

function tracesUnder(base: string): string {
  return `${base.replace(/\/+$/, "")}${TRACES_PATH}`;
}
