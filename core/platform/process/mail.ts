/** Outgoing mail: to the server of `SMTP_URL`, else into `.eml` files under `DATA_DIR/outbox`, one for each message id. */
import { createHash } from "node:crypto";
import { mkdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createTransport } from "nodemailer";
import type { Config } from "#core/platform/environment/config.ts";
import { isEmailAddress, readMailbox } from "#core/platform/schema/email-address.ts";

export interface Mail {
  /**
   * Made from what the mail is about, so that one that is sent again after a crash is the same message to whoever receives
   * it. Without angle brackets.
   */
  readonly messageId: string;
  readonly to: string;
  /** Absent = the sender of our own mail. */
  readonly from?: string;
  readonly subject: string;
  readonly text: string;
  readonly html?: string;
}

export interface Mailer {
  /** Settles once the server has taken the mail, or the file stands. @throws when it has not */
  readonly send: (mail: Mail) => Promise<void>;
  /** Takes a mail out of the outbox; one that a server has taken is gone. */
  readonly remove: (messageId: string) => Promise<void>;
  readonly close: () => void;
}

/** Each of the steps of one mail; together they stay under a minute. */
const STEP_LIMIT_MS = 15_000;
/** Connections kept open to the server, and mails sent over one of them. */
const CONNECTIONS = 3;

export type MailConfig = Pick<Config, "smtpUrl" | "mailFrom" | "dataDir">;

export function createMailer({ smtpUrl, mailFrom, dataDir }: MailConfig): Mailer {
  return smtpUrl === null
    ? createFileMailer(join(dataDir, "outbox"), mailFrom)
    : createSmtpMailer(smtpUrl, mailFrom);
}

function createSmtpMailer(smtpUrl: string, mailFrom: string): Mailer {
  const transport = createTransport({
    url: smtpUrl,
    pool: true,
    maxConnections: CONNECTIONS,
    connectionTimeout: STEP_LIMIT_MS,
    greetingTimeout: STEP_LIMIT_MS,
    socketTimeout: STEP_LIMIT_MS,
    // What a mail says comes from configuration: it names no files and no addresses to read from.
    disableFileAccess: true,
    disableUrlAccess: true,
  });
  return {
    async send(mail) {
      await transport.sendMail(envelopeOf(mail, mailFrom));
    },
    remove: async () => {},
    close: () => transport.close(),
  };
}

/** The file appears whole, under a name of its message id: written again it is the same file. */
function createFileMailer(folder: string, mailFrom: string): Mailer {
  const transport = createTransport({ streamTransport: true, buffer: true });
  return {
    async send(mail) {
      const { message } = await transport.sendMail(envelopeOf(mail, mailFrom));
      await mkdir(folder, { recursive: true, mode: 0o700 });
      const name = nameOf(mail.messageId);
      const draft = join(folder, `.${name}.${process.pid}`);
      await writeFile(draft, message as Buffer, { mode: 0o600 });
      await rename(draft, join(folder, `${name}.eml`));
    },
    remove: (messageId) => removeMail(folder, messageId),
    close: () => {},
  };
}

function nameOf(messageId: string): string {
  return createHash("sha256").update(messageId).digest("hex").slice(0, 32);
}

/** Of the outbox in `DATA_DIR`. */
export async function removeMails(
  { dataDir }: Pick<MailConfig, "dataDir">,
  messageIds: readonly string[],
): Promise<void> {
  for (const id of messageIds) await removeMail(join(dataDir, "outbox"), id);
}

async function removeMail(folder: string, messageId: string): Promise<void> {
  await rm(join(folder, `${nameOf(messageId)}.eml`), { force: true });
}

/** A recipient that is not one mailbox. It says nothing of the address, since it is logged. */
export class RecipientRefused extends Error {
  readonly code = "NOT_ONE_MAILBOX";

  constructor() {
    super("The address is not one mailbox.");
  }
}

/**
 * Addresses go to the mailer as such, never as text, which it would read as a list, a group or a name. What an earlier version
 * has stored may be one of these: nothing is sent to it, and as a sender our own address takes its place.
 * @throws {RecipientRefused}
 */
function envelopeOf({ messageId, to, from, subject, text, html }: Mail, mailFrom: string) {
  if (!isEmailAddress(to)) throw new RecipientRefused();
  const sender = (from === undefined ? null : readMailbox(from)) ?? readMailbox(mailFrom);
  if (sender === null) throw new Error("MAIL_FROM is no address");
  return {
    messageId: `<${messageId}>`,
    from: { ...sender },
    to: { name: "", address: to },
    subject: headerText(subject),
    text,
    ...(html !== undefined && { html }),
  };
}

/** Bytes of text in one encoded word, which has at most 75 characters (RFC 2047, section 2). */
const WORD_BYTES = 45;

/** A reader decodes what looks like an encoded word: a text that contains one is sent as encoded words itself. */
function headerText(given: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: a header takes none of them
  const text = given.replace(/[\u0000-\u001f\u007f]+/g, " ");
  if (!text.includes("=?")) return text;
  const words = [""];
  for (const character of text) {
    const longer = `${words.at(-1)}${character}`;
    if (Buffer.byteLength(longer) > WORD_BYTES) words.push(character);
    else words[words.length - 1] = longer;
  }
  return words.map((word) => `=?UTF-8?B?${Buffer.from(word).toString("base64")}?=`).join(" ");
}
