/** A real SMTP server that keeps what it takes, and says what a test wants it to say. */
import type { AddressInfo } from "node:net";
import { SMTPServer } from "smtp-server";

export interface ReceivedMail {
  readonly from: string;
  readonly to: readonly string[];
  readonly subject: string;
  readonly messageId: string;
  readonly html: string;
  readonly text: string;
  /** As it was transmitted. */
  readonly raw: string;
}

export interface MailServer {
  /** What SMTP_URL takes. */
  readonly url: string;
  readonly received: readonly ReceivedMail[];
  readonly forget: () => void;
  /** SMTP code of the answer to the next messages; null = taken. */
  refuse(code: number | null): void;
  /** Messages refused so far. */
  readonly refused: () => number;
  readonly stop: () => Promise<void>;
}

/** @param port 0 = a free one */
export async function startMailServer(port = 0): Promise<MailServer> {
  const received: ReceivedMail[] = [];
  let refusal: number | null = null;
  let refused = 0;
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ["STARTTLS"],
    onData(stream, { envelope }, done) {
      const chunks: Buffer[] = [];
      stream.on("data", (chunk: Buffer) => void chunks.push(chunk));
      stream.on("end", () => {
        const from = envelope.mailFrom === false ? "" : envelope.mailFrom.address;
        const to = envelope.rcptTo.map(({ address }) => address);
        if (refusal !== null) {
          refused += 1;
          done(Object.assign(new Error("not now"), { responseCode: refusal }));
          return;
        }
        const raw = String(Buffer.concat(chunks));
        received.push({ from, to, ...readMail(raw), raw });
        done();
      });
    },
  });
  server.on("error", () => {
    // A sender that is killed resets its connection; its mail has not been received.
  });
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", () => resolve()));
  const address = server.server.address() as AddressInfo;
  return {
    url: `smtp://127.0.0.1:${address.port}`,
    received,
    forget() {
      received.length = 0;
    },
    refuse(code) {
      refusal = code;
    },
    refused: () => refused,
    stop: () => new Promise((resolve) => server.close(() => resolve())),
  };
}

/** What a mail reader would show of a message made by nodemailer. */
export function readMail(raw: string) {
  const [head = ""] = raw.split("\r\n\r\n", 1);
  return {
    subject: decodeWords(header(head, "Subject")),
    messageId: header(head, "Message-ID"),
    html: partOf(raw, "text/html").replaceAll("\r\n", "\n"),
    text: partOf(raw, "text/plain").replaceAll("\r\n", "\n"),
  };
}

function header(head: string, name: string): string {
  const unfolded = head.replace(/\r\n[ \t]+/g, " ");
  return new RegExp(`^${name}: (.*)$`, "im").exec(unfolded)?.[1] ?? "";
}

function partOf(raw: string, type: string): string {
  const boundary = /boundary="([^"]+)"/.exec(raw)?.[1];
  const parts = boundary === undefined ? [raw] : raw.split(`--${boundary}`);
  const part = parts.find((one) => one.toLowerCase().includes(`content-type: ${type}`)) ?? "";
  const at = part.indexOf("\r\n\r\n");
  const body = part.slice(at + 4);
  const encoding = header(part.slice(0, at), "Content-Transfer-Encoding").toLowerCase();
  if (encoding === "base64") return Buffer.from(body, "base64").toString("utf8").trim();
  return encoding === "quoted-printable" ? decodeQuoted(body).trim() : body.trim();
}

function decodeQuoted(text: string): string {
  const bytes = text
    .replace(/=\r?\n/g, "")
    .replace(/=([0-9A-F]{2})/g, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)));
  return Buffer.from(bytes, "latin1").toString("utf8");
}

function decodeWords(text: string): string {
  return text
    .replace(/\?=\s+=\?/g, "?==?")
    .replace(/=\?utf-8\?([BQ])\?([^?]*)\?=/gi, (_, kind: string, word: string) =>
      kind.toUpperCase() === "B"
        ? Buffer.from(word, "base64").toString("utf8")
        : decodeQuoted(word.replaceAll("_", " ")),
    );
}
