/**
 * The headers of the Standard Webhooks specification, sent beside our own where an endpoint asks for them. The same
 * `whsec_` secret is valid key material there: what follows the prefix is read as base64.
 */
import { createHmac } from "node:crypto";

/** @param secrets the newest first */
export function standardWebhookHeaders(
  id: string,
  secrets: readonly string[],
  body: string,
  nowMs: number,
): Record<string, string> {
  const timestamp = String(Math.floor(nowMs / 1000));
  const signatures = secrets.map((secret) => {
    const key = Buffer.from(secret.replace(/^whsec_/, ""), "base64");
    return `v1,${createHmac("sha256", key).update(`${id}.${timestamp}.${body}`).digest("base64")}`;
  });
  return {
    "webhook-id": id,
    "webhook-timestamp": timestamp,
    "webhook-signature": signatures.join(" "),
  };
}
