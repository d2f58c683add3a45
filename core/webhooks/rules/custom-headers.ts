/** Headers that a merchant adds to the requests of an endpoint. Those of the specification and of the connection stay ours. */
import { type Static, Type } from "@sinclair/typebox";
import type { Fault } from "#core/platform/schema/fault.ts";
import { limit } from "#core/platform/schema/limit.ts";

const CUSTOM_HEADERS = limit(20, "custom headers of a webhook endpoint", "422");
const HEADER_NAME_LENGTH = limit(64, "characters of a custom header's name", "422");
const HEADER_VALUE_LENGTH = limit(1_024, "characters of a custom header's value", "422");

/** RFC 9110, token. */
const NAME = `^[A-Za-z0-9!#$%&'*+.^_\`|~-]{1,${HEADER_NAME_LENGTH}}$`;
/** In place of a value, which may be a credential and is never shown. Given back, it stands for the value that is stored. */
export const HEADER_MASK = "••••";
const VALUE = `^(?:${HEADER_MASK}|(?:[!-~](?:[ -~]{0,${HEADER_VALUE_LENGTH - 2}}[!-~])?)?)$`;
/** Of the specification (document 3), of Standard Webhooks, of tracing and of HTTP itself. */
const RESERVED =
  /^(?:x-service-.*|webhook-.*|content-.*|accept-encoding|user-agent|host|connection|keep-alive|transfer-encoding|te|trailer|upgrade|expect|proxy-.*|traceparent|tracestate)$/i;

export const CustomHeaders = Type.Record(
  Type.String({ pattern: NAME }),
  Type.String({
    pattern: VALUE,
    description:
      "printable ASCII, without blanks around it. Shown as ••••, which a change takes for the value that is stored",
  }),
  {
    maxProperties: CUSTOM_HEADERS,
    additionalProperties: false,
    default: {},
    description:
      "sent with every request; names of document 3, of Standard Webhooks and of HTTP itself are refused",
  },
);
export type CustomHeaders = Static<typeof CustomHeaders>;

export function isReservedHeader(name: string): boolean {
  return RESERVED.test(name);
}

/**
 * Beside what the schema finds: names of ours, one name twice in different case, and a mask without a value.
 * @param known names of the headers that are stored
 */
export function faultsOfHeaders(headers: unknown, known: readonly string[] = []): Fault[] {
  if (typeof headers !== "object" || headers === null) return [];
  const seen = new Set<string>();
  const stored = new Set(known.map((name) => name.toLowerCase()));
  return Object.entries(headers).flatMap(([name, value]): Fault[] => {
    const plain = name.toLowerCase();
    const isTwice = seen.has(plain);
    seen.add(plain);
    const path = "headers";
    if (isTwice) return [{ path, code: "NOT_ALLOWED", message: "A header is given twice." }];
    if (isReservedHeader(name)) {
      return [{ path, code: "NOT_ALLOWED", message: `${name} is set by the service.` }];
    }
    if (value !== HEADER_MASK || stored.has(plain)) return [];
    return [{ path, code: "NOT_ALLOWED", message: `${name} needs its value.` }];
  });
}

/** What is shown of them. */
export function maskedHeaders(headers: CustomHeaders): CustomHeaders {
  return Object.fromEntries(Object.keys(headers).map((name) => [name, HEADER_MASK]));
}

/** How values are sealed and opened. */
export interface Sealing {
  readonly seal: (value: string) => string;
  readonly open: (sealed: string) => string;
}

/** As they are stored. A value that is the same as before, or stands for it, stays sealed as it was. */
export function sealedHeaders(
  given: CustomHeaders,
  before: CustomHeaders,
  { seal, open }: Sealing,
): CustomHeaders {
  const stored = new Map(
    Object.entries(before).map(([name, sealed]) => [name.toLowerCase(), sealed]),
  );
  const sealed = Object.entries(given).map(([name, value]) => {
    const kept = stored.get(name.toLowerCase());
    const isKept = kept !== undefined && (value === HEADER_MASK || open(kept) === value);
    return [name, isKept ? kept : seal(value)];
  });
  return Object.fromEntries(sealed);
}

export function openedHeaders(sealed: CustomHeaders, { open }: Pick<Sealing, "open">) {
  return Object.fromEntries(Object.entries(sealed).map(([name, value]) => [name, open(value)]));
}

/** @param ours are never replaced */
export function withCustomHeaders(
  ours: Readonly<Record<string, string>>,
  custom: CustomHeaders,
): Readonly<Record<string, string>> {
  const given = Object.entries(custom);
  if (given.length === 0) return ours;
  const names = new Set(Object.keys(ours).map((name) => name.toLowerCase()));
  const added = given.filter(([name]) => !isReservedHeader(name) && !names.has(name.toLowerCase()));
  return { ...ours, ...Object.fromEntries(added) };
}
