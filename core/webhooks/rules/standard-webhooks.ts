/**
 * The signature of the Standard Webhooks specification, sent beside our own where an endpoint asks for it. The same
 * `whsec_` secret is valid key material there: what follows the prefix is read as base64.
 */
import { createHmac } from "node:crypto";

/**
 * The header `webhook-signature`.
 * @param timestamp the header `webhook-timestamp`
 * @param secrets the newest first
 */
export function standardSignature(
  id: string,
  timestamp: string,
  secrets: readonly string[],
  body: string | Uint8Array,
): string {
  const signatures = secrets.map((secret) => {
    const key = Buffer.from(secret.replace(/^whsec_/, ""), "base64");
    const hmac = createHmac("sha256", key).update(`${id}.${timestamp}.`).update(body);
    return `v1,${hmac.digest("base64")}`;
  });
  return signatures.join(" ");
}
