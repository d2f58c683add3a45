/** An OpenTelemetry collector: a real HTTP server that takes traces over OTLP, as JSON or as Protocol Buffers. */

export interface CollectedSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string;
  readonly name: string;
  readonly kind: number;
  readonly isError: boolean;
  readonly service: unknown;
  /** Of the process that sent it. */
  readonly resource: Readonly<Record<string, unknown>>;
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
  /** Content type of each request. */
  readonly contentTypes: Array<string | null>;
  readonly stop: () => Promise<void>;
}

export function startCollector(): Collector {
  const spans: CollectedSpan[] = [];
  const authorizations: Array<string | null> = [];
  const contentTypes: Array<string | null> = [];
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    routes: {
      "/v1/traces": {
        async POST(request) {
          authorizations.push(request.headers.get("authorization"));
          const contentType = request.headers.get("content-type");
          contentTypes.push(contentType);
          if (contentType === "application/x-protobuf") {
            spans.push(...spansOf(requestOf(new Uint8Array(await request.arrayBuffer()))));
            return new Response(null, { headers: { "content-type": contentType } });
          }
          spans.push(...spansOf(await request.json()));
          return Response.json({});
        },
      },
    },
    fetch: () => new Response(null, { status: 404 }),
  });
  return {
    url: `http://127.0.0.1:${server.port}`,
    spans,
    authorizations,
    contentTypes,
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
        traceId: span.traceId,
        spanId: span.spanId,
        name: span.name,
        kind: span.kind,
        parentSpanId: span.parentSpanId ?? "",
        isError: span.status?.code === ERROR,
        service: factsOf(resource.attributes)["service.name"],
        resource: factsOf(resource.attributes),
        facts: factsOf(span.attributes),
      })),
  );
}

function factsOf(attributes: readonly Attribute[]): Record<string, unknown> {
  return Object.fromEntries(
    attributes.map(({ key, value }) => [key, value["stringValue"] ?? Object.values(value)[0]]),
  );
}

/** Fields of a message by number: bytes of strings and messages, or a varint. */
function fieldsOf(bytes: Uint8Array): Map<number, Array<Uint8Array | number>> {
  const fields = new Map<number, Array<Uint8Array | number>>();
  let at = 0;
  const varint = () => {
    let value = 0;
    for (let factor = 1; ; factor *= 128) {
      const byte = bytes[at++] ?? 0;
      value += (byte & 127) * factor;
      if (byte < 128) return value;
    }
  };
  const take = (length: number) => {
    at += length;
    return bytes.subarray(at - length, at);
  };
  while (at < bytes.length) {
    const tag = varint();
    const [field, wire] = [tag >> 3, tag & 7];
    const value = wire === 0 ? varint() : take(wire === 2 ? varint() : wire === 1 ? 8 : 4);
    fields.set(field, [...(fields.get(field) ?? []), value]);
  }
  return fields;
}

const messages = (bytes: Uint8Array, field: number) =>
  (fieldsOf(bytes).get(field) ?? []).filter((value) => typeof value !== "number");
const textOf = (bytes: Uint8Array, field: number) =>
  new TextDecoder().decode(messages(bytes, field)[0]);
const hexOf = (bytes: Uint8Array, field: number) =>
  Buffer.from(messages(bytes, field)[0] ?? []).toString("hex");
const numberOf = (bytes: Uint8Array, field: number) => Number(fieldsOf(bytes).get(field)?.[0] ?? 0);

/** An ExportTraceServiceRequest in the form of its JSON, by the numbers of trace.proto, resource.proto and common.proto. */
function requestOf(bytes: Uint8Array) {
  const attributes = (message: Uint8Array, field: number) =>
    messages(message, field).map((pair) => {
      const [value = new Uint8Array()] = messages(pair, 2);
      const isText = fieldsOf(value).has(1);
      return {
        key: textOf(pair, 1),
        value: isText ? { stringValue: textOf(value, 1) } : { intValue: numberOf(value, 3) },
      };
    });
  return {
    resourceSpans: messages(bytes, 1).map((own) => ({
      resource: { attributes: messages(own, 1).flatMap((one) => attributes(one, 1)) },
      scopeSpans: messages(own, 2).map((scope) => ({
        spans: messages(scope, 2).map((span) => ({
          traceId: hexOf(span, 1),
          spanId: hexOf(span, 2),
          parentSpanId: hexOf(span, 4),
          name: textOf(span, 5),
          kind: numberOf(span, 6),
          attributes: attributes(span, 9),
          status: { code: messages(span, 15).map((status) => numberOf(status, 3))[0] ?? 0 },
        })),
      })),
    })),
  };
}
