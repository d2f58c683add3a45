/** What the audit log keeps of a value: everything but secrets. */
import { urlWithoutSecrets } from "#core/webhooks/rules/webhook-url.ts";

/** Members that are secrets, or contain one, wherever they stand. */
const SECRET = /^(?:key|link|.*(?:secret|token|password|hash|otpauthUrl))$/i;
const MASK = "***";

export function masked(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(masked);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [name, maskedMember(name, member)]),
  );
}

/** Custom headers of a webhook: one may be a credential. */
function withoutValues(headers: unknown): unknown {
  if (typeof headers !== "object" || headers === null) return headers;
  return Object.fromEntries(Object.keys(headers).map((name) => [name, MASK]));
}

function maskedMember(name: string, member: unknown): unknown {
  if (SECRET.test(name)) return member === null ? null : MASK;
  if (name === "headers") return withoutValues(member);
  const isUrl = name === "url" && typeof member === "string" && URL.canParse(member);
  return isUrl ? urlWithoutSecrets(member) : masked(member);
}
