/** The setup file (setup-file.md): "every fault is listed with its JSON path", also those of a file that has other faults. */
import { describe, expect, test } from "bun:test";
import { Ajv2020 } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import { publishedSchema } from "#core/platform/schema/published-schema.ts";
import {
  checkRules,
  checkSetup,
  SetupFile,
  settingsWithoutEffect,
  wellFormedPart,
  withoutOrderNulls,
} from "#core/setup/rules/setup.ts";

const faultsOf = (file: unknown) => checkSetup(file).map(({ path, code }) => `${path} ${code}`);
const judged = (file: unknown) => wellFormedPart(file, checkSetup(structuredClone(file)));
const withChannels = (...channels: readonly object[]) => ({ companies: [{ code: "c", channels }] });
const inChannel = (members: object) => withChannels({ code: "d", ...members });
const CHANNEL = "companies[0].channels[0]";

describe("what else is judged of a faulty file", () => {
  test("is all but the faulty members", () => {
    const file = { couriers: [{ code: "A", tokens: 5, name: "N" }], surprise: 1, platforms: 7 };
    expect(judged(file) as unknown).toEqual({ couriers: [{ code: "A", name: "N" }] });
  });

  test("is a list that is too short or too long", () => {
    const webhook = { url: "http://m.example/", alertEmail: "o@m.test" };
    const webhooks = Array.from({ length: 6 }, (_, at) => ({ code: `w${at}`, ...webhook }));
    expect(faultsOf(inChannel({ webhooks }))).toEqual([
      `${CHANNEL}.webhooks TOO_MANY`,
      ...[0, 1, 2, 3, 4].map((at) => `${CHANNEL}.webhooks[${at}].url BAD_FORMAT`),
    ]);
    const file = { couriers: [{ code: "A", tokens: [] }] };
    expect(judged(file) as unknown).toEqual(file);
  });

  test("leaves a hole for a list item, so that the others keep their places", () => {
    expect(faultsOf({ platforms: ["a", 5, "a"] })).toEqual([
      "platforms[1] WRONG_TYPE",
      "platforms[2] NOT_ALLOWED",
    ]);
  });

  test("is no entry of a catalogue without one of its members, and no rule", () => {
    const rules = [{ reasonCode: 5, status: "DELAY" }];
    const catalogue = [
      { code: "A", terminal: "no", status: "DELAY" },
      { code: "B", rules },
    ];
    const file = { couriers: [{ code: "A", tokens: ["t"], catalogue }] };
    const [entries] = (judged(file)?.couriers ?? []).map((courier) => courier.catalogue);
    expect(Object.keys(entries ?? [])).toEqual(["1"]);
    expect(Object.keys(entries?.[1] ?? {})).toEqual(["code", "rules"]);
    expect(Object.keys(entries?.[1]?.rules ?? [])).toEqual([]);
  });

  test("is the same beside a member whose unknown name has a dot", () => {
    const file = { $schema: null, "$schema.x": 1, ".": 1, platforms: ["a", "a"] };
    const paths = faultsOf(file).filter((fault) => !fault.startsWith("$schema "));
    expect(paths).toEqual([
      "$schema.x UNKNOWN_FIELD",
      ". UNKNOWN_FIELD",
      "platforms[1] NOT_ALLOWED",
    ]);
  });

  test("is nothing where the file is no object", () => {
    for (const file of [null, 5, "text", []]) {
      expect(withoutOrderNulls(file)).toEqual(file);
      expect(faultsOf(file)).toEqual([" WRONG_TYPE"]);
    }
  });
});

describe("names that are missing clash with none", () => {
  test("of couriers, companies, channels and keys", () => {
    const nameless = [{ tokens: ["t"] }, { tokens: ["u"] }];
    expect(faultsOf({ couriers: nameless })).toEqual([
      "couriers[0].code REQUIRED",
      "couriers[1].code REQUIRED",
    ]);
    expect(faultsOf(withChannels({}, {}))).toEqual([
      `${CHANNEL}.code REQUIRED`,
      "companies[0].channels[1].code REQUIRED",
    ]);
    expect(faultsOf(inChannel({ apiKeys: [{ code: "a" }, { code: "b" }] }))).toEqual([]);
  });

  test("of orders and mail templates", () => {
    const createdAt = "2026-11-01T10:00:00+01:00";
    const [sources, references] = [
      [
        { source: "api", createdAt },
        { source: "api", createdAt },
      ],
      [
        { reference: "1", createdAt },
        { reference: "1", createdAt },
      ],
    ];
    expect(faultsOf(inChannel({ orders: sources }))).toEqual([
      `${CHANNEL}.orders[0].reference REQUIRED`,
      `${CHANNEL}.orders[1].reference REQUIRED`,
    ]);
    expect(faultsOf(inChannel({ orders: references }))).toEqual([
      `${CHANNEL}.orders[0].source REQUIRED`,
      `${CHANNEL}.orders[1].source REQUIRED`,
    ]);
    const template = { subject: "s", body: "b" };
    const templates = [template, template].map((one) => ({ ...one, event: "shipped" }));
    expect(faultsOf(inChannel({ emails: { templates } }))).toHaveLength(2);
  });
});

describe("what may be in a file once", () => {
  test("an order of a source and reference", () => {
    const order = { source: "api", reference: "1", createdAt: "2026-11-01T10:00:00+01:00" };
    const others = [
      { ...order, reference: "2" },
      { ...order, source: "shop" },
    ];
    expect(faultsOf(inChannel({ orders: [order, ...others] }))).toEqual([]);
    expect(faultsOf(inChannel({ orders: [order, ...others, order] }))).toEqual([
      `${CHANNEL}.orders[3] NOT_ALLOWED`,
    ]);
  });

  test("a template of an event and language", () => {
    const words = { subject: "s", body: "b" };
    const templates = [
      { event: "shipped", language: "it", ...words },
      { event: "shipped", language: "en", ...words },
      { event: "late", language: "it", ...words },
    ];
    expect(faultsOf(inChannel({ emails: { templates } }))).toEqual([]);
    expect(faultsOf(inChannel({ emails: { templates: [...templates, ...templates] } }))).toEqual(
      [3, 4, 5].map((at) => `${CHANNEL}.emails.templates[${at}] NOT_ALLOWED`),
    );
  });

  test("an OAuth client id", () => {
    const courier = (code: string, clientId: string) => ({
      code,
      tokens: [code],
      oauth: { clientId, clientSecret: "longer than 8" },
    });
    const none = ["C", "D"].map((code) => ({ code, tokens: [code], oauth: null }));
    expect(faultsOf({ couriers: [courier("A", "a"), courier("B", "b"), ...none] })).toEqual([]);
    expect(faultsOf({ couriers: [courier("A", "a"), courier("B", "a")] })).toEqual([
      "couriers[1].oauth.clientId NOT_ALLOWED",
    ]);
  });
});

describe("a catalogue", () => {
  test("gives a detail only to a status", () => {
    const catalogue = [
      { code: "A", statusDetail: 1 },
      { code: "B", status: "DELAY", statusDetail: 1 },
      { code: "C" },
    ];
    expect(faultsOf({ couriers: [{ code: "A", tokens: ["t"], catalogue }] })).toEqual([
      "couriers[0].catalogue[0].statusDetail NOT_ALLOWED",
    ]);
  });

  test("has rules with a condition each, that no earlier one has", () => {
    const faults = checkRules(
      [
        { reasonCode: "R", status: "DELAY" },
        { reasonCode: "R", isReturn: true, status: "DELAY" },
        { isReturn: true, status: "DELAY" },
        { isReturn: false, status: "DELAY" },
        { deliveredTo: "NEIGHBOUR", status: "DELAY" },
        { status: "DELAY" },
        { isReturn: true, status: "RETURNED" },
      ],
      "rules",
    );
    expect(faults.map(({ path }) => path)).toEqual(["rules[5]", "rules[6]"]);
  });
});

test("a null member of an order counts as absent, in the published schema too", () => {
  const order = { source: "api", reference: "1", createdAt: "2026-11-01T10:00:00+01:00" };
  const file = inChannel({ orders: [{ ...order, orderId: null }] });
  expect(withoutOrderNulls(file) as unknown).toEqual(inChannel({ orders: [order] }));
  expect(faultsOf(withoutOrderNulls(file))).toEqual([]);
  const ajv = new Ajv2020({ strict: false });
  addFormats(ajv);
  expect(ajv.compile(publishedSchema(SetupFile))(file)).toBe(true);
  for (const odd of [
    { companies: 5 },
    { companies: [null, 5] },
    inChannel({ orders: [null, 5] }),
  ]) {
    expect(withoutOrderNulls(odd)).toEqual(odd);
  }
});

test("settings of webhooks that are not in effect yet are reported, whichever webhook has them", () => {
  const webhook = { code: "w", url: "https://m.example/", alertEmail: "o@m.test" };
  const file = (...webhooks: readonly object[]) => inChannel({ webhooks }) as SetupFile;
  expect(settingsWithoutEffect(file(webhook, { ...webhook, maxPerSecond: null }))).toEqual([]);
  expect(settingsWithoutEffect(file(webhook, { ...webhook, maxPerSecond: 5 }))).toEqual([
    "maxPerSecond",
  ]);
  expect(settingsWithoutEffect({})).toEqual([]);
});
