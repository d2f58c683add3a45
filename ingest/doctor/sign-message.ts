/** A sender's signature (document 2, "Authentication" 2), by what Node.js and Bun have in common. */
import { createHmac } from "node:crypto";

/** Header value for the bytes as transmitted; one `v1` per secret. */
export function signMessage(secrets: readonly string[], body: Uint8Array, nowMs: number): string {
  const t = String(Math.floor(nowMs / 1000));
  const values = secrets.map((secret) => {
    return `v1=${createHmac("sha256", secret).update(`${t}.`).update(body).digest("hex")}`;
  });
  return [`t=${t}`, ...values].join(",");
}
