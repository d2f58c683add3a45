/** Sends requests from a process of its own, so that what it does counts for nothing of ours. */
import { createInterface } from "node:readline";
import { Readable } from "node:stream";

export interface SentRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Of a file with the body. */
  readonly path: string;
}

export interface RequestSender {
  /** One at a time. @returns the status; 0 = no answer */
  readonly send: (request: SentRequest) => Promise<number>;
  readonly end: () => void;
}

const SENDER = `
for await (const line of console) {
  const { method, url, headers, path } = JSON.parse(line);
  const bytes = await Bun.file(path).bytes();
  const body = method === "GET" || method === "HEAD" ? undefined : bytes;
  try {
    const answer = await fetch(url, { method, headers, body, redirect: "manual" });
    await answer.arrayBuffer();
    console.log(answer.status);
  } catch {
    console.log(0);
  }
}
`;

export function openRequestSender(): RequestSender {
  const child = Bun.spawn([process.execPath, "-e", SENDER], {
    stdin: "pipe",
    stdout: "pipe",
    stderr: "inherit",
  });
  const lines = createInterface({ input: Readable.from(child.stdout) })[Symbol.asyncIterator]();
  return {
    async send(request) {
      child.stdin.write(`${JSON.stringify(request)}\n`);
      child.stdin.flush();
      const { value } = await lines.next();
      return Number(value);
    },
    end: () => child.kill(),
  };
}
