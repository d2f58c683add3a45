/**
 * A client that keeps its connections and uses them in turn, written over TCP: no library tries a request again behind its back, and
 * what the server did to each request is known.
 */
import { connect, type Socket } from "node:net";
import { type RawAnswer, readAnswer } from "./raw-http.ts";

const ANSWER_LIMIT_MS = 60_000;

export interface KeptConnections {
  /** Null if the connection was refused, or ended before the whole answer had come. */
  readonly ask: (request: string) => Promise<RawAnswer | null>;
  readonly close: () => void;
}

export function keepConnections(url: string): KeptConnections {
  const { hostname, port } = new URL(url);
  const free: Socket[] = [];
  const all = new Set<Socket>();

  function open(): Socket {
    const socket = connect(Number(port), hostname);
    all.add(socket);
    socket.on("error", () => {});
    socket.on("close", () => {
      all.delete(socket);
      const at = free.indexOf(socket);
      if (at >= 0) free.splice(at, 1);
    });
    return socket;
  }

  return {
    async ask(request) {
      const socket = free.shift() ?? open();
      const answer = await exchange(socket, request);
      if (answer === null || answer.headers.get("connection") === "close") socket.destroy();
      else free.push(socket);
      return answer;
    },
    close() {
      for (const socket of all) socket.destroy();
    },
  };
}

function exchange(socket: Socket, request: string): Promise<RawAnswer | null> {
  return new Promise((resolve) => {
    let received = "";
    const finish = (answer: RawAnswer | null) => {
      clearTimeout(timer);
      socket.off("data", read).off("close", end);
      resolve(answer);
    };
    const read = (bytes: Buffer) => {
      received += bytes.toString("latin1");
      const answer = readAnswer(received, false, false);
      if (answer) finish(answer);
    };
    const end = () => finish(null);
    const timer = setTimeout(end, ANSWER_LIMIT_MS);
    socket.on("data", read).on("close", end);
    if (socket.destroyed) end();
    else socket.write(request, "latin1");
  });
}
