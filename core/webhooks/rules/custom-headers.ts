/** Headers that a merchant adds to the requests of an endpoint. Those of the specification and of the connection stay ours. */
import { type Static, Type } from "@sinclair/typebox";
import type { Fault } from "#core/platform/schema/fault.ts";
import { limit } from "#core/platform/schema/limit.ts";

const CUSTOM_HEADERS = limit(20, "custom headers of a webhook endpoint", "422");
const HEADER_NAME_LENGTH = limit(64, "characters of a custom header's name", "422");
const HEADER_VALUE_LENGTH = limit(1_024, "characters of a custom header's value", "422");

/** RFC 9110, token. */
const NAME = `^[A-Za-z0-9!#$%&'*+.^_\`|~-]{1,${HEADER_NAME_LENGTH}}$`;
const VALUE = `^(?:[!-~](?:[ -~]{0,${HEADER_VALUE_LENGTH - 2}}[!-~])?)?$`;
/** Of the specification (document 3), of Standard Webhooks, of tracing and of HTTP itself. */
const RESERVED =
  /^(?:x-service-.*|webhook-.*|content-.*|accept-encoding|user-agent|host|connection|keep-alive|transfer-encoding|te|trailer|upgrade|expect|proxy-.*|traceparent|tracestate)$/i;

export const CustomHeaders = Type.Record(
  Type.String({ pattern: NAME }),
  Type.String({ pattern: VALUE, description: "printable ASCII, without blanks around it" }),
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

/** Beside what the schema finds: names of ours, and one name twice in different case. */
export function faultsOfHeaders(headers: unknown): Fault[] {
  if (typeof headers !== "object" || headers === null) return [];
  const seen = new Set<string>();
  return Object.keys(headers).flatMap((name): Fault[] => {
    const plain = name.toLowerCase();
    const isTwice = seen.has(plain);
    seen.add(plain);
    const path = "headers";
    if (isTwice) return [{ path, code: "NOT_ALLOWED", message: "A header is given twice." }];
    if (!isReservedHeader(name)) return [];
    return [{ path, code: "NOT_ALLOWED", message: `${name} is set by the service.` }];
  });
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
