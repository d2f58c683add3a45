/** An OpenTelemetry collector: a real HTTP server that takes traces as OTLP JSON. */

export interface CollectedSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string;
  readonly name: string;
  readonly kind: number;
  readonly isError: boolean;
  readonly service: unknown;
  readonly facts: Readonly<Record<string, unknown>>;
}

interface Attribute {
  readonly key: string;
  readonly value: Readonly<Record<string, unknown>>;
}

export interface Collector {
  readonly url: string;
  readonly spans: CollectedSpan[];
  /** Authorization of each request. */
  readonly authorizations: Array<string | null>;
  readonly stop: () => Promise<void>;
}

export function startCollector(): Collector {
  const spans: CollectedSpan[] = [];
  const authorizations: Array<string | null> = [];
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    routes: {
      "/v1/traces": {
        async POST(request) {
          authorizations.push(request.headers.get("authorization"));
          spans.push(...spansOf(await request.json()));
          return Response.json({});
        },
      },
    },
    fetch: () => new Response(null, { status: 404 }),
  });
  return {
    url: `http://127.0.0.1:${server.port}`,
    ...{ spans, authorizations },
    stop: () => server.stop(true),
  };
}

const ERROR = 2;

// biome-ignore lint/suspicious/noExplicitAny: the JSON of OTLP
function spansOf(body: any): CollectedSpan[] {
  return body.resourceSpans.flatMap(({ resource, scopeSpans }: typeof body) =>
    scopeSpans
      .flatMap(({ spans }: typeof body) => spans)
      .map((span: typeof body) => ({
        ...{ traceId: span.traceId, spanId: span.spanId, name: span.name, kind: span.kind },
        parentSpanId: span.parentSpanId ?? "",
        isError: span.status?.code === ERROR,
        service: factsOf(resource.attributes)["service.name"],
        facts: factsOf(span.attributes),
      })),
  );
}

function factsOf(attributes: readonly Attribute[]): Record<string, unknown> {
  return Object.fromEntries(
    attributes.map(({ key, value }) => [key, value["stringValue"] ?? Object.values(value)[0]]),
  );
}
