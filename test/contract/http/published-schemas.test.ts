/**
 * The published schemas are the validators: an independent JSON Schema validator and the running product accept and refuse
 * the same values, drawn around every edge of the schemas (documents 1 to 3).
 */
import { afterAll, describe, expect, test } from "bun:test";
import { Ajv2020 } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import { checkEnvelope, checkEvent } from "#core/events/rules/event.ts";
import { openApiDocument } from "#core/platform/openapi/document.ts";
import { compileSchema } from "#core/platform/schema/compile-schema.ts";
import { publishedSchema } from "#core/platform/schema/published-schema.ts";
import { SetupFile, setupSchema, withoutOrderNulls } from "#core/setup/rules/setup.ts";
import { WebhookPayload } from "#core/webhooks/rules/webhook-payload.ts";
import { createIngestApp } from "#ingest/app.ts";
import { COURIER_API } from "#ingest/openapi.ts";
import { event } from "#test/support/clients/courier.ts";
import { labelSetup } from "#test/support/data/label-setup.ts";
import { dice, type Schema, schemaDraws } from "#test/support/data/schema-draws.ts";
import { openTestApi } from "#test/support/product/api.ts";

const RUNS = 1_500;
/** Each is a request. */
const BODIES = 120;

function judgeOf(document: object) {
  const ajv = new Ajv2020({ strict: true, strictTypes: false, strictRequired: false });
  addFormats(ajv);
  ajv.addVocabulary(["openapi", "info", "servers", "tags", "paths", "components"]);
  ajv.addSchema({ $id: "document", ...document });
  const compiled = new Map<string, (value: unknown) => boolean>();
  const judge = (schema: Schema, value: unknown): boolean => {
    const key = JSON.stringify(schema).replaceAll('"#/', '"document#/');
    const known = compiled.get(key) ?? ajv.compile(JSON.parse(key));
    compiled.set(key, known as (value: unknown) => boolean);
    return known(value) as boolean;
  };
  const resolve = (ref: string): Schema => {
    let at: unknown = document;
    for (const part of ref.split("/").slice(1)) at = (at as Schema)[part];
    return at as Schema;
  };
  return { judge, draws: schemaDraws(resolve, judge) };
}

/** More than one draw in so many must be valid, and more than one invalid: a rare kind is drawn for longer, up to ten times as many. */
const RARE = 50;

/** @param accepts whether the product takes a value; null = it refuses it by a rule that no schema tells */
async function agree(
  document: object,
  schema: Schema,
  accepts: (value: unknown) => boolean | null | Promise<boolean | null>,
  runs = RUNS,
): Promise<void> {
  const { judge, draws } = judgeOf(document);
  const seed = Date.now() & 0x7fffffff;
  const g = dice(seed);
  const seen = { valid: 0, invalid: 0 };
  const isRare = () => Math.min(seen.valid, seen.invalid) <= runs / RARE;
  for (let run = 0; run < runs || (isRare() && run < 10 * runs); run += 1) {
    const value = JSON.parse(JSON.stringify(draws.draw(schema, g)));
    const isValid = judge(schema, value);
    seen[isValid ? "valid" : "invalid"] += 1;
    const isTaken = await accepts(structuredClone(value));
    if (isTaken === null || isTaken === isValid) continue;
    throw new Error(`seed ${seed}: the schema says ${isValid} of ${JSON.stringify(value)}`);
  }
  expect(isRare()).toBe(false);
}

const setup = labelSetup();
const [acme] = setup.companies ?? [];
Object.assign(acme ?? {}, { products: ["api-parcels", "checkAddress"] });
const rateLimit = { bucketSize: 1_000_000, refillRate: 1_000_000 };
Object.assign(acme?.channels?.[0] ?? {}, { addressCheck: true, rateLimit });
const api = await openTestApi(setup);
const token = await api.token("key_acme_main");
afterAll(() => api.end());

describe("document 1", () => {
  const { document } = api;
  const withBody = api.operations.filter(({ operation }) => operation.body !== undefined);

  for (const { method, path, operation } of withBody) {
    const id = operation.id ?? "";
    test(`${id}: a body is 422 where the schema says so`, async () => {
      const target = path.replace("{id}", "16").replace("{hash}", "0".repeat(40));
      await agree(
        document,
        bodySchema(document, path, method),
        async (value) => {
          const answer = await api.call(method.toUpperCase(), target, { token, body: value });
          expect(answer.status).not.toBe(500);
          // Larger than a body, or one shipment of it, may be.
          if (answer.status === 413) return null;
          const { code, violations = [] } = answer.body;
          if (code !== "VALIDATION_FAILED") return true;
          return violations.every((violation: Violation) => isBusinessRule(id, violation))
            ? null
            : false;
        },
        BODIES,
      );
    }, 300_000);
  }
});

/** Of an import without its items, which are judged one by one in the background. */
function bodySchema(document: Schema, path: string, method: string): Schema {
  const at = (...names: string[]) =>
    names.reduce<Schema>((schema, name) => schema[name] as Schema, document);
  const body = at("paths", path, method, "requestBody", "content", "application/json", "schema");
  if (path !== "/v2/shipments/import") return body;
  const { properties, ...others } = at("components", "schemas", "ShipmentsImport");
  const { shipments, ...members } = properties as Record<string, Schema>;
  return { ...others, properties: { ...members, shipments: { ...shipments, items: {} } } };
}

interface Violation {
  readonly path: string;
  readonly code: string;
}

/** Rules that take more than the value itself, as the operation's description and document 1 tell them. */
const BUSINESS_RULES: Readonly<Record<string, RegExp>> = {
  createShipments: /^shipments\[\d+\]\.shipDate OUT_OF_RANGE$/,
  importShipments: /^webhookUrl (BAD_FORMAT|NOT_ALLOWED)$/,
  releaseStock: /^(address (REQUIRED|NOT_ALLOWED)|redeliveryDate (OUT_OF_RANGE|NOT_ALLOWED))$/,
  notifyRecipient: /^event NOT_ALLOWED$/,
  createParcels: /^orderOrigin NOT_ALLOWED$/,
  updateParcel: /^ REQUIRED$/,
  correctShipment: /^ REQUIRED$/,
  createLabel:
    /^((source|weight|monetary.amount|parcels.*) (REQUIRED|NOT_ALLOWED)|consignee.state BAD_FORMAT)$/,
  confirmLabels: /^(labelCreationDate NOT_ALLOWED|pickupDate REQUIRED)$/,
  readDeliveryTimes: /Cap NOT_ALLOWED$/,
  readEfficiencyIndex: /Cap NOT_ALLOWED$/,
};

function isBusinessRule(operation: string, { path, code }: Violation): boolean {
  return BUSINESS_RULES[operation]?.test(`${path} ${code}`) ?? false;
}

describe("document 2", () => {
  const document = openApiDocument(createIngestApp(api.runtime).routes, COURIER_API);
  const component = (name: string) => ({ $ref: `#/components/schemas/${name}` });

  test("an event is INVALID where the schema says so", async () => {
    await agree(document, component("Event"), (value) => checkEvent(value).length === 0);
  });

  test("an envelope is 400 where the schema says so, its events apart", async () => {
    const { Envelope } = document.components.schemas as Record<string, Schema>;
    const properties = Envelope?.["properties"] as Record<string, Schema>;
    const events = { ...properties["events"], items: {} };
    await agree(
      document,
      { ...Envelope, properties: { ...properties, events } },
      (value) => checkEnvelope(value).length === 0,
    );
  });

  test("occurredAt has its regular expression, which takes +0100 and +01 and no other year than 2000 to 2099", () => {
    const { Event } = document.components.schemas as { Event: Schema };
    const { occurredAt, location, delivery } = Event["properties"] as Record<string, Schema>;
    const pattern = new RegExp(String(occurredAt?.["pattern"]), "u");
    for (const [text, isValid] of [
      ["2026-11-20T10:00:00+01:00", true],
      ["2026-11-20T10:00:00+0100", true],
      ["2026-11-20T10:00:00Z", true],
      ["2026-11-20T10:00:00", false],
      ["2026-11-20T10:00:00+01", true],
      ["2026-11-20T10:00:00+1", false],
      ["2026-11-20T10:00:00+001", false],
      ["2000-01-01T00:00:00Z", true],
      ["1999-12-31T23:59:59Z", false],
      ["2099-12-31T23:59:59Z", true],
      ["2100-01-01T00:00:00Z", false],
      ["2024-02-29T00:00:00Z", true],
      ["2026-02-29T00:00:00Z", false],
    ] as const) {
      expect([text, pattern.test(text)]).toEqual([text, isValid]);
      const faults = checkEvent(event({ occurredAt: text }));
      expect([text, faults.length === 0]).toEqual([text, isValid]);
    }
    const members = (schema: Schema | undefined) =>
      schema?.["properties"] as Record<string, Schema>;
    expect(members(location)["postalCode"]).toMatchObject({ maxLength: 16 });
    expect(members(delivery)["podUrl"]?.["pattern"]).toStartWith("^[Hh][Tt][Tt][Pp][Ss]?://");
  });

  test("lengths count code points: a limit of packages passes, one more is TOO_LONG", () => {
    const faultsOf = (members: object) =>
      checkEvent({ ...event(), ...members }).map(({ path, code }) => `${path} ${code}`);
    const packages = (count: number) => "📦".repeat(count);
    for (const [path, limit, member] of [
      ["eventId", 128, (text: string) => ({ eventId: text })],
      ["trackingNumber", 64, (text: string) => ({ trackingNumber: text })],
      ["status.description", 500, (text: string) => ({ status: { code: "x", description: text } })],
      ["location.name", 200, (text: string) => ({ location: { name: text } })],
      ["attributes.k", 500, (text: string) => ({ attributes: { k: text } })],
    ] as const) {
      expect(faultsOf(member(packages(limit)))).toEqual([]);
      expect(faultsOf(member(packages(limit + 1)))).toEqual([`${path} TOO_LONG`]);
    }
    expect(faultsOf({ attributes: { [packages(64)]: "x" } })).toEqual([]);
    expect(faultsOf({ attributes: { [packages(65)]: "x" } })).toHaveLength(1);
  });
});

test("document 3: the payload of a webhook", async () => {
  const schema = publishedSchema(WebhookPayload);
  const payload = compileSchema(WebhookPayload);
  await agree(schema, schema, (value) => payload.check(value));
});

test("the setup file", async () => {
  const schema = publishedSchema(SetupFile);
  await agree(schema, schema, (value) => setupSchema.check(withoutOrderNulls(value)));
});
