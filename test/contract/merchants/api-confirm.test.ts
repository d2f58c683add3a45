/** Document 1, `POST /v2/labels/confirm`: transmissions, refusals, the slip behind its secret address. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { openBenchmarks } from "#analytics/benchmarks.ts";
import { type SimulatedCarrier, startNationalCarrier } from "#demo/national-carrier.ts";
import { createPanelApp } from "#panel/server/app.ts";
import { labelBody, labelSetup } from "#test/support/data/label-setup.ts";
import { openTestApi, type TestApi } from "#test/support/product/api.ts";
import { pdfInfo, pdfText } from "#test/support/rendered-label.ts";

const PUBLIC_URL = "https://waybill.example";

let api: TestApi;
let carrier: SimulatedCarrier;
let token: string;
let slip: (location: string) => Promise<Response>;
let closeBenchmarks: () => Promise<void>;

beforeAll(async () => {
  carrier = startNationalCarrier();
  const env = { NATIONAL_CARRIER_URL: carrier.url, PUBLIC_URL };
  api = await openTestApi(labelSetup(), "away", env);
  token = await api.token("key_acme_main");
  const benchmarks = await openBenchmarks(api.runtime.config);
  closeBenchmarks = () => benchmarks.close();
  const panel = createPanelApp(api.runtime, benchmarks);
  // Whatever ends TLS for the public address goes on in plain HTTP.
  slip = async (location) => panel.handle(new Request(location.replace("https:", "http:")));
});
afterAll(async () => {
  await closeBenchmarks();
  await api.end();
  await carrier.stop();
});

async function labels(count: number, courier = "GENERIC", as = token) {
  const made: { id: number; reference: string; number: string }[] = [];
  for (let at = 0; at < count; at += 1) {
    const { body } = await api.call("POST", "/v2/labels", {
      token: as,
      body: labelBody({ courier }),
    });
    const { id, reference, trackingNumbers } = body;
    made.push({ id, reference, number: trackingNumbers[0].number });
  }
  return made;
}

const confirm = (labelIds: readonly unknown[], members: object = {}, as = token) =>
  api.call("POST", "/v2/labels/confirm", {
    token: as,
    body: { courier: "GENERIC", labelIds, ...members },
  });
const idsOf = (made: ReadonlyArray<{ id: number }>) => made.map(({ id }) => id);

describe("201", () => {
  test("opens a transmission; Location is the address of its slip", async () => {
    const made = await labels(3);
    const answer = await confirm(idsOf(made), { pickupDate: "2026-12-01", pickupTime: "14:30" });
    expect(answer.status).toBe(201);
    const { transmissionId, transmissionNumber } = answer.body;
    const slipUrl = answer.headers.get("location");
    expect(answer.body).toEqual({
      transmissionId: expect.any(Number),
      transmissionNumber: expect.stringMatching(/^T\d{9,}$/),
      courier: "GENERIC",
      confirmedIds: idsOf(made),
      alreadyConfirmedIds: [],
      notFoundIds: [],
      errors: [],
      pickupDate: "2026-12-01",
      pickupTime: "14:30",
      createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*[+]0[12]:00$/),
      transmissions: [{ transmissionId, transmissionNumber, slipUrl, labelIds: idsOf(made) }],
    });
    expect(slipUrl).toMatch(/^https:\/\/waybill\.example\/slips\/[0-9a-f][\w-]{43}$/);
  });

  test("the slip is a PDF with every label, served without a token and not to be guessed", async () => {
    const made = await labels(2);
    const { headers, body } = await confirm(idsOf(made), { pickupDate: "2026-12-02" });
    const location = headers.get("location") ?? "";
    const response = await slip(location);
    expect(response.status).toBe(200);
    expect(response.headers.get("content-type")).toBe("application/pdf");
    expect(response.headers.get("cache-control")).toBe("private, no-store");
    const text = pdfText(new Uint8Array(await response.arrayBuffer()));
    for (const { reference, number } of made) {
      expect(text).toContain(reference);
      expect(text).toContain(number);
    }
    expect(text).toContain(body.transmissionNumber);
    expect(text).toContain("2026-12-02");
    for (const wrong of [`${location}x`, location.slice(0, -1), `${PUBLIC_URL}/slips/0`]) {
      expect((await slip(wrong)).status).toBe(404);
    }
    const last = location.endsWith("A") ? "B" : "A";
    expect((await slip(`${location.slice(0, -1)}${last}`)).status).toBe(404);
  });

  test("the slip is made of what was kept: every reading gives the same bytes", async () => {
    const { headers } = await confirm(idsOf(await labels(2)));
    const location = headers.get("location") ?? "";
    const [one, other] = [await slip(location), await slip(location)];
    expect(Buffer.from(await one.arrayBuffer())).toEqual(Buffer.from(await other.arrayBuffer()));
  });

  test("a slip of many labels goes on over more pages", async () => {
    const made = await labels(60);
    const { headers } = await confirm(idsOf(made));
    const response = await slip(headers.get("location") ?? "");
    expect(pdfInfo(new Uint8Array(await response.arrayBuffer())).pages).toBe(2);
  });

  test("new, known and unknown labels in one call: the new ones are confirmed", async () => {
    const [old, fresh] = await labels(2);
    const first = await confirm([old?.id]);
    const answer = await confirm([old?.id, fresh?.id, 999_984, fresh?.id]);
    expect(answer.status).toBe(201);
    expect(answer.body).toMatchObject({
      confirmedIds: [fresh?.id],
      alreadyConfirmedIds: [old?.id],
      notFoundIds: [999_984],
      errors: [],
    });
    expect(answer.body.transmissionId).not.toBe(first.body.transmissionId);
  });

  test("labels that the carrier refuses stand in errors and may be confirmed later", async () => {
    const made = await labels(3, "POSTE_ITA");
    const refused = made.filter(({ number }) => number.endsWith("3IT"));
    expect(refused).toHaveLength(1);
    const answer = await confirm(idsOf(made), { courier: "POSTE_ITA", pickupDate: "2026-12-03" });
    expect(answer.status).toBe(201);
    const [one] = refused;
    expect(answer.body.errors).toEqual([
      { labelId: one?.id, code: "NOT_ACCEPTED", message: "Spedizione non accettata." },
    ]);
    expect(answer.body.confirmedIds).toHaveLength(2);
    expect(carrier.confirmations.at(-1)).toMatchObject({ pickupDate: "2026-12-03" });
    const alone = await confirm([one?.id], { courier: "POSTE_ITA" });
    expect(alone).toMatchObject({ status: 422, body: { code: "CARRIER_REFUSED" } });
    expect(alone.headers.get("content-type")).toBe("application/problem+json");
  });
});

describe("200", () => {
  test("labels of one transmission confirmed again: no new one, the same Location", async () => {
    const made = await labels(2);
    const first = await confirm(idsOf(made));
    for (const ids of [idsOf(made), [...idsOf(made), 999_968], [made[0]?.id]]) {
      const answer = await confirm(ids);
      expect(answer.status).toBe(200);
      expect(answer.headers.get("location")).toBe(first.headers.get("location"));
      expect(answer.body).toMatchObject({
        transmissionId: null,
        transmissionNumber: null,
        confirmedIds: [],
        alreadyConfirmedIds: idsOf(made).filter((id) => ids.includes(id)),
        errors: [],
        createdAt: null,
        transmissions: [
          {
            transmissionId: first.body.transmissionId,
            transmissionNumber: first.body.transmissionNumber,
            slipUrl: first.headers.get("location"),
            labelIds: idsOf(made).filter((id) => ids.includes(id)),
          },
        ],
      });
    }
  });

  test("labels of several transmissions: Location is the latest, the body lists them all", async () => {
    const [old, fresh] = await labels(2);
    const first = await confirm([old?.id]);
    const second = await confirm([fresh?.id, old?.id]);
    const answer = await confirm([old?.id, fresh?.id]);
    expect(answer.status).toBe(200);
    expect(answer.headers.get("location")).toBe(second.headers.get("location"));
    expect(answer.body.transmissions).toMatchObject([
      { slipUrl: second.headers.get("location"), labelIds: [fresh?.id] },
      { slipUrl: first.headers.get("location"), labelIds: [old?.id] },
    ]);
    expect(second.body.transmissions).toEqual(answer.body.transmissions);
  });

  test("labels that are not found: no transmission, no Location", async () => {
    const answer = await confirm([999_968]);
    expect([answer.status, answer.headers.get("location")]).toEqual([200, null]);
    expect(answer.body).toMatchObject({ notFoundIds: [999_968], transmissions: [] });
  });

  test("labels of another channel or of another carrier are not found", async () => {
    const [foreign] = await labels(1, "GENERIC", await api.token("key_acme_outlet"));
    const [other] = await labels(1, "POSTE-ITA-CRONO");
    const answer = await confirm([foreign?.id, other?.id]);
    expect([answer.status, answer.body.notFoundIds]).toEqual([200, [foreign?.id, other?.id]]);
  });

  test("ten confirmations at once, over two processes: one transmission holds each label", async () => {
    const other = await api.another();
    const made = await labels(5);
    const body = { courier: "GENERIC", labelIds: idsOf(made) };
    const answers = await Promise.all(
      Array.from({ length: 10 }, (_, at) =>
        (at % 2 === 0 ? api.call : other)("POST", "/v2/labels/confirm", { token, body }),
      ),
    );
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(1);
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(9);
    expect(answers.flatMap((answer) => answer.body.confirmedIds)).toEqual(idsOf(made));
    expect(new Set(answers.map(({ headers }) => headers.get("location"))).size).toBe(1);
  });
});

describe("400", () => {
  test("a carrier that makes no labels here", async () => {
    for (const courier of ["NOBODY", "GLS_ITA", "POSTE-ITA-OFF"]) {
      expect(await confirm([1], { courier })).toMatchObject({
        status: 400,
        body: { code: "UNKNOWN_CARRIER", title: "Bad Request" },
      });
    }
  });
});

describe("422", () => {
  test.each([
    ["labelCreationDate", { labelCreationDate: "2026-11-20" }, "labelCreationDate NOT_ALLOWED"],
    ["a pickupTime alone", { pickupTime: "10:00" }, "pickupDate REQUIRED"],
    [
      "a time that is none",
      { pickupDate: "2026-12-01", pickupTime: "25:00" },
      "pickupTime BAD_FORMAT",
    ],
    ["a date that is none", { pickupDate: "01-12-2026" }, "pickupDate BAD_FORMAT"],
    ["no labels", { labelIds: [] }, "labelIds TOO_FEW"],
    ["labels that are no numbers", { labelIds: ["x"] }, "labelIds[0] WRONG_TYPE"],
    ["no courier", { courier: null }, "courier REQUIRED"],
  ])("%s", async (_, members, violation) => {
    const answer = await confirm([1], members);
    expect(answer.status).toBe(422);
    const reported = answer.body.violations.map(
      ({ path, code }: { path: string; code: string }) => `${path} ${code}`,
    );
    expect(reported).toContain(violation);
  });
});

describe("502", () => {
  test("the carrier is unavailable: nothing is confirmed, and the next call may", async () => {
    const [made] = (await labels(2, "POSTE_ITA")).filter(({ number }) => !number.endsWith("3IT"));
    const away = await confirm([made?.id], { courier: "POSTE_ITA", pickupDate: "2000-01-01" });
    expect(away).toMatchObject({ status: 502, body: { code: "CARRIER_UNREACHABLE" } });
    const answer = await confirm([made?.id], { courier: "POSTE_ITA" });
    expect([answer.status, answer.body.confirmedIds]).toEqual([201, [made?.id]]);
  });
});

describe("read again", () => {
  const read = (path: string, as = token) => api.call("GET", `/v2/labels/${path}`, { token: as });

  test("a label is as it was made, with the transmission that holds it", async () => {
    const { body: made } = await api.call("POST", "/v2/labels", { token, body: labelBody() });
    const before = await read(made.id);
    expect([before.status, before.body]).toEqual([
      200,
      {
        ...made,
        isExisting: true,
        transmission: null,
        voidedAt: null,
        createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*[+]0[12]:00$/),
      },
    ]);
    const { transmissions } = (await confirm([made.id])).body;
    const { labelIds, ...transmission } = transmissions[0];
    const after = await read(made.id);
    expect(after.body).toEqual({ ...before.body, transmission });
    const headers = { "if-none-match": after.headers.get("etag") ?? "" };
    expect((await api.call("GET", `/v2/labels/${made.id}`, { token, headers })).status).toBe(304);
  });

  test("a transmission is as it was opened, however its labels are confirmed again", async () => {
    const [one, other] = await labels(2);
    const pickup = { pickupDate: "2026-12-01", pickupTime: "14:30" };
    const opened = (await confirm([one?.id], pickup)).body;
    await confirm([one?.id, other?.id]);
    const { status, body } = await read(`transmissions/${opened.transmissionId}`);
    expect(status).toBe(200);
    expect(body).toEqual({
      transmissionId: opened.transmissionId,
      courier: "GENERIC",
      labelIds: [one?.id],
      transmissionNumber: opened.transmissionNumber,
      slipUrl: opened.transmissions[0].slipUrl,
      ...pickup,
      createdAt: opened.createdAt,
    });
  });

  test("404: missing ids, ids of other channels and what is no id answer the same", async () => {
    const [made] = await labels(1);
    const { transmissionId } = (await confirm([made?.id])).body;
    for (const [own, path] of [
      [made?.id, ""],
      [transmissionId, "transmissions/"],
    ] as const) {
      const missing = await read(`${path}999984`);
      expect(missing.status).toBe(404);
      for (const key of ["key_acme_outlet", "key_beta_main"]) {
        const foreign = await read(`${path}${own}`, await api.token(key));
        expect([foreign.status, foreign.body]).toEqual([404, missing.body]);
      }
      expect((await read(`${path}${own}x`)).body).toEqual(missing.body);
    }
  });
});
