/**
 * One POST to a receiver (document 3, "Transport rules"): the host is resolved and judged on every send, the connection
 * goes to exactly the address that was judged, the certificate is verified for the host's name, redirects are not
 * followed, and 10 seconds cover everything from the name to the last byte that is read.
 *
 * node:https and not fetch: `fetch` keeps at most 64 idle connections and honours proxies from the environment.
 */
import { readFile } from "node:fs/promises";
import {
  type ClientRequest,
  Agent as HttpAgent,
  request as httpRequest,
  type IncomingMessage,
} from "node:http";
import { Agent, request } from "node:https";
import { isIP } from "node:net";
import { createSecureContext, rootCertificates } from "node:tls";
import type { Cidr } from "#core/config.ts";
import type { Answer } from "#core/domain/delivery-outcome.ts";
import { hostOf, type Resolve, vetHost } from "#core/vetted-address.ts";

/** Document 3, "Limits": the whole request. */
const REQUEST_LIMIT_MS = 10_000;
/** What is read of a response body; the rest is cut off with its connection. */
const RESPONSE_LIMIT_BYTES = 16 * 1024;
/** What is kept of it. */
const SNIPPET_BYTES = 1024;
/** Idle connections kept per receiver and address, and for how long. */
const IDLE_CONNECTIONS = 10;
const IDLE_MS = 30_000;

export interface TransportOptions {
  /** Networks that may be reached although they are not public. */
  readonly allowed: readonly Cidr[];
  /** PEM roots trusted beside the usual ones; null = none. */
  readonly ca: string | null;
  readonly resolve?: Resolve;
  readonly limitMs?: number;
}

export type Sent = Answer & {
  readonly durationMs: number;
  readonly responseSnippet: string | null;
  /** What was read of the body: at most 16 KiB. Null when nothing came. */
  readonly responseBody: string | null;
};

export interface PostOptions {
  /** Webhooks v1 only; v2 is HTTPS. */
  readonly allowHttp?: boolean;
}

export interface Transport {
  /** Whatever happens on the way is an answer. @throws where nothing could be sent, such as to a URL that does not parse */
  readonly post: (
    url: string,
    headers: Readonly<Record<string, string>>,
    body: string,
    options?: PostOptions,
  ) => Promise<Sent>;
  readonly close: () => void;
}

export async function readCa(path: string | null): Promise<string | null> {
  return path === null ? null : readFile(path, "utf8");
}

export function createTransport(options: TransportOptions): Transport {
  const { allowed, ca, resolve, limitMs = REQUEST_LIMIT_MS } = options;
  // One context for all connections: parsing the roots again for each would cost more than the handshake.
  const trust =
    ca === null ? {} : { secureContext: createSecureContext({ ca: [...rootCertificates, ca] }) };
  const kept = { keepAlive: true, maxFreeSockets: IDLE_CONNECTIONS, timeout: IDLE_MS };
  const agents = {
    "https:": { kept: new Agent({ ...trust, ...kept }), fresh: new Agent(trust), request },
    "http:": { kept: new HttpAgent(kept), fresh: new HttpAgent(), request: httpRequest },
  };

  async function answerOf(
    url: URL,
    headers: Readonly<Record<string, string>>,
    body: Buffer,
    deadline: Deadline,
  ): Promise<Reply> {
    const host = hostOf(url);
    const vetted = await vetHost(host, allowed, resolve);
    if (vetted.kind === "refused") return REFUSED_ADDRESS;
    if (vetted.kind === "unresolved") return replyOf({ kind: "unreachable", error: vetted.error });
    if (deadline.passed()) return TIMEOUT;
    const { kept: agent, fresh, request: open } = agents[url.protocol as keyof typeof agents];
    const target = {
      agent,
      host: vetted.address,
      port: url.port === "" ? DEFAULT_PORTS[url.protocol] : Number(url.port),
      // A literal address is verified as an address; names only are sent as SNI.
      servername: isIP(host) === 0 ? host : "",
      method: "POST",
      path: `${url.pathname}${url.search}`,
      headers: { Host: url.host, ...headers, "Content-Length": String(body.length) },
    };
    const reply = await exchange(open(target), body, deadline);
    if (!reply.stale || deadline.passed()) return reply;
    return exchange(open({ ...target, agent: fresh }), body, deadline);
  }

  return {
    async post(url, headers, body, { allowHttp = false } = {}) {
      const startMs = performance.now();
      const target = new URL(url);
      const mayGo = target.protocol === "https:" || (allowHttp && target.protocol === "http:");
      const deadline = createDeadline(limitMs);
      const answering = mayGo
        ? answerOf(target, headers, Buffer.from(body), deadline)
        : REFUSED_PROTOCOL;
      const reply = Promise.race([answering, deadline.reached]);
      const { answer, bytes } = await reply.finally(deadline.clear);
      const durationMs = Math.round(performance.now() - startMs);
      const responseSnippet = textOf(bytes.subarray(0, SNIPPET_BYTES));
      return { ...answer, durationMs, responseSnippet, responseBody: textOf(bytes) };
    },
    close: () => {
      for (const { kept: one, fresh } of Object.values(agents)) {
        one.destroy();
        fresh.destroy();
      }
    },
  };
}

interface Reply {
  readonly answer: Answer;
  /** What was read of the body. */
  readonly bytes: Buffer;
  /** The receiver closed an idle connection at the moment it was used again: worth one more try at once. */
  readonly stale?: boolean;
}

const NOTHING = Buffer.alloc(0);
const DEFAULT_PORTS: Readonly<Record<string, number>> = { "https:": 443, "http:": 80 };

const TIMEOUT = replyOf({ kind: "unreachable", error: "timeout" });
const REFUSED_PROTOCOL = replyOf({ kind: "refused", error: "only https:// is accepted" });
const REFUSED_ADDRESS = replyOf({
  kind: "refused",
  error: "host resolves to a non-public address",
});

function replyOf(answer: Answer, bytes: Buffer = NOTHING): Reply {
  return { answer, bytes };
}

interface Deadline {
  /** Settles with the timeout when the time is over, and never before. */
  readonly reached: Promise<Reply>;
  readonly passed: () => boolean;
  /** What is to be torn down when the time is over. */
  readonly onPassed: (action: () => void) => void;
  readonly clear: () => void;
}

function createDeadline(limitMs: number): Deadline {
  const { promise, resolve } = Promise.withResolvers<Reply>();
  const actions: (() => void)[] = [];
  let over = false;
  const timer = setTimeout(() => {
    over = true;
    for (const action of actions) action();
    resolve(TIMEOUT);
  }, limitMs);
  return {
    reached: promise,
    passed: () => over,
    onPassed: (action) => void actions.push(action),
    clear: () => clearTimeout(timer),
  };
}

/** One request on one connection; ends with whatever came first. */
function exchange(call: ClientRequest, body: Buffer, deadline: Deadline): Promise<Reply> {
  const { promise, resolve } = Promise.withResolvers<Reply>();
  let answered = false;
  deadline.onPassed(() => call.destroy());
  call.on("response", (response) => {
    answered = true;
    void readReply(response).then(resolve);
  });
  call.on("upgrade", (response, socket) => {
    socket.destroy();
    resolve(replyOf({ kind: "answered", httpStatus: response.statusCode ?? 101 }));
  });
  call.on("error", (error) => {
    const stale = !answered && call.reusedSocket && codeOf(error) === "ECONNRESET";
    resolve({ ...replyOf({ kind: "unreachable", error: faultOf(error) }), stale });
  });
  call.end(body);
  return promise;
}

/** Reads at most 16 KiB; what is longer is cut off together with its connection. */
function readReply(response: IncomingMessage): Promise<Reply> {
  const { promise, resolve } = Promise.withResolvers<Reply>();
  const chunks: Buffer[] = [];
  let bytes = 0;
  const settle = (answer: Answer) => resolve(replyOf(answer, Buffer.concat(chunks)));
  const complete = () => settle(answeredBy(response));
  const broken = () => settle({ kind: "unreachable", error: "connection: answer broken off" });
  response.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes <= RESPONSE_LIMIT_BYTES) chunks.push(chunk);
    if (bytes <= RESPONSE_LIMIT_BYTES) return;
    complete();
    response.destroy();
  });
  response.on("end", complete);
  response.on("error", broken);
  response.on("close", broken);
  return promise;
}

function answeredBy({ statusCode = 0, headers }: IncomingMessage): Answer {
  const retryAfter = headers["retry-after"];
  return {
    kind: "answered",
    httpStatus: statusCode,
    ...(retryAfter !== undefined && { retryAfter }),
  };
}

/** Decoded as a stream, a character cut in two at the end is left out. */
function textOf(bytes: Buffer): string | null {
  return bytes.length === 0 ? null : new TextDecoder().decode(bytes, { stream: true });
}

function codeOf(error: unknown): string {
  const { code } = error as { code?: unknown };
  return typeof code === "string" ? code.replace(/^DNS_/, "") : "failed";
}

/** Codes of the operating system and of HTTP are the connection's; all others come from TLS. */
function faultOf(error: unknown): string {
  const code = codeOf(error);
  return `${/^(E(?!RR_)|HPE_|failed)/.test(code) ? "connection" : "tls"}: ${code}`;
}
