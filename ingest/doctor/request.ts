/** One HTTP request, by what Node.js and Bun have in common: `fetch` takes client certificates in Bun alone. */
import { request as httpRequest, type IncomingMessage } from "node:http";
import { request as httpsRequest } from "node:https";

export interface Tls {
  /** PEM texts, where client certificates are asked for or the server's root is private. */
  readonly cert?: string;
  readonly key?: string;
  readonly ca?: string;
}

export interface RawAnswer {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: ReadonlyMap<string, string>;
  readonly text: string;
}

interface Asked {
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array | null;
  readonly tls: Tls;
}

const ANSWER_LIMIT_MS = 15_000;
/** Far above the answer to 500 events with every fault that is listed. */
const ANSWER_LIMIT_BYTES = 16 * 1024 * 1024;

/** @throws when nothing answers; `code` tells why, where the system does */
export function ask(url: string, asked: Asked): Promise<RawAnswer> {
  const { method, headers, body, tls } = asked;
  const send = new URL(url).protocol === "https:" ? httpsRequest : httpRequest;
  const length = body === null ? {} : { "content-length": String(body.length) };
  const options = { method, headers: { ...headers, ...length }, ...tls };
  return new Promise((resolve, reject) => {
    const asking = send(url, options, (response) => {
      read(response)
        .then(resolve, reject)
        .finally(() => clearTimeout(timer));
    });
    // From the name's resolution to the last byte: the sockets' own timeouts begin when they are connected.
    const timer = setTimeout(() => {
      asking.destroy(new Error(`no answer within ${ANSWER_LIMIT_MS / 1000} s`));
    }, ANSWER_LIMIT_MS);
    asking.on("error", (error) => {
      clearTimeout(timer);
      reject(error);
    });
    asking.end(body ?? undefined);
  });
}

async function read(response: IncomingMessage): Promise<RawAnswer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of response) {
    size += chunk.length;
    if (size > ANSWER_LIMIT_BYTES) throw new Error("the answer is too large");
    chunks.push(chunk);
  }
  const named = Object.entries(response.headers).map(([name, value]) => {
    return [name, String(value)] as const;
  });
  const text = Buffer.concat(chunks).toString();
  return { status: response.statusCode ?? 0, headers: new Map(named), text };
}
