/** How the texts of environment variables are read: each kind says what is wrong with a text, or what it means. */
import { X509Certificate } from "node:crypto";
import { accessSync, constants, mkdirSync, readFileSync } from "node:fs";
import { isIP } from "node:net";
import { resolve } from "node:path";
import ipaddr from "ipaddr.js";
import { type Cidr, parseCidr } from "#core/platform/network/cidr.ts";
import { readMailbox } from "#core/platform/schema/email-address.ts";

export type Reading<T> = { readonly value: T } | { readonly faults: readonly string[] };

export type Kind<T> = (text: string) => Reading<T>;

const SECRET_MIN_LENGTH = 16;
/** Labels with a letter in the last one, so that a mistyped address is no name. */
const HOST_NAME = /^([a-z0-9]([a-z0-9-]*[a-z0-9])?\.)*[a-z]([a-z0-9-]*[a-z0-9])?$/i;

function fault(text: string): { readonly faults: readonly string[] } {
  return { faults: [text] };
}

export const text: Kind<string> = (value) => ({ value });

/** `name=value` pairs with percent-encoded values, as OpenTelemetry writes them. */
export const headerList: Kind<Readonly<Record<string, string>>> = (value) => {
  const pairs = value.split(",").map((pair) => /^\s*([!#$%&'*+.^_`|~\w-]+)\s*=(.*)$/.exec(pair));
  const headers: Record<string, string> = {};
  for (const pair of pairs) {
    if (pair === null) return fault("pairs such as name=value, comma-separated.");
    const [, name = "", text = ""] = pair;
    headers[name] = text
      .trim()
      .replace(/%[0-9A-Fa-f]{2}/g, (code) =>
        String.fromCharCode(Number.parseInt(code.slice(1), 16)),
      );
  }
  return { value: headers };
};

/** `name=value` pairs with percent-encoded UTF-8, as OpenTelemetry writes the attributes of a resource. */
export const attributeList: Kind<Readonly<Record<string, string>>> = (value) => {
  const attributes: Record<string, string> = {};
  try {
    for (const pair of listed(value)) {
      const [, name = "", text = ""] = /^([^=]+)=(.*)$/.exec(pair) ?? [];
      if (name.trim() === "") throw new Error("no pair");
      attributes[decodeURIComponent(name.trim())] = decodeURIComponent(text.trim());
    }
  } catch {
    return fault("pairs such as name=value, comma-separated and percent-encoded.");
  }
  return { value: attributes };
};

/** Those of a list that we know; `otel-variables.ts` warns of the others. */
export function someOf<const T extends string>(values: readonly T[]): Kind<readonly T[]> {
  return (text) => {
    const given = listed(text.toLowerCase());
    return { value: values.filter((one) => given.includes(one)) };
  };
}

/** Case does not count. */
export function lowerCase<T>(kind: Kind<T>): Kind<T> {
  return (text) => kind(text.toLowerCase());
}

export const fraction: Kind<number> = (value) => {
  const share = Number(value);
  if (/^(0|1|0?\.\d+|[01]\.\d+)$/.test(value) && share <= 1) return { value: share };
  return fault(`a number from 0 to 1, not "${value}".`);
};

export function wholeNumber(min: number, max: number): Kind<number> {
  return (text) => {
    const value = Number(text);
    if (/^\d+$/.test(text) && value >= min && value <= max) return { value };
    return fault(`a whole number from ${min} to ${max}, not "${text}".`);
  };
}

export function powerOfTwo(max: number): Kind<number> {
  return (text) => {
    const value = Number(text);
    if (/^\d+$/.test(text) && value <= max && Number.isInteger(Math.log2(value))) return { value };
    return fault(`a power of two from 1 to ${max}, not "${text}".`);
  };
}

export const port = wholeNumber(0, 65_535);

export function oneOf<const T extends string>(values: readonly T[]): Kind<T> {
  return (text) => {
    const value = values.find((one) => one === text);
    return value === undefined ? fault(`one of ${values.join(", ")}, not "${text}".`) : { value };
  };
}

export const secret: Kind<string> = (value) =>
  value.length >= SECRET_MIN_LENGTH
    ? { value }
    : fault(`at least ${SECRET_MIN_LENGTH} characters.`);

/** @param protocols as in `URL.protocol`, with the colon */
export function url(...protocols: readonly string[]): Kind<string> {
  const starts = protocols
    .map((protocol) => (protocol === "mailto:" ? protocol : `${protocol}//`))
    .join(" or ");
  return (value) => (isUrl(value, protocols) ? { value } : fault(`a URL starting with ${starts}.`));
}

export function urls(...protocols: readonly string[]): Kind<readonly string[]> {
  return (text) => {
    const value = listed(text);
    if (value.length > 0 && value.every((one) => isUrl(one, protocols))) return { value };
    return fault(`URLs, comma-separated, of ${protocols.join(" or ")}//.`);
  };
}

function isUrl(text: string, protocols: readonly string[]): boolean {
  return URL.canParse(text) && protocols.includes(new URL(text).protocol);
}

/** No URL can name an address with a zone, such as fe80::1%eth0. */
export const host: Kind<string> = (value) =>
  (isIP(value) > 0 && !value.includes("%")) || HOST_NAME.test(value)
    ? { value }
    : fault(`an address or a host name, not "${value}".`);

export const mailbox: Kind<string> = (value) =>
  readMailbox(value) !== null
    ? { value }
    : fault(
        `one address, such as noreply@example.com or Acme <noreply@example.com>, not "${value}".`,
      );

export const clusterName: Kind<string> = (value) =>
  /^[\w.-]{1,100}$/.test(value) ? { value } : fault("letters, digits, _ . -");

export const addresses: Kind<readonly string[]> = (text) =>
  list(
    text,
    (part) => (ipaddr.isValid(part) ? part : null),
    (part) => `"${part}" is no address.`,
  );

export const networks: Kind<readonly Cidr[]> = (text) =>
  list(text, parseCidr, (part) => `"${part}" is no network such as 10.0.0.0/8 or fd00::/8.`);

function list<T>(
  text: string,
  read: (part: string) => T | null,
  faultOf: (part: string) => string,
): Reading<readonly T[]> {
  const values: T[] = [];
  const faults: string[] = [];
  for (const part of listed(text)) {
    const value = read(part);
    if (value === null) faults.push(faultOf(part));
    else values.push(value);
  }
  return faults.length > 0 ? { faults } : { value: values };
}

export function listed(text: string): string[] {
  return text
    .split(",")
    .map((part) => part.trim())
    .filter((part) => part !== "");
}

/** A folder that can be written to; made if it is not there. */
export const folder: Kind<string> = (text) => {
  const value = resolve(text);
  try {
    mkdirSync(value, { recursive: true, mode: 0o700 });
    accessSync(value, constants.W_OK);
    return { value };
  } catch (error) {
    return fault(`cannot be written to: ${(error as Error).message}.`);
  }
};

/** A folder, or `s3://bucket/prefix`. */
export const exportTarget: Kind<string> = (value) => {
  if (!value.includes("://")) return folder(value);
  return /^s3:\/\/[a-z0-9][a-z0-9.-]+(\/[\w.=/-]*)?$/.test(value)
    ? { value }
    : fault(`a folder or s3://bucket/prefix, not "${value}".`);
};

export const jsonFile = file((content) => {
  try {
    JSON.parse(content);
    return null;
  } catch (error) {
    return `is not JSON: ${(error as Error).message}`;
  }
});

export const pemFile = file((content) => {
  const blocks = content.match(/-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g);
  if (!blocks) return "holds no PEM certificate";
  try {
    for (const block of blocks) new X509Certificate(block);
    return null;
  } catch {
    return "holds a certificate that cannot be read";
  }
});

/** A readable file, by its path; its content is checked and read again by whoever uses it. */
function file(faultOf: (content: string) => string | null): Kind<string> {
  return (value) => {
    try {
      const found = faultOf(readFileSync(value, "utf8"));
      return found === null ? { value } : fault(`${value} ${found}.`);
    } catch (error) {
      return fault(`cannot be read: ${(error as Error).message}.`);
    }
  };
}
