/**
 * OpenTelemetry variables are in the environment for others too: operators inject them into every pod. None of them stops a start;
 * each that cannot be honoured has one warning in the log.
 */
import { listed } from "./variable-kinds.ts";
import { PROPAGATORS, TRACE_EXPORTERS, VARIABLES } from "./variables.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/** The OpenTelemetry library reads these from the process environment itself. */
const OF_THE_LIBRARY = [
  /^OTEL_EXPORTER_OTLP_(TRACES_)?(COMPRESSION|CERTIFICATE|CLIENT_KEY|CLIENT_CERTIFICATE)$/,
  /^OTEL_BSP_(SCHEDULE_DELAY|EXPORT_TIMEOUT|MAX_QUEUE_SIZE|MAX_EXPORT_BATCH_SIZE)$/,
  /^OTEL_(SPAN_)?ATTRIBUTE_(VALUE_LENGTH|COUNT)_LIMIT$/,
  /^OTEL_SPAN_(EVENT|LINK|ATTRIBUTE_PER_EVENT|ATTRIBUTE_PER_LINK)_COUNT_LIMIT$/,
];
/** About signals and protocols that Waybill does not send: they are meant for others in the same environment. */
const ABOUT_OTHERS = [
  /^OTEL_EXPORTER_OTLP_(METRICS|LOGS|PROFILES)_/,
  /^OTEL_EXPORTER_(PROMETHEUS|ZIPKIN|JAEGER)_/,
  /^OTEL_EXPORTER_OTLP_(TRACES_)?INSECURE$/,
  /^OTEL_(BLRP|METRIC|METRICS|LOGRECORD)_/,
  /^OTEL_RESOURCE_ATTRIBUTES_/,
  /^OTEL_LOG_LEVEL$/,
];
/** Values that ask for nothing that Waybill lacks. */
const ACCEPTED: Readonly<
  Record<string, { readonly values: readonly string[]; readonly why: string }>
> = {
  OTEL_METRICS_EXPORTER: {
    values: ["none", "prometheus"],
    why: "metrics are not sent; Prometheus scrapes /metrics",
  },
  OTEL_LOGS_EXPORTER: { values: ["none"], why: "logs are not sent; they are on standard output" },
  OTEL_TRACES_EXPORTER: { values: TRACE_EXPORTERS, why: "traces are sent over OTLP only" },
  OTEL_PROPAGATORS: { values: PROPAGATORS, why: "traces are continued by tracecontext only" },
};

/** @returns a sentence for each OpenTelemetry variable that has no effect, or not all of it */
export function otelWarnings(env: Environment): string[] {
  const given = Object.keys(env).filter((name) => name.startsWith("OTEL_") && env[name]);
  return given.sort().flatMap((name) => {
    const accepted = ACCEPTED[name];
    if (accepted)
      return unaccepted(env[name] ?? "", accepted.values).map(
        (value) => `${name}: "${value}" has no effect: ${accepted.why}.`,
      );
    const isKnown =
      name in VARIABLES || [...OF_THE_LIBRARY, ...ABOUT_OTHERS].some((one) => one.test(name));
    return isKnown ? [] : [`${name}: not known; it has no effect.`];
  });
}

/** @returns the part of a list that is not accepted, or nothing */
function unaccepted(list: string, accepted: readonly string[]): string[] {
  const others = listed(list).filter((one) => !accepted.includes(one.toLowerCase()));
  return others.length > 0 ? [others.join(", ")] : [];
}
