/** What an endpoint's address must look like before any name is resolved (document 3, "Endpoint configuration"). */

import { isHttpUri, isLongerThan } from "#core/platform/schema/text-formats.ts";
/** Document 3, "Limits". */
export const WEBHOOK_URL_LENGTH = 2_048;
export const WEBHOOK_V1_PROTOCOLS = ["https:", "http:"] as const;

/**
 * Why the text cannot be an endpoint's url, or null when it can.
 * @param protocols webhooks v1 may use `http:` too
 */
export function faultOfWebhookUrl(
  text: string,
  protocols: readonly string[] = ["https:"],
): string | null {
  if (isLongerThan(text, WEBHOOK_URL_LENGTH)) return `At most ${WEBHOOK_URL_LENGTH} characters.`;
  if (!URL.canParse(text)) return "Not an absolute URL.";
  const url = new URL(text);
  if (!protocols.includes(url.protocol)) {
    return `Only ${protocols.map((one) => `${one}//`).join(" or ")} is accepted.`;
  }
  // URL parsers repair the text, so the host that a reader sees need not be the one that is called.
  if (!isHttpUri(text))
    return "Not a valid URI: check its slashes, and percent-encode special characters.";
  if (url.username !== "" || url.password !== "") return "No credentials in the URL.";
  return null;
}

/** For readers who need not know all of it: a query may hold a secret of the receiver's, and so may what precedes the host. */
export function urlWithoutSecrets(text: string): string {
  const { origin, pathname } = new URL(text);
  return `${origin}${pathname}`;
}
