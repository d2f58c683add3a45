/** The receiver's kit: guide, vector, schema, AsyncAPI, addresses. Document 3, Signature rules 4 and 6, Authentication. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { spawnSync } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createConfig, lintFromString } from "@redocly/openapi-core";
import { TypeCompiler } from "@sinclair/typebox/compiler";
import { SAMPLE_SHIPMENT } from "#core/shipments/rules/sample-shipment.ts";
import { verifySignature } from "#core/webhooks/rules/signature.ts";
import {
  type WebhookEvent,
  WebhookPayload,
  webhookPayload,
} from "#core/webhooks/rules/webhook-payload.ts";
import { SAMPLE_FACT } from "#core/webhooks/rules/webhook-sample.ts";
import { createPanelApp } from "#panel/server/app.ts";
import { typesOf, UNKNOWN_TYPE } from "#test/client-types/generate.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { openTestPanel, type TestPanel } from "#test/support/product/panel.ts";
import { openTestRuntime, type TestRuntime } from "#test/support/product/runtime.ts";

interface Vector {
  readonly t: number;
  readonly secrets: { readonly new: string; readonly old: string };
  readonly signature: string;
  readonly body: string;
}

const vector: Vector = await Bun.file("docs/vectors/webhook-signature.json").json();
const guide = await readFile("docs/webhooks.md", "utf8");
interface Message {
  readonly name: string;
  readonly headers: { readonly properties: object };
  readonly examples: readonly { readonly headers: Readonly<Record<string, string>> }[];
}

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
    [`${time},v1=`, secrets.new, body, t, false],
    [`t=${"9".repeat(30)},${newest}`, secrets.new, body, t, false],
    [`t=,${newest}`, secrets.new, body, t, false],
    ["t,v1", secrets.new, body, t, false],
    ["", secrets.new, body, t, false],
  ];
})();
const EXPECTED = CASES.map(([, , , , valid]) => valid);

/** Header, secret, body in base64 and the time, one case a line: any language reads that without a parser for JSON. */
const LINES = CASES.map(([header, secret, body, now]) =>
  [header, secret, body].map((text) => Buffer.from(text).toString("base64")).concat(`${now}`),
)
  .map((fields) => fields.join("\t"))
  .join("\n");

/** Runs commands in a folder; the last one reads the cases and prints a verdict a line. */
function judgedBy(commands: readonly (readonly string[])[], home: string): boolean[] {
  let printed = "";
  for (const [program = "", ...args] of commands) {
    const ran = spawnSync(program, args, { cwd: home, input: LINES, encoding: "utf8" });
    expect(`${ran.stderr}${ran.error ?? ""}`).toBe("");
    expect(ran.status).toBe(0);
    printed = ran.stdout;
  }
  return printed
    .trim()
    .split("\n")
    .map((line) => line.trim().toLowerCase() === "true");
}

/** Code of the guide, a program around it, and what it takes to run both. */
interface Sample {
  readonly language: string;
  /** Of its code block. */
  readonly fence: string;
  readonly program: string;
  readonly file: string;
  readonly main: string;
  /** Where the program has a file of its own. */
  readonly mainFile?: string;
  readonly run: readonly (readonly string[])[];
}

/** Go compiles its own library at first: 15 s of CPU. */
const SAMPLE_LIMIT_MS = 120_000;

const SAMPLES: readonly Sample[] = [
  {
    language: "Python",
    fence: "python",
    program: "python3",
    file: "verify.py",
    main: String.raw`
import base64, sys
for line in sys.stdin:
    *texts, now = line.split("\t")
    header, secret, body = (base64.b64decode(text) for text in texts)
    print(verify_webhook(body, header.decode(), secret.decode(), int(now)))
`,
    run: [["python3", "verify.py"]],
  },
  {
    language: "PHP",
    fence: "php",
    program: "php",
    file: "verify.php",
    main: String.raw`
foreach (file('php://stdin') as $line) {
    [$header, $secret, $body, $now] = explode("\t", trim($line, "\n"));
    $valid = verify_webhook(base64_decode($body), base64_decode($header), base64_decode($secret), (int) $now);
    echo $valid ? 'true' : 'false', "\n";
}
`,
    run: [["php", "verify.php"]],
  },
  {
    language: "Ruby",
    fence: "ruby",
    program: "ruby",
    file: "verify.rb",
    main: String.raw`
STDIN.each_line do |line|
  *texts, now = line.split("\t")
  header, secret, body = texts.map { |text| text.unpack1("m") }
  puts verify_webhook(body, header, secret, now: now.to_i)
end
`,
    run: [["ruby", "verify.rb"]],
  },
  {
    language: "Go",
    fence: "go",
    program: "go",
    file: "verify.go",
    mainFile: "main.go",
    main: String.raw`package main

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

func main() {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		fields := strings.Split(lines.Text(), "\t")
		header, _ := base64.StdEncoding.DecodeString(fields[0])
		secret, _ := base64.StdEncoding.DecodeString(fields[1])
		body, _ := base64.StdEncoding.DecodeString(fields[2])
		now, _ := strconv.ParseInt(fields[3], 10, 64)
		fmt.Println(VerifyWebhook(body, string(header), string(secret), time.Unix(now, 0)))
	}
}
`,
    run: [["go", "run", "verify.go", "main.go"]],
  },
  {
    language: "Java",
    fence: "java",
    program: "javac",
    file: "WebhookSignature.java",
    mainFile: "Main.java",
    main: String.raw`
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Base64;

class Main {
    public static void main(String[] args) throws Exception {
        var in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] fields = line.split("\t", -1);
            var base64 = Base64.getDecoder();
            String header = new String(base64.decode(fields[0]));
            String secret = new String(base64.decode(fields[1]));
            long now = Long.parseLong(fields[3]);
            System.out.println(WebhookSignature.verify(base64.decode(fields[2]), header, secret, now));
        }
    }
}
`,
    run: [
      ["javac", "-d", ".", "WebhookSignature.java", "Main.java"],
      ["java", "-XX:TieredStopAtLevel=1", "Main"],
    ],
  },
  {
    language: "C#",
    fence: "csharp",
    program: "mcs",
    file: "WebhookSignature.cs",
    mainFile: "Main.cs",
    main: String.raw`
using System;
using System.Text;

class Program
{
    static string Text(string field)
    {
        return Encoding.UTF8.GetString(Convert.FromBase64String(field));
    }

    static void Main()
    {
        for (string line = Console.ReadLine(); line != null; line = Console.ReadLine())
        {
            string[] fields = line.Split('\t');
            byte[] body = Convert.FromBase64String(fields[2]);
            Console.WriteLine(WebhookSignature.Verify(body, Text(fields[0]), Text(fields[1]), long.Parse(fields[3])));
        }
    }
}
`,
    run: [
      ["mcs", "-out:verify.exe", "WebhookSignature.cs", "Main.cs"],
      ["mono", "verify.exe"],
    ],
  },
];

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

  for (const { language, fence, file, main, mainFile, program, run } of SAMPLES) {
    const isMissing = Bun.which(program) === null;
    const name = isMissing ? `${language}: not run, no ${program} on this machine` : language;
    test.skipIf(isMissing)(
      name,
      async () => {
        const home = await mkdtemp(join(folder, "sample-"));
        const code = codeOf(fence);
        await writeFile(join(home, file), mainFile === undefined ? `${code}\n${main}` : code);
        if (mainFile !== undefined) await writeFile(join(home, mainFile), main);
        expect(judgedBy(run, home)).toEqual(EXPECTED);
      },
      SAMPLE_LIMIT_MS,
    );
  }
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

  test("security.txt names the contact that is configured, and when it expires (RFC 9116); 404 without one", async () => {
    const path = "/.well-known/security.txt";
    expect((await open(path)).status).toBe(404);
    const config = { ...runtime.config, securityContact: "mailto:security@acme.test" };
    const app = createPanelApp({ ...runtime, config }, { ready: async () => false } as never);
    const response = await app.handle(new Request(`http://localhost${path}`));
    expect(response.headers.get("content-type")).toBe("text/plain; charset=utf-8");
    const text = await response.text();
    expect(text).toStartWith("Contact: mailto:security@acme.test\nExpires: ");
    const [, expires = ""] = /^Expires: (.*)$/m.exec(text) ?? [];
    expect(Date.parse(expires)).toBeGreaterThan(runtime.live.now());
    expect(Date.parse(expires)).toBeLessThan(runtime.live.now() + 365 * 86_400_000);
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
    // Receivers keep the vector in their own tests: it stays as it is when payloads get another member.
    const faults = [...checker.Errors(JSON.parse(vector.body))];
    expect(faults.filter(({ value }) => value !== undefined)).toEqual([]);
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

  test("has no fault and no warning by Redocly's recommended rules", async () => {
    const source = await (await open("/webhooks/asyncapi.json")).text();
    const config = await createConfig({ extends: ["recommended"] });
    const problems = await lintFromString({ source, config });
    expect(problems.map(({ ruleId, message }) => `${ruleId}: ${message}`)).toEqual([]);
  });

  test("says of every member of a message what it is: `unknown` nowhere in types made from it", async () => {
    const { components } = JSON.parse(await (await open("/webhooks/asyncapi.json")).text());
    const parts = Object.entries<Record<"payload" | "headers", object>>(components.messages);
    const schemas = Object.fromEntries(
      parts.flatMap(([name, { payload, headers }]) => [
        [`${name}Payload`, payload],
        [`${name}Headers`, headers],
      ]),
    );
    expect(parts.length).toBeGreaterThan(2);
    const types = await typesOf({
      openapi: "3.1.0",
      info: { title: "webhooks", version: "2" },
      paths: {},
      components: { schemas: { ...components.schemas, ...schemas } },
    });
    expect(types).toContain("ImportFinishedPayload");
    expect(types).not.toMatch(UNKNOWN_TYPE);
  });

  test("its page has every event with its signed example, every header and member, and the test vector", async () => {
    const document = JSON.parse(await (await open("/webhooks/asyncapi.json")).text());
    const page = await (await open("/webhooks/docs")).text();
    for (const { name, headers, examples } of Object.values<Message>(
      document.components.messages,
    )) {
      expect(page).toContain(`<h3 id="${name}">`);
      for (const header of Object.keys(headers.properties))
        expect(page).toContain(`<td>${header}</td>`);
      expect(page).toContain(examples[0]?.headers["X-Service-Signature"] ?? "none");
    }
    for (const member of ["data.shipment.consignee.email", "data.event.statusDetailId"]) {
      expect(page).toContain(`<td>${member}</td>`);
    }
    expect(await (await open("/webhooks/vector.json")).json()).toEqual(vector);
    expect(await (await open("/docs/webhooks")).text()).toContain('href="/webhooks/vector.json"');
  });

  test("its examples are payloads of the schema, with signatures that verify with the secret they name", async () => {
    const document = JSON.parse(await (await open("/webhooks/asyncapi.json")).text());
    expect(document.info.description).toContain("`<t>.<raw body>`");
    const checker = TypeCompiler.Compile(WebhookPayload);
    for (const type of ["shipmentUpdated", "webhookTest", "importFinished"]) {
      const { name, examples } = document.components.messages[type];
      expect(examples).toHaveLength(1);
      const [{ headers, payload, summary }] = examples;
      expect(type === "importFinished" || checker.Check(payload)).toBe(true);
      expect(headers["X-Service-Event-Type"]).toBe(name);
      expect([payload.id, payload.jobId]).toContain(headers["X-Service-Event-Id"]);
      const secret = /whsec_[0-9a-f]{64}/.exec(summary)?.[0] ?? "";
      const signature = headers["X-Service-Signature"];
      const atMs = Number(/t=(\d+)/.exec(signature)?.[1]) * 1000;
      const body = new TextEncoder().encode(JSON.stringify(payload));
      expect(verifySignature(signature, [secret], body, atMs)).toBe("valid");
      expect(verifySignature(signature, [OTHER], body, atMs)).toBe("mismatch");
    }
  });
});
