/**
 * Traces: where spans of OpenTelemetry begin and end. Off unless an OTLP endpoint is configured (`open-tracing.ts`, the only file
 * that loads the library): every question here is then answered by one comparison with null.
 *
 * The context of a trace travels with an event as the text of the header `traceparent` (W3C Trace Context). Only sampled traces are
 * carried, so that an event that nobody traces costs no byte in the logs.
 */
import { AsyncLocalStorage } from "node:async_hooks";

export type SpanKind = "server" | "consumer" | "client";

/** No personal data, secrets or paths with ids of customers. */
export type SpanFacts = Readonly<Record<string, string | number | boolean>>;

/** A span that is recorded. */
export interface TracedWork {
  /** What carries the trace on: its children name it as their parent. */
  readonly traceparent: string;
  readonly traceId: string;
  readonly set: (facts: SpanFacts) => void;
  readonly rename: (name: string) => void;
  /** @param failure why the work failed; absent = it did not */
  readonly end: (failure?: string) => void;
}

export interface Tracing {
  /** Whether callers' traces are continued, and receivers are sent ours. */
  readonly propagates: boolean;
  /** @param parent a `traceparent`; one that cannot be read begins a new trace @returns null if the trace is not sampled */
  readonly begin: (kind: SpanKind, name: string, parent: string | null) => TracedWork | null;
}

const current = new AsyncLocalStorage<TracedWork>();
let tracing: Tracing | null = null;

/** @param next null = no traces */
export function useTracing(next: Tracing | null): void {
  tracing = next;
}

export function isTracing(): boolean {
  return tracing !== null;
}

/** The first span of this service in a trace. */
export function beginTrace(kind: SpanKind, name: string, parent: string | null): TracedWork | null {
  return tracing === null ? null : tracing.begin(kind, name, tracing.propagates ? parent : null);
}

/** What a receiver is sent of a span. */
export function sentOf(span: TracedWork | null): string | undefined {
  return tracing?.propagates ? span?.traceparent : undefined;
}

/** The next span of a trace that an event carries; null for an event without one. */
export function continueTrace(
  kind: SpanKind,
  name: string,
  parent: string | undefined,
): TracedWork | null {
  return tracing === null || parent === undefined ? null : tracing.begin(kind, name, parent);
}

/** What OpenTelemetry asks of the span of a message that is processed. @param log such as `event` */
export function messageFacts(log: "event" | "change", operation: string): SpanFacts {
  return {
    "messaging.system": "redis",
    "messaging.destination.name": log,
    "messaging.operation.name": operation,
    "messaging.operation.type": "process",
  };
}

/** The span of the request that is being answered, wherever its work goes on. */
export function currentSpan(): TracedWork | null {
  return tracing === null ? null : (current.getStore() ?? null);
}

export function withSpan<T>(span: TracedWork, work: () => T): T {
  return current.run(span, work);
}
