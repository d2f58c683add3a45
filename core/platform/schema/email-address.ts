/**
 * One e-mail address is one mailbox. Mail libraries read `a;b@example.com` as a list, `Anna<b@example.com>` as a name and
 * `team:b@example.com` as a group, and mail goes to somebody else: none of these is taken as an address anywhere.
 */

/** In code points, of an address and of a name with one. */
export const EMAIL_LENGTH = 255;

/** Control characters, and format characters, which are not seen. */
const UNSEEN =
  "\\u0000-\\u001f\\u007f-\\u009f\\u00ad\\u061c\\u180e\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f\\ufeff\\ufff9-\\ufffb";
/** What RFC 5322 gives a meaning to, outside of quotes. */
const SPECIAL = '"(),:;<>@\\[\\\\\\]';
const LABEL = `[^\\s${UNSEEN}${SPECIAL}.!#$%&'*+/=?^\`{|}~]+`;

/** Pattern of one address, without anchors. Letters of any script may stand on both sides. */
export const EMAIL_ADDRESS = `[^\\s${UNSEEN}${SPECIAL}]+@${LABEL}(?:\\.${LABEL})*`;

const NAME = `[^${UNSEEN}<>@]*`;

/** Pattern of an address, or of a name and one in angle brackets, without anchors. */
export const MAIL_SENDER = `(?:${NAME}<${EMAIL_ADDRESS}>|${EMAIL_ADDRESS})`;

const address = new RegExp(`^${EMAIL_ADDRESS}$`);
const sender = new RegExp(`^(?:(${NAME})<(${EMAIL_ADDRESS})>|(${EMAIL_ADDRESS}))$`);

export function isEmailAddress(text: string): boolean {
  return address.test(text);
}

export interface Mailbox {
  /** Empty where there is none. */
  readonly name: string;
  readonly address: string;
}

/** The one mailbox that a text of the form of `MAIL_SENDER` names, its name without quotes; null for any other text. */
export function readMailbox(text: string): Mailbox | null {
  const found = sender.exec(text);
  if (!found) return null;
  const [, name = "", bracketed, bare] = found;
  return { name: unquoted(name.trim()), address: bracketed ?? bare ?? "" };
}

function unquoted(name: string): string {
  const [, quoted] = /^"(.*)"$/.exec(name) ?? [];
  return quoted === undefined ? name : quoted.replace(/\\(.)/g, "$1");
}
