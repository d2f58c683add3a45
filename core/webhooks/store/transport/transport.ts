/**
 * One POST to a receiver (document 3, "Transport rules"): the host is resolved and judged on every send, the connection
 * goes to exactly the addresses that were judged, one after the other until one accepts it, the certificate is verified for
 * the host's name, redirects are not followed, and 10 seconds cover everything from the name to the last byte that is read.
 * Nothing is sent twice, and the status line is the answer: header lines that no parser accepts, and a body that is cut, slow or
 * broken, change nothing. A body is asked for uncompressed and inflated where it is not.
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
import { Agent, type RequestOptions, request } from "node:https";
import { createSecureContext, rootCertificates } from "node:tls";
import type { Cidr } from "#core/platform/network/cidr.ts";
import type { Resolve } from "#core/platform/network/resolve-name.ts";
import { vetHost } from "#core/platform/network/vetted-address.ts";
import { limit } from "#core/platform/schema/limit.ts";
import { DEFAULT_MAX_CONCURRENCY } from "#core/webhooks/rules/concurrency.ts";
import type { Answer } from "#core/webhooks/rules/delivery-outcome.ts";
import { withoutOwnSignatures } from "#core/webhooks/rules/shown-answer.ts";
import { inflated, readHead } from "./answer-bytes.ts";
import { rememberTargets, type Target } from "./targets.ts";

/** Document 3, "Limits": the whole request. */
const REQUEST_LIMIT_MS = limit(
  10_000,
  "time for a receiver's answer",
  "a failed attempt, unless its status line has come",
);
/** A deadline that comes so late tells that the process stood still: what has come meanwhile was no receiver's fault and is read first. */
const STOOD_STILL_MS = 100;
const READ_ON_MS = limit(
  1_000,
  "time to read the answers that came while the process stood still",
  "a failed attempt",
);
/** What is read of a response body; the rest is cut off with its connection. */
const RESPONSE_LIMIT_BYTES = limit(
  16 * 1024,
  "what is read of a receiver's answer, inflated",
  "the rest is not read",
);
/**
 * Header lines of an answer, beside its body, that are read: some receivers send cookies and policies by the kilobyte. What is
 * longer is answered by its status line.
 */
export const HEADER_LIMIT_BYTES = limit(
  256 * 1024,
  "header lines read of a receiver's answer",
  "its status line counts, and nothing else of it",
);
/** What is kept of it. */
const SNIPPET_BYTES = 1024;
/** Characters that are searched for signatures: masked ones are shorter, so some of what follows moves up. */
const SNIPPET_READ = 8 * SNIPPET_BYTES;
/** Shorter answers have no room for a signature. */
const SHORTEST_ECHO = 20;
/** Idle connections kept per receiver and address: as many as may be in use at once. */
const IDLE_CONNECTIONS = DEFAULT_MAX_CONCURRENCY;
/**
 * How long they are kept. Common receivers close idle connections after 5 s (Node.js, Apache, uvicorn): a request that hits
 * such a close is a failed attempt, since nobody knows whether it arrived.
 */
const IDLE_MS = 4_000;
/** Addresses of a name that are tried, and how long each may take to accept the connection while there is another one. */
const ADDRESSES_TRIED = 4;
const CONNECT_LIMIT_MS = 2_000;

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
  /** What was read of the body, inflated: at most 16 KiB. Null when nothing came. */
  readonly responseBody: string | null;
  /** Names and values in turn, as they came; empty when no head was read. */
  readonly responseHeaders: readonly string[];
};

export interface PostOptions {
  /** Webhooks v1 only; v2 is HTTPS. */
  readonly allowHttp?: boolean;
}

export interface Transport {
  /**
   * Any failure on the way is an answer.
   * @throws if nothing could be sent, such as to a URL that cannot be parsed
   */
  readonly post: (
    url: string,
    headers: Readonly<Record<string, string>>,
    body: string | Buffer,
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
  const targets = rememberTargets();
  const agents: Agents = {
    "https:": { agent: new PinnedAgent({ ...trust, ...kept }), request },
    "http:": { agent: new HttpAgent(kept), request: httpRequest },
  };
  const network = { allowed, resolve, agents };

  return {
    async post(url, headers, body, { allowHttp = false } = {}) {
      const startMs = performance.now();
      const target = targets(url);
      const mayGo = target.protocol === "https:" || (allowHttp && target.protocol === "http:");
      const deadline = createDeadline(limitMs);
      const answering = mayGo
        ? answerOf(
            network,
            target,
            headers,
            Buffer.isBuffer(body) ? body : Buffer.from(body),
            deadline,
          )
        : REFUSED_PROTOCOL;
      const reply = await Promise.resolve(answering).finally(deadline.clear);
      const { answer, coding } = reply;
      const durationMs = Math.round(performance.now() - startMs);
      const bytes =
        coding === "" ? reply.bytes : await inflated(reply.bytes, coding, RESPONSE_LIMIT_BYTES);
      const responseBody = textOf(bytes);
      const responseSnippet = snippetOf(responseBody, headers);
      const { headers: responseHeaders } = reply;
      return { ...answer, durationMs, responseSnippet, responseBody, responseHeaders };
    },
    close: () => {
      for (const { agent } of Object.values(agents)) agent.destroy();
    },
  };
}

interface Agents {
  readonly "https:": { readonly agent: Agent; readonly request: typeof request };
  readonly "http:": { readonly agent: HttpAgent; readonly request: typeof httpRequest };
}

interface Network {
  readonly allowed: readonly Cidr[];
  readonly resolve: Resolve | undefined;
  readonly agents: Agents;
}

/** Addresses are tried one after the other until one accepts the connection. */
async function answerOf(
  { allowed, resolve, agents }: Network,
  target: Target,
  headers: Readonly<Record<string, string>>,
  body: Buffer,
  deadline: Deadline,
): Promise<Reply> {
  const { host, authority, protocol, port, servername, path } = target;
  const vetted = await Promise.race([vetHost(host, allowed, resolve), deadline.reached]);
  await nextTurn();
  if (vetted === null) return TIMEOUT;
  if (vetted.kind === "refused") return REFUSED_ADDRESS;
  if (vetted.kind === "unresolved") return replyOf({ kind: "unreachable", error: vetted.error });
  const { agent, request: open } = agents[protocol as keyof Agents];
  const lines = headerLines(authority, headers, body.length);
  const common = { agent, port, servername, method: "POST", path, headers: lines, ...LENIENT };
  const addresses = vetted.addresses.slice(0, ADDRESSES_TRIED);
  let reply = TIMEOUT;
  for (const [at, address] of addresses.entries()) {
    const limit = at < addresses.length - 1 ? CONNECT_LIMIT_MS : null;
    reply = await exchange(open({ ...common, host: address }), body, deadline, limit);
    if (reply.connected || deadline.passed()) break;
  }
  return reply;
}

/** Answers that are read although a strict parser refuses them: folded header lines, line ends of LF, two ways to tell the length. */
const LENIENT = { maxHeaderSize: HEADER_LIMIT_BYTES, insecureHTTPParser: true };

/** Names and values in turn: as an object, each would be looked up and checked on its own. */
function headerLines(
  authority: string,
  headers: Readonly<Record<string, string>>,
  bodyBytes: number,
): string[] {
  const lines = ["Host", authority];
  for (const [name, value] of Object.entries(headers)) lines.push(name, value);
  lines.push("Content-Length", String(bodyBytes));
  return lines;
}

/**
 * Connections are kept by what distinguishes them: address, port and the name that the certificate was verified for. Node.js
 * spells out every option of TLS for that, twice a request; here all other options are those of the agent.
 */
class PinnedAgent extends Agent {
  override getName({ host, port, servername }: RequestOptions = {}): string {
    return `${host}:${port}:${servername}`;
  }
}

let turn: Promise<void> | null = null;

/**
 * Requests of one turn of the event loop open together in the next one. Opened each in the middle of another one's answer,
 * before its connection is idle again, they cost a third more (120 instead of 90 us).
 */
function nextTurn(): Promise<void> {
  turn ??= new Promise((resolve) => {
    setImmediate(() => {
      turn = null;
      resolve();
    });
  });
  return turn;
}

interface Reply {
  readonly answer: Answer;
  /** What was read of the body. */
  readonly bytes: Buffer;
  /** How the body is compressed; empty = it is not. */
  readonly coding: string;
  readonly headers: readonly string[];
  /** A connection existed: data sent on it may have arrived. */
  readonly connected: boolean;
}

const NOTHING = Buffer.alloc(0);

const TIMEOUT = replyOf({ kind: "unreachable", error: "timeout" });
const REFUSED_PROTOCOL = replyOf({ kind: "refused", error: "only https:// is accepted" });
const REFUSED_ADDRESS = replyOf({
  kind: "refused",
  error: "host resolves to a non-public address",
});

function replyOf(answer: Answer, bytes: Buffer = NOTHING, connected = true): Reply {
  return { answer, bytes, coding: "", headers: [], connected };
}

interface Deadline {
  /** Resolves to null when the time is over, and never before. */
  readonly reached: Promise<null>;
  readonly passed: () => boolean;
  /** What is to be torn down when the time is over. */
  readonly onPassed: (action: () => void) => void;
  readonly clear: () => void;
}

function createDeadline(limitMs: number): Deadline {
  const { promise, resolve } = Promise.withResolvers<null>();
  const actions: (() => void)[] = [];
  let over = false;
  const dueMs = performance.now() + limitMs;
  const end = () => {
    over = true;
    for (const action of actions) action();
    resolve(null);
  };
  let timer = setTimeout(() => {
    if (performance.now() - dueMs < STOOD_STILL_MS) end();
    else timer = setTimeout(end, READ_ON_MS);
  }, limitMs);
  return {
    reached: promise,
    passed: () => over,
    onPassed: (action) => void actions.push(action),
    clear: () => clearTimeout(timer),
  };
}

/**
 * One request on one connection; settles with whatever happens first.
 * @param connectLimitMs time to establish the connection; null = until the deadline
 */
function exchange(
  call: ClientRequest,
  body: Buffer,
  deadline: Deadline,
  connectLimitMs: number | null,
): Promise<Reply> {
  const { promise, resolve } = Promise.withResolvers<Reply>();
  let connected = false;
  let answer: Reader | null = null;
  const received = receivedBy(call);
  /** What the status line says, where the parser has not come to the end of the head. */
  const byStatusLine = () => {
    const head = readHead(received());
    return head && replyOf({ kind: "answered", httpStatus: head.httpStatus }, head.body);
  };
  const giveUp = () => {
    if (!connected) call.destroy();
  };
  const timer = connectLimitMs === null ? null : setTimeout(giveUp, connectLimitMs);
  call.on("socket", (socket) => {
    const reached = () => {
      connected = true;
      if (timer) clearTimeout(timer);
    };
    if (socket.connecting) socket.once("connect", reached);
    else reached();
  });
  deadline.onPassed(() => {
    resolve(answer?.taken() ?? byStatusLine() ?? TIMEOUT);
    call.destroy();
  });
  call.on("response", (response) => {
    answer = readReply(response);
    void answer.whole.then(resolve);
  });
  call.on("upgrade", (response, socket) => {
    socket.destroy();
    resolve(replyOf({ kind: "answered", httpStatus: response.statusCode ?? 101 }));
  });
  call.on("error", (error) => {
    if (timer) clearTimeout(timer);
    const fault = replyOf({ kind: "unreachable", error: faultOf(error) }, NOTHING, connected);
    // The parser reports an invalid body here, after the response.
    resolve(answer?.taken() ?? byStatusLine() ?? fault);
  });
  call.end(body);
  return promise;
}

/**
 * What the connection of a call brings from now on, up to as much as is ever read.
 * @returns reads it so far
 */
function receivedBy(call: ClientRequest): () => Buffer {
  const chunks: Buffer[] = [];
  let bytes = 0;
  const keep = (chunk: Buffer) => {
    if (bytes < HEADER_LIMIT_BYTES + RESPONSE_LIMIT_BYTES) chunks.push(chunk);
    bytes += chunk.length;
  };
  call.on("socket", (socket) => {
    // Before the parser: what it refuses has been kept by then. Kept alive, the connection is the next call's.
    socket.prependListener("data", keep);
    call.once("close", () => socket.removeListener("data", keep));
    call.once("response", () => socket.removeListener("data", keep));
  });
  return () => Buffer.concat(chunks);
}

interface Reader {
  /** The answer with its complete body, or with the part received before it broke off. */
  readonly whole: Promise<Reply>;
  /** The answer with the part of its body received so far. */
  readonly taken: () => Reply;
}

/** Reads at most 16 KiB; what is longer is cut off together with its connection. */
function readReply(response: IncomingMessage): Reader {
  const { promise, resolve } = Promise.withResolvers<Reply>();
  const chunks: Buffer[] = [];
  let bytes = 0;
  const coding = response.headers["content-encoding"] ?? "";
  const { rawHeaders: headers } = response;
  const taken = () => ({
    ...replyOf(answeredBy(response), Buffer.concat(chunks)),
    coding,
    headers,
  });
  const end = () => resolve(taken());
  response.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes <= RESPONSE_LIMIT_BYTES) {
      chunks.push(chunk);
      return;
    }
    end();
    response.destroy();
  });
  response.on("end", end);
  response.on("error", end);
  response.on("close", end);
  return { whole: promise, taken };
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

/** Masked before it is cut, since half a signature would not be recognized. */
function snippetOf(body: string | null, headers: Readonly<Record<string, string>>): string | null {
  if (body === null || body.length < SHORTEST_ECHO) return body;
  const masked = withoutOwnSignatures(body.slice(0, SNIPPET_READ), headers);
  return textOf(Buffer.from(masked).subarray(0, SNIPPET_BYTES));
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
