/** The address that a page of ours names: the scheme is that of the caller, where a trusted proxy ends TLS. */
import { expect, test } from "bun:test";
import { originOf } from "#core/platform/http/peer.ts";
import { type Cidr, parseCidr } from "#core/platform/network/cidr.ts";

const LOOPBACK = ["127.0.0.0/8", "::1/128"]
  .map((text) => parseCidr(text))
  .filter((one) => one !== null);

async function originSeen(trustedProxies: readonly Cidr[], forwarded: string): Promise<string> {
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: (request, self) => new Response(originOf(request, self, { trustedProxies })),
  });
  const headers = { "x-forwarded-proto": forwarded };
  const answer = await fetch(server.url, { headers });
  const text = await answer.text();
  await server.stop(true);
  return text.replace(/:\d+$/, "");
}

test("a trusted proxy says by which scheme it was asked; nobody else does", async () => {
  expect(await originSeen(LOOPBACK, "https")).toBe("https://127.0.0.1");
  // Each proxy appends what it saw.
  expect(await originSeen(LOOPBACK, "http, https")).toBe("https://127.0.0.1");
  expect(await originSeen(LOOPBACK, "javascript")).toBe("http://127.0.0.1");
  expect(await originSeen([], "https")).toBe("http://127.0.0.1");
});
