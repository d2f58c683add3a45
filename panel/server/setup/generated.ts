/** Secrets that a body left out, in the answer that shows them. */
import { Type } from "@sinclair/typebox";
import type { GeneratedSecret } from "#core/platform/secrets/unshown-secrets.ts";

export const generatedSecrets = Type.Array(
  Type.Object({
    owner: Type.String({ description: "for example `channel acme-it, API key main`" }),
    secret: Type.String({ description: "shown this once" }),
  }),
  { description: "of what the body left out" },
);

export function shownOnce(generated: readonly GeneratedSecret[]) {
  return generated.map(({ owner, secret }) => ({ owner, secret }));
}
