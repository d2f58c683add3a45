/** The receiver's kit: guide, vector, schema, AsyncAPI, addresses. Document 3, Signature rules 4 and 6, Authentication. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { spawnSync } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { TypeCompiler } from "@sinclair/typebox/compiler";
import { verifySignature } from "#core/domain/webhooks/signature.ts";
import {
  SAMPLE_FACT,
  SAMPLE_SHIPMENT,
  type WebhookEvent,
  webhookPayload,
} from "#core/domain/webhooks/webhook-payload.ts";
import { WebhookPayload } from "#core/domain/webhooks/webhook-schema.ts";
import { createPanelApp } from "#panel/app.ts";
import { openTestPanel, type TestPanel } from "#test/support/panel.ts";
import { openTestRuntime, type TestRuntime } from "#test/support/runtime.ts";
import { testSetup } from "#test/support/setup.ts";

interface Vector {
  readonly t: number;
  readonly secrets: { readonly new: string; readonly old: string };
  readonly signature: string;
  readonly body: string;
}

const vector: Vector = await Bun.file("docs/vectors/webhook-signature.json").json();
const guide = await readFile("docs/webhooks.md", "utf8");
const OTHER = `whsec_${"a".repeat(64)}`;

let runtime: TestRuntime;
let panel: TestPanel;
let folder: string;

beforeAll(async () => {
  runtime = await openTestRuntime(testSetup(), { OUTBOUND_IPS: "203.0.113.7, 2001:db8::7" });
  panel = await openTestPanel(runtime);
  folder = await mkdtemp(join(tmpdir(), "waybill-kit-"));
});

afterAll(async () => {
  await panel.end();
  await runtime.end();
  await rm(folder, { recursive: true, force: true });
});

function codeOf(language: string): string {
  const code = guide.match(new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``))?.[1];
  if (code === undefined) throw new Error(`the guide has no ${language} code`);
  return code;
}

/** What verify code must say: [header, secret, body, now] -> valid. */
const CASES: ReadonlyArray<readonly [string, string, string, number, boolean]> = (() => {
  const { t, secrets, signature, body } = vector;
  const [time = "", newest = "", oldest = ""] = signature.split(",");
  return [
    [signature, secrets.new, body, t, true],
    [signature, secrets.old, body, t, true],
    [`${time},${newest}`, secrets.new, body, t, true],
    [`${time},${oldest}`, secrets.old, body, t, true],
    [signature, secrets.new, body, t + 300, true],
    [signature, secrets.new, body, t - 300, true],
    [signature, secrets.new, body, t + 301, false],
    [signature, secrets.new, body, t - 301, false],
    [signature, OTHER, body, t, false],
    [`${time},${newest}`, secrets.old, body, t, false],
    [signature, secrets.new, `${body} `, t, false],
    [`t=${t + 1},${newest},${oldest}`, secrets.new, body, t, false],
    [time, secrets.new, body, t, false],
    [newest, secrets.new, body, t, false],
    [`${time},v1=zz`, secrets.new, body, t, false],
    ["", secrets.new, body, t, false],
  ];
})();
const EXPECTED = CASES.map(([, , , , valid]) => valid);

test("the vector is valid with either secret and with no other", () => {
  const { signature, secrets, body, t } = vector;
  expect(signature.split(",")).toHaveLength(3);
  expect(body).toContain("Forlì");
  const judge = (secret: string) =>
    verifySignature(signature, [secret], Buffer.from(body), t * 1000);
  expect([secrets.new, secrets.old, OTHER].map(judge)).toEqual(["valid", "valid", "mismatch"]);
});

describe("the guide's verify code judges the vector and what is bent from it", () => {
  test("TypeScript", async () => {
    const file = join(folder, "verify.ts");
    await writeFile(file, codeOf("ts"));
    const { verifyWebhook } = await import(file);
    const bytes = CASES.map(([header, secret, body, now]) =>
      verifyWebhook(Buffer.from(body), header, secret, now),
    );
    expect(bytes).toEqual(EXPECTED);
    const texts = CASES.map(([header, secret, body, now]) =>
      verifyWebhook(body, header, secret, now),
    );
    expect(texts).toEqual(EXPECTED);
  });

  const runs = (program: string) => spawnSync(program, ["--version"]).status === 0;

  test.skipIf(!runs("python3"))("Python", async () => {
    const file = join(folder, "verify.py");
    const main = [
      "import json, sys",
      "cases = json.load(sys.stdin)",
      "print(json.dumps([verify_webhook(b.encode(), h, s, n) for h, s, b, n, _ in cases]))",
    ];
    await writeFile(file, `${codeOf("python")}\n${main.join("\n")}\n`);
    const ran = spawnSync("python3", [file], { input: JSON.stringify(CASES), encoding: "utf8" });
    expect(ran.stderr).toBe("");
    expect(JSON.parse(ran.stdout)).toEqual(EXPECTED);
  });

  test.skipIf(!runs("php"))("PHP", async () => {
    const file = join(folder, "verify.php");
    const main =
      'echo json_encode(array_map(fn($c) => verify_webhook($c[2], $c[0], $c[1], $c[3]), json_decode(file_get_contents("php://stdin"), true)));';
    await writeFile(file, `${codeOf("php")}\n${main}\n`);
    const ran = spawnSync("php", [file], { input: JSON.stringify(CASES), encoding: "utf8" });
    expect(ran.stderr).toBe("");
    expect(JSON.parse(ran.stdout)).toEqual(EXPECTED);
  });
});

describe("what receivers may read without a token", () => {
  const open = async (path: string) => {
    const app = createPanelApp(runtime, { ready: async () => false } as never);
    return app.handle(new Request(`http://localhost${path}`));
  };

  test("/ips.txt lists the configured addresses, one per line", async () => {
    const response = await open("/ips.txt");
    expect(response.headers.get("content-type")).toStartWith("text/plain");
    expect(await response.text()).toBe("203.0.113.7\n2001:db8::7\n");
  });

  test("/ips.txt without a configured list is empty: this machine does not know what receivers see", async () => {
    const bare = { ...runtime, config: { ...runtime.config, outboundIps: [] } };
    const app = createPanelApp(bare, { ready: async () => false } as never);
    const response = await app.handle(new Request("http://localhost/ips.txt"));
    expect([response.status, await response.text()]).toEqual([200, ""]);
  });

  test("the payload's JSON Schema holds for what is sent, consignee or not, and for the vector", async () => {
    const schema = await (await open("/webhooks/payload.schema.json")).json();
    expect(schema).toMatchObject({ $schema: expect.stringContaining("2020-12"), type: "object" });
    const checker = TypeCompiler.Compile(WebhookPayload);
    const event: WebhookEvent = {
      id: "evt_1",
      type: "webhook.test",
      createdAtMs: 0,
      trigger: "every_event",
      fact: SAMPLE_FACT,
    };
    for (const withConsignee of [true, false]) {
      const payload = webhookPayload(event, SAMPLE_SHIPMENT, withConsignee);
      expect([...checker.Errors(payload)]).toEqual([]);
      expect(checker.Check({ ...payload, somethingNew: 1 })).toBe(true);
      expect(checker.Check({ ...payload, apiVersion: 2 })).toBe(false);
    }
    expect([...checker.Errors(JSON.parse(vector.body))]).toEqual([]);
  });

  test("the AsyncAPI description is whole: every reference leads somewhere", async () => {
    const text = await (await open("/webhooks/asyncapi.json")).text();
    const document = JSON.parse(text);
    expect(document).toMatchObject({
      asyncapi: "3.0.0",
      operations: { deliver: { action: "send" } },
    });
    const references = [...text.matchAll(/"\$ref":"#\/([^"]+)"/g)].map(([, path = ""]) => path);
    expect(references.length).toBeGreaterThan(4);
    for (const path of references) {
      const found = path.split("/").reduce((node, key) => node?.[key], document);
      expect(found).toBeDefined();
    }
    const { headers } = document.components.messages.shipmentUpdated;
    expect(headers.required).toContain("X-Service-Signature");
  });
});
