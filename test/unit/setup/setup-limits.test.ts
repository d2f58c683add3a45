/** The setup file (setup-file.md): how large its members may be. */
import { describe, expect, test } from "bun:test";
import { COURIERS_PER_CHANNEL, checkSetup } from "#core/setup/rules/setup.ts";

const courier = (members: object) => ({ couriers: [{ code: "A", tokens: ["t"], ...members }] });
const entry = (members: object) => courier({ catalogue: [{ code: "E", ...members }] });
const rule = (members: object) =>
  entry({ rules: [{ isReturn: true, status: "DELAY", ...members }] });
const detail = (members: object) => ({ statusDetails: [{ id: 1, ...members }] });
const company = (members: object) => ({ companies: [{ code: "c", ...members }] });
const channel = (members: object) => company({ channels: [{ code: "d", ...members }] });
const owned = (members: object) => channel({ couriers: [{ code: "A", ...members }] });
const key = (text: string) => channel({ apiKeys: [{ code: "k", key: text }] });
const template = (members: object) => ({
  event: "shipped",
  language: "it",
  subject: "s",
  body: "b",
  ...members,
});
const mailed = (members: object) => channel({ emails: { templates: [template(members)] } });
const box = (members: object) => ({ code: "S", length: 0.5, width: 0.5, height: 0.5, ...members });
const webhook = (members: object) => ({
  code: "w",
  url: "https://m.example/",
  alertEmail: "o@m.test",
  ...members,
});

const texts = (count: number) => Array.from({ length: count }, (_, at) => `text ${at}`);
const coded = (count: number, make: (code: string) => object) =>
  Array.from({ length: count }, (_, at) => make(`n${at}`));
const faultsOf = (file: object) => checkSetup(file).map(({ path, code }) => `${path} ${code}`);

/** How many characters a text has, at most; and how many at least, where that is not one. */
const LENGTHS: ReadonlyArray<readonly [string, number, (text: string) => object, number?]> = [
  ["couriers[0].name", 255, (name) => courier({ name })],
  ["couriers[0].tokens[0]", 255, (token) => courier({ tokens: [token] })],
  [
    "couriers[0].oauth.clientSecret",
    255,
    (clientSecret) => courier({ oauth: { clientId: "i", clientSecret } }),
    8,
  ],
  ["couriers[0].catalogue[0].code", 64, (code) => entry({ code })],
  ["couriers[0].catalogue[0].description", 500, (description) => entry({ description }), 0],
  ["couriers[0].catalogue[0].rules[0].reasonCode", 64, (reasonCode) => rule({ reasonCode })],
  ["statusDetails[0].description.it", 255, (it) => detail({ description: { it } }), 0],
  ["platforms[0]", 50, (name) => ({ platforms: [name] })],
  ["companies[0].seatPostcode", 16, (seatPostcode) => company({ seatPostcode })],
  ["companies[0].channels[0].apiKeys[0].key", 255, key, 8],
  [
    "companies[0].channels[0].couriers[0].transcodings[0]",
    255,
    (text) => owned({ transcodings: [text] }),
  ],
  [
    "companies[0].channels[0].couriers[0].senderAccounts[0]",
    64,
    (text) => owned({ senderAccounts: [text] }),
  ],
  [
    "companies[0].channels[0].emails.templates[0].subject",
    998,
    (subject) => mailed({ subject }),
    0,
  ],
  ["companies[0].channels[0].emails.templates[0].body", 100_000, (body) => mailed({ body }), 0],
  [
    "companies[0].channels[0].webhookV1.acknowledgement",
    4_096,
    (acknowledgement) => channel({ webhookV1: { url: "http://m.example/", acknowledgement } }),
    0,
  ],
];

describe("texts", () => {
  for (const [path, most, file, least = 1] of LENGTHS) {
    test(`${path} has from ${least} to ${most} characters`, () => {
      expect(faultsOf(file("x".repeat(most)))).toEqual([]);
      expect(faultsOf(file("x".repeat(most + 1)))).toEqual([`${path} TOO_LONG`]);
      expect(faultsOf(file("x".repeat(least)))).toEqual([]);
      if (least > 0) expect(faultsOf(file("x".repeat(least - 1)))).toHaveLength(1);
    });
  }

  test("a certificate's subject has 500 characters, and the address of a gateway 2,048", () => {
    const subject = (count: number) => courier({ mtls: { subject: "CN=".padEnd(count, "x") } });
    expect(faultsOf(subject(500))).toEqual([]);
    expect(faultsOf(subject(501))).toEqual(["couriers[0].mtls.subject TOO_LONG"]);
    const gateway = (count: number) =>
      courier({ stockReleaseUrl: "https://g.example/".padEnd(count, "x") });
    expect(faultsOf(gateway(2_048))).toEqual([]);
    expect(faultsOf(gateway(2_049))).toEqual(["couriers[0].stockReleaseUrl TOO_LONG"]);
  });
});

const SIZES: ReadonlyArray<readonly [string, number, (count: number) => object, number?]> = [
  ["couriers[0].tokens", 10, (count) => courier({ tokens: texts(count) }), 1],
  ["couriers[0].signingSecrets", 10, (count) => courier({ signingSecrets: texts(count) })],
  [
    "couriers[0].mtls.subject",
    10,
    (count) => courier({ mtls: { subject: texts(count).map((text) => `CN=${text}`) } }),
    1,
  ],
  ["couriers[0].allowedIps", 1_000, (count) => courier({ allowedIps: texts(count) })],
  [
    "couriers[0].catalogue[0].rules",
    50,
    (count) =>
      entry({ rules: texts(count).map((reasonCode) => ({ reasonCode, status: "DELAY" })) }),
  ],
  [
    "companies[0].boxes",
    10_000,
    (count) => company({ boxes: coded(count, (code) => box({ code })) }),
  ],
  [
    "companies[0].channels[0].apiKeys",
    100,
    (count) => channel({ apiKeys: coded(count, (code) => ({ code })) }),
  ],
  [
    "companies[0].channels[0].couriers[0].transcodings",
    100,
    (count) => owned({ transcodings: texts(count) }),
  ],
  [
    "companies[0].channels[0].couriers[0].senderAccounts",
    100,
    (count) => owned({ senderAccounts: texts(count) }),
  ],
  [
    "companies[0].channels[0].emails.templates",
    1_000,
    (count) => channel({ emails: { templates: coded(count, (event) => template({ event })) } }),
  ],
];

describe("lists", () => {
  for (const [path, most, file, least = 0] of SIZES) {
    test(`${path} has from ${least} to ${most} items`, () => {
      expect(faultsOf(file(most))).toEqual([]);
      expect(faultsOf(file(most + 1))).toEqual([`${path} TOO_MANY`]);
      expect(faultsOf(file(least))).toEqual([]);
      if (least > 0) expect(faultsOf(file(least - 1))).toEqual([`${path} TOO_FEW`]);
    });
  }

  test("what a client certificate must have is its subject, its fingerprint or both", () => {
    expect(faultsOf(courier({ mtls: { subject: "CN=a" } }))).toEqual([]);
    expect(faultsOf(courier({ mtls: { fingerprint: "ab".repeat(32) } }))).toEqual([]);
    expect(faultsOf(courier({ mtls: {} }))).toEqual(["couriers[0].mtls TOO_FEW"]);
  });

  test("a channel gets no more than 1,000 couriers in the panel", () => {
    expect(COURIERS_PER_CHANNEL).toBe(1_000);
  });
});

const NUMBERS: ReadonlyArray<
  readonly [
    path: string,
    inside: readonly number[],
    outside: readonly number[],
    (value: number) => object,
  ]
> = [
  [
    "couriers[0].rateLimit.perSecond",
    [0.5, 100_000],
    [0, 100_001],
    (perSecond) => courier({ rateLimit: { perSecond } }),
  ],
  [
    "couriers[0].rateLimit.burst",
    [1, 1_000_000],
    [0, 1_000_001],
    (burst) => courier({ rateLimit: { burst } }),
  ],
  [
    "couriers[0].catalogue[0].statusDetail",
    [0],
    [-1],
    (statusDetail) => entry({ status: "DELAY", statusDetail }),
  ],
  [
    "couriers[0].catalogue[0].rules[0].statusDetail",
    [0],
    [-1],
    (statusDetail) => rule({ statusDetail }),
  ],
  ["statusDetails[0].id", [1], [0], (id) => detail({ id })],
  ["companies[0].boxes[0].length", [0.5], [0], (length) => company({ boxes: [box({ length })] })],
  ["companies[0].boxes[0].width", [0.5], [0], (width) => company({ boxes: [box({ width })] })],
  ["companies[0].boxes[0].height", [0.5], [0], (height) => company({ boxes: [box({ height })] })],
  [
    "companies[0].channels[0].rateLimit.bucketSize",
    [1, 10_000_000],
    [0, 10_000_001],
    (bucketSize) => channel({ rateLimit: { bucketSize } }),
  ],
  [
    "companies[0].channels[0].webhooks[0].maxConcurrency",
    [1, 1_024],
    [0, 1_025],
    (maxConcurrency) => channel({ webhooks: [webhook({ maxConcurrency })] }),
  ],
  [
    "companies[0].channels[0].webhooks[0].maxPerSecond",
    [0.5, 10_000],
    [0, 10_001],
    (maxPerSecond) => channel({ webhooks: [webhook({ maxPerSecond })] }),
  ],
  ["companies[0].channels[0].sandbox[0].id", [1], [0], (id) => channel({ sandbox: [{ id }] })],
];

describe("numbers", () => {
  for (const [path, inside, outside, file] of NUMBERS) {
    test(`${path} may be ${inside.join(" and ")}, not ${outside.join(" or ")}`, () => {
      for (const value of inside) expect(faultsOf(file(value))).toEqual([]);
      for (const value of outside) expect(faultsOf(file(value))).toEqual([`${path} OUT_OF_RANGE`]);
    });
  }
});
