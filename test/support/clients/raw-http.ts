/** HTTP written by hand over TCP: Host and path reach the server as they are, which no client library lets through. */
import { connect, type Socket } from "node:net";

const ANSWER_LIMIT_MS = 60_000;

export interface RawAnswer {
  /** 0 when the server closed the connection without an answer. */
  readonly status: number;
  /** Names in lower case. */
  readonly headers: ReadonlyMap<string, string>;
  readonly body: string;
}

export interface RawConnection {
  /** One request at a time; connects again where the server has closed the connection. */
  readonly ask: (request: string) => Promise<RawAnswer>;
  readonly close: () => void;
}

/** Header lines are given as they shall be sent, Host among them. */
export function rawRequest(
  method: string,
  target: string,
  headers: readonly string[],
  { body = "", version = "1.1" }: { readonly body?: string; readonly version?: string } = {},
): string {
  const length = body === "" ? [] : [`Content-Length: ${Buffer.byteLength(body)}`];
  const lines = [`${method} ${target} HTTP/${version}`, ...headers, ...length];
  return `${lines.join("\r\n")}\r\n\r\n${body}`;
}

export function openRawConnection(url: string): RawConnection {
  const { hostname, port } = new URL(url);
  let socket: Socket | null = null;

  async function connected(): Promise<Socket> {
    if (socket && !socket.destroyed && socket.writable) return socket;
    const { promise, resolve, reject } = Promise.withResolvers<Socket>();
    const opening = connect(Number(port), hostname, () => resolve(opening));
    opening.once("error", reject);
    socket = await promise;
    return socket;
  }

  async function ask(request: string): Promise<RawAnswer> {
    const open = await connected();
    const answer = await exchange(open, request);
    if (!answer.keepsOpen) open.destroy();
    return answer;
  }

  return {
    async ask(request) {
      const answer = await ask(request);
      // A server may close an idle connection at any time: only a new one tells whether it was the request.
      return answer.status === 0 ? ask(request) : answer;
    },
    close: () => void socket?.destroy(),
  };
}

function exchange(socket: Socket, request: string): Promise<RawAnswer & { keepsOpen: boolean }> {
  return new Promise((resolve, reject) => {
    let received = "";
    const timer = setTimeout(() => finish(null), ANSWER_LIMIT_MS);

    function finish(answer: ReturnType<typeof readAnswer>, keepsOpen = false): void {
      clearTimeout(timer);
      socket.removeAllListeners("data").removeAllListeners("close").removeAllListeners("error");
      socket.on("error", () => {});
      if (answer) resolve({ ...answer, keepsOpen });
      else reject(new Error(`no answer to ${JSON.stringify(request)}: ${received}`));
    }

    socket.on("data", (bytes) => {
      received += bytes.toString("latin1");
      const answer = readAnswer(received, request.startsWith("HEAD "), false);
      const isClosing =
        request.includes(" HTTP/1.0\r\n") || answer?.headers.get("connection") === "close";
      if (answer) finish(answer, !isClosing);
    });
    const ended = () => finish(readAnswer(received, request.startsWith("HEAD "), true));
    socket.on("close", ended).on("error", ended);
    socket.write(request, "latin1");
  });
}

/** Null while something is missing of it. */
export function readAnswer(text: string, isHead: boolean, isClosed: boolean): RawAnswer | null {
  const end = text.indexOf("\r\n\r\n");
  if (end < 0) return isClosed ? { status: 0, headers: new Map(), body: text } : null;
  const [first = "", ...lines] = text.slice(0, end).split("\r\n");
  const headers = new Map(
    lines.map((line) => {
      const colon = line.indexOf(":");
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()] as const;
    }),
  );
  const body = text.slice(end + 4);
  const status = Number(first.split(" ")[1]);
  const length = headers.get("content-length");
  const isWhole =
    isHead || isClosed || status === 204 || length === undefined
      ? headers.get("transfer-encoding") !== "chunked" || body.endsWith("0\r\n\r\n")
      : body.length >= Number(length);
  return isWhole ? { status, headers, body } : null;
}

/** Of a connection that was answered: whatever follows comes at once. */
const MORE_MS = 150;

/** Any bytes, on a connection of their own. @returns the status of each answer until the server closes or says no more */
export async function statusesOf(url: string, bytes: string): Promise<readonly number[]> {
  const { hostname, port } = new URL(url);
  const statuses: number[] = [];
  const { promise, resolve } = Promise.withResolvers<void>();
  let timer = setTimeout(resolve, ANSWER_LIMIT_MS);
  let received = "";
  const socket = connect(Number(port), hostname, () => socket.write(bytes, "latin1"));
  socket.on("data", (more) => {
    received += more.toString("latin1");
    for (let length = lengthOfFirst(received); length > 0; length = lengthOfFirst(received)) {
      statuses.push(Number(received.slice(9, 12)));
      received = received.slice(length);
    }
    clearTimeout(timer);
    timer = setTimeout(resolve, statuses.length > 0 ? MORE_MS : ANSWER_LIMIT_MS);
  });
  socket.on("close", () => resolve()).on("error", () => resolve());
  await promise;
  clearTimeout(timer);
  socket.destroy();
  return statuses;
}

/** Of the first answer in a text; 0 while something is missing of it. */
function lengthOfFirst(text: string): number {
  const body = text.indexOf("\r\n\r\n") + 4;
  if (body < 4) return 0;
  const head = text.slice(0, body).toLowerCase();
  if (head.includes("\r\ntransfer-encoding: chunked")) {
    const last = text.indexOf("0\r\n\r\n", body);
    return last < 0 ? 0 : last + 5;
  }
  const whole = body + Number(/\r\ncontent-length: *(\d+)/.exec(head)?.[1] ?? 0);
  return text.length < whole ? 0 : whole;
}
