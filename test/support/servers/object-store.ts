/** An S3-compatible store as far as a client needs it that reads and writes whole objects and checks its own requests. */
export interface ObjectStore {
  readonly url: string;
  /** By `bucket/key`. */
  readonly objects: ReadonlyMap<string, ArrayBuffer>;
  readonly stop: () => Promise<void>;
}

export function startObjectStore(accessKeyId: string): ObjectStore {
  const objects = new Map<string, ArrayBuffer>();
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      const signed = request.headers.get("authorization") ?? "";
      if (!signed.includes(`Credential=${accessKeyId}/`)) return fault(403, "AccessDenied");
      const name = decodeURIComponent(new URL(request.url).pathname.slice(1));
      if (request.method === "PUT") {
        objects.set(name, await request.arrayBuffer());
        return new Response(null, { headers: { etag: '"1"' } });
      }
      const found = objects.get(name);
      return found === undefined ? fault(404, "NoSuchKey") : new Response(found);
    },
  });
  return {
    url: `http://127.0.0.1:${server.port}`,
    objects,
    stop: () => server.stop(true),
  };
}

function fault(status: number, code: string): Response {
  const body = `<?xml version="1.0"?><Error><Code>${code}</Code><Message>${code}</Message></Error>`;
  return new Response(body, { status, headers: { "content-type": "application/xml" } });
}
