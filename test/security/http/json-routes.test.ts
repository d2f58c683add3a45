/** Every route that takes JSON refuses the same tricks, with a clear 4xx, and nothing is left behind in the store. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readAnswer } from "#api/http/gateway.ts";
import { startApi } from "#api/main.ts";
import { ConfigFaults } from "#core/platform/environment/config.ts";
import { type Running, readSetup } from "#core/runtime/runtime.ts";
import { startIngest } from "#ingest/main.ts";
import { startPanel } from "#panel/main.ts";
import { startJobs } from "#processors/jobs/start.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { eventually } from "#test/support/eventually.ts";
import { item } from "#test/support/product/api.ts";
import { NO_CLICKHOUSE, openTestRuntime, type TestRuntime } from "#test/support/product/runtime.ts";

let runtime: TestRuntime;
let api: Running;
let panel: Running;
let ingest: Running;
let jobs: Running;
let token: string;

beforeAll(async () => {
  const setup = testSetup();
  const acme = setup.companies?.[0];
  Object.assign(acme ?? {}, { products: ["api-parcels", "checkAddress"] });
  Object.assign(acme?.channels?.[0] ?? {}, { addressCheck: true });
  runtime = await openTestRuntime(setup, {
    CLICKHOUSE_URL: NO_CLICKHOUSE,
  });
  api = await startApi(runtime);
  panel = await startPanel(runtime);
  ingest = await startIngest(runtime);
  jobs = await startJobs(runtime);
  const text = JSON.stringify({ apiKey: "key_acme_main" });
  const { body } = await send("POST", `${api.url}/v2/auth/token`, text);
  ({ token } = body);
});
afterAll(async () => {
  for (const role of [api, panel, ingest, jobs]) await role.stop();
  await runtime.end();
});

async function send(method: string, url: string, text: string | Uint8Array) {
  const bearer = url.startsWith(panel?.url ?? "-") ? runtime.secrets.panelToken : token;
  const headers = { authorization: `Bearer ${bearer}`, "content-type": "application/json" };
  const answer = await fetch(url, { method, headers, body: text });
  // biome-ignore lint/suspicious/noExplicitAny: tests look into whatever was answered
  const body: any = await answer.json().catch(() => null);
  return { status: answer.status, body, type: answer.headers.get("content-type") };
}

/** Every call with a JSON body. */
const API_ROUTES = [
  ["POST", "/v2/auth/token"],
  ["POST", "/v2/shipments"],
  ["POST", "/v2/shipments/import"],
  ["POST", "/v2/shipments/17/stock-release"],
  ["POST", "/v2/shipments/17/notifications"],
  ["PUT", "/v2/sandbox/1"],
  ["PATCH", "/v2/sandbox/1"],
  ["POST", "/v2/parcels"],
  ["PATCH", "/v2/parcels/abc"],
  ["POST", "/v2/addresses/check"],
  ["POST", "/v2/labels"],
  ["POST", "/v2/labels/confirm"],
  ["POST", "/v2/couriers/delivery-times"],
  ["POST", "/v2/couriers/efficiency-index"],
  ["POST", "/v2/couriers/promise"],
] as const;
const PANEL_ROUTES = [
  ["POST", "/panel/api/channels/acme-it/webhooks"],
  ["POST", "/panel/api/channels/acme-it/api-keys"],
  ["PUT", "/panel/api/couriers/GLS_ITA/catalogue/XX"],
  ["POST", "/panel/api/clock"],
  ["POST", "/panel/api/sql"],
] as const;

const nested = (depth: number) => `${"[".repeat(depth)}${"]".repeat(depth)}`;
const TRICKS: Readonly<Record<string, string | Uint8Array>> = {
  "1,500 nested brackets": `{"x":${nested(1_500)}}`,
  "1,500 nested brackets, never closed": `{"x":${"[".repeat(1_500)}`,
  "a key twice": '{"x":1,"x":2}',
  "a key twice, once by an escape": '{"x":1,"\\u0078":2}',
  "a key twice deep inside": '{"x":[{"y":{"z":1,"z":1}}]}',
  "a key __proto__": '{"__proto__":{"x":1}}',
  "a key __proto__ by an escape": '{"x":{"\\u005f_proto__":1}}',
  "bytes that are no UTF-8": Uint8Array.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]),
  "half a surrogate as UTF-8": Uint8Array.from([0x22, 0xed, 0xa0, 0x80, 0x22]),
  "text behind the value": "{}{}",
  "no JSON at all": "apiKey=key_acme_main",
};

describe("tricks", () => {
  test.each(Object.entries(TRICKS))("%s: 400 on every route", async (_, text) => {
    for (const [method, path] of API_ROUTES) {
      const { status, body } = await send(method, `${api.url}${path}`, text);
      expect([path, status, body?.code]).toEqual([path, 400, "MALFORMED_BODY"]);
    }
    for (const [method, path] of PANEL_ROUTES) {
      const { status, body, type } = await send(method, `${panel.url}${path}`, text);
      expect([path, status, body?.code]).toEqual([path, 400, "MALFORMED_BODY"]);
      expect(type).toBe("application/problem+json");
    }
  });

  test("50,000 nested brackets as the list of an import and as one of its items are 400 too, however large the body", async () => {
    const filler = Array.from({ length: 2_000 }, (_, at) => item(`FILLER-${at}`));
    const list = JSON.stringify(filler).slice(1, -1);
    for (const text of [
      `{"shipments":${nested(50_000)}}`,
      `{"shipments":[${list},${nested(50_000)}]}`,
      `{"shipments":[${list}],"x":${nested(50_000)}}`,
      `{"shipments":[${list}],"shipments":[]}`,
      `{"shipments":[${list},{"__proto__":{}}]}`,
      `{"shipments":[${list}]`,
    ]) {
      const { status, body } = await send("POST", `${api.url}/v2/shipments/import`, text);
      expect([status, body.code]).toEqual([400, "MALFORMED_BODY"]);
    }
  });

  test("keys named like members of every object do no harm", async () => {
    const text = `{"shipments":[],"constructor":{"prototype":{"polluted":1}},"toString":1}`;
    const { status } = await send("POST", `${api.url}/v2/shipments`, text);
    expect(status).toBe(422);
    expect(Object.hasOwn(Object.prototype, "polluted")).toBe(false);
  });
});

describe("half a surrogate pair", () => {
  /** In JSON an escape: UTF-8 cannot hold it. */
  const HALF = "cut \\ud83d";

  test("422 with its path on every route of the merchant API and the panel", async () => {
    for (const [method, path] of API_ROUTES) {
      if (path === "/v2/shipments" || path === "/v2/shipments/import") continue;
      const { status, body } = await send(method, `${api.url}${path}`, `{"x":{"y":"${HALF}"}}`);
      expect([path, status, body?.code]).toEqual([path, 422, "VALIDATION_FAILED"]);
      expect(body.violations).toEqual([
        { path: "x.y", code: "BAD_FORMAT", message: expect.any(String) },
      ]);
    }
    for (const [method, path] of PANEL_ROUTES) {
      const { status, body } = await send(method, `${panel.url}${path}`, `{"x":"${HALF}"}`);
      expect([path, status, body?.violations?.[0]?.path]).toEqual([path, 422, "x"]);
    }
  });

  test("in an orderReference: 422, no shipment is half made, and the same number can be created afterwards", async () => {
    const good = JSON.stringify(item("HALF-1"));
    const bad = JSON.stringify(item("HALF-2", { orderReference: "@" })).replace("@", HALF);
    const refused = await send("POST", `${api.url}/v2/shipments`, `{"shipments":[${good},${bad}]}`);
    expect(refused.status).toBe(422);
    expect(refused.body.violations).toEqual([
      {
        path: "shipments[1].orderReference",
        code: "BAD_FORMAT",
        message: expect.any(String),
      },
    ]);
    expect(await found("HALF-1")).toBe(0);
    const shipments = [item("HALF-1"), item("HALF-2")];
    const created = await send("POST", `${api.url}/v2/shipments`, JSON.stringify({ shipments }));
    expect([created.status, created.body.summary.totalSuccess]).toEqual([201, 2]);
    expect([await found("HALF-1"), await found("HALF-2")]).toEqual([1, 1]);
  });

  test("in an item of an import, small or large: the item fails alone, all others are created", async () => {
    for (const count of [3, 1_200]) {
      const items = Array.from({ length: count }, (_, at) => {
        const text = JSON.stringify(item(`IMP-${count}-${at}`, { orderReference: "@" }));
        return text.replace("@", at === count - 2 ? HALF : "fine");
      });
      const text = `{"shipments":[${items.join(",")}]}`;
      const accepted = await send("POST", `${api.url}/v2/shipments/import`, text);
      expect(accepted.status).toBe(202);
      const { result } = await jobOf(accepted.body.jobId);
      expect(result.summary).toEqual({
        totalRequested: count,
        totalSuccess: count - 1,
        totalFailed: 1,
      });
      expect(result.errors).toEqual([
        {
          index: count - 2,
          trackingNumber: `IMP-${count}-${count - 2}`,
          errors: [
            { code: "VALIDATION_ERROR", field: "orderReference", message: expect.any(String) },
          ],
        },
      ]);
      expect(await found(`IMP-${count}-${count - 2}`)).toBe(0);
      expect(await found(`IMP-${count}-${count - 1}`)).toBe(1);
    }
  }, 300_000);

  test("as the tracking number of an item of an import: the item fails alone", async () => {
    const bad = JSON.stringify(item("@")).replace("@", "\\udc00");
    const text = `{"shipments":[${bad},${JSON.stringify(item("IMP-OTHER"))}]}`;
    const { body } = await send("POST", `${api.url}/v2/shipments/import`, text);
    const { result } = await jobOf(body.jobId);
    expect(result.errors.map(({ index }: { index: number }) => index)).toEqual([0]);
    expect(result.errors[0].trackingNumber.isWellFormed()).toBe(true);
    expect(result.summary.totalSuccess).toBe(1);
  }, 300_000);

  test("a whole pair as escapes is text like any other", async () => {
    const text = JSON.stringify(item("PAIR-1", { orderReference: "@" })).replace(
      "@",
      "\\ud83d\\ude00",
    );
    const { status } = await send("POST", `${api.url}/v2/shipments`, `{"shipments":[${text}]}`);
    expect(status).toBe(201);
    expect(await found("PAIR-1")).toBe(1);
  });

  async function found(trackingNumber: string): Promise<number> {
    const answer = await fetch(`${api.url}/v2/shipments?trackingNumber=${trackingNumber}`, {
      headers: { authorization: `Bearer ${token}` },
    });
    return ((await answer.json()) as { total: number }).total;
  }

  function jobOf(jobId: string) {
    return eventually(async () => {
      const answer = await fetch(`${api.url}/v2/jobs/${jobId}`, {
        headers: { authorization: `Bearer ${token}` },
      });
      // biome-ignore lint/suspicious/noExplicitAny: tests look into whatever was answered
      const job = (await answer.json()) as any;
      return job.result !== null && job;
    }, "the import has ended");
  }
});

describe("other ways in", () => {
  test("paths and queries with bytes that are no UTF-8 are answered like other unknown ones, by every server", async () => {
    for (const part of ["%ff", "%ED%A0%80", "%C0%80", "%", "%zz", "%00"]) {
      for (const [running, path] of [
        [api, `/v2/shipments/${part}`],
        [api, `/v2/jobs/${part}`],
        [api, `/v2/orders/${part}`],
        [api, `/v2/parcels/${part}`],
        [api, `/v2/sandbox/${part}`],
        [api, `/v2/shipments?orderReference=${part}`],
        [api, `/v2/orders?source=${part}&reference=${part}`],
        [api, `/v2/parcels?orderReference=${part}&orderOrigin=${part}`],
        [panel, `/panel/api/couriers/${part}`],
        [panel, `/panel/api/couriers/${part}/catalogue`],
        [panel, `/panel/api/webhooks/${part}`],
        [panel, `/panel/api/webhooks/${part}/deliveries?state=${part}`],
        [panel, `/panel/api/deliveries/${part}`],
        [panel, `/panel/api/dead-letters?cursor=${part}`],
        [panel, `/panel/api/shipments/${part}/trace`],
        [panel, `/slips/${part}`],
        [panel, `/t/${part}`],
        [ingest, `/v1/${part}`],
      ] as const) {
        const bearer = running === panel ? runtime.secrets.panelToken : token;
        const status = await rawGet(running.url ?? "", path, bearer);
        expect([path, status < 500]).toEqual([path, true]);
      }
    }
  });

  test("a setup file with a trick is refused with a sentence", async () => {
    const folder = await mkdtemp(join(tmpdir(), "waybill-setup-"));
    try {
      const path = join(folder, "setup.json");
      for (const [text, about] of [
        ['{"platforms":["a"],"platforms":["b"]}', "twice"],
        [`{"platforms":${nested(40)}}`, "nested"],
        ['{"__proto__":{}}', "__proto__"],
        ['{"platforms":["\\ud800"]}', "platforms[0]"],
        ['{"platforms":', "JSON"],
      ] as const) {
        await writeFile(path, text);
        const refusal = await readSetup(path).catch((error: Error) => error as Error);
        expect(refusal).toBeInstanceOf(ConfigFaults);
        expect((refusal as Error).message).toContain(about);
      }
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });

  test("an answer of a carrier or a geocoder with a trick counts as unreadable", async () => {
    const read = (text: string) => readAnswer(new Response(text), 1_000);
    expect(await read('{"label":"x"}')).toEqual({ label: "x" });
    for (const text of [
      '{"label":"\\ud800"}',
      '{"a":1,"a":2}',
      '{"__proto__":{}}',
      nested(40),
      `"${"x".repeat(999)}"`,
      "<html>",
    ]) {
      expect(await read(text)).toBeUndefined();
    }
  });
});

/** A request line as given: other clients would put the path right. @returns the status */
function rawGet(url: string, path: string, bearer: string): Promise<number> {
  const { hostname, port, host } = new URL(url);
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname, () => {
      socket.write(
        `GET ${path} HTTP/1.1\r\nhost: ${host}\r\nauthorization: Bearer ${bearer}\r\nconnection: close\r\n\r\n`,
      );
    });
    let text = "";
    socket.on("data", (bytes) => {
      text += bytes.toString("latin1");
    });
    socket.on("error", reject);
    socket.on("close", () => resolve(Number(/^HTTP\/1\.1 (\d{3})/.exec(text)?.[1] ?? 0)));
  });
}
