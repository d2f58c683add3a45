/** Document 1, `POST /v2/labels`: labels of GENERIC and of the national carrier. */
import { beforeAll, describe, expect, test } from "bun:test";
import { labelDigest, labelDigestAsGiven } from "#core/merchants/rules/label.ts";
import { claimLabel } from "#core/merchants/store/labels.ts";
import { companyKeys, companyPartition } from "#core/platform/redis/keys.ts";
import { startNationalCarrier } from "#demo/national-carrier.ts";
import { CONSIGNEE, labelBody, labelSetup } from "#test/support/data/label-setup.ts";
import { forAll } from "#test/support/for-all.ts";
import { openTestApi } from "#test/support/product/api.ts";
import { pdfInfo, pdfText, readBarcode, renderPage } from "#test/support/rendered-label.ts";

let token: string;
let outlet: string;
let beta: string;

const carrier = forAll(async () => startNationalCarrier());
const api = forAll(() => openTestApi(labelSetup(), "away", { NATIONAL_CARRIER_URL: carrier.url }));
beforeAll(async () => {
  token = await api.token("key_acme_main");
  outlet = await api.token("key_acme_outlet");
  beta = await api.token("key_beta_main");
});

const post = (body: object, as = token) => api.call("POST", "/v2/labels", { token: as, body });
const national = (members: Readonly<Record<string, unknown>> = {}) =>
  labelBody({ courier: "POSTE_ITA", ...members });
const pdfOf = (label: string) => Buffer.from(label, "base64");
const callsFor = (reference: string) =>
  carrier.orders.filter((order) => order.reference === reference).length;

describe("201", () => {
  test("the label resource of the document", async () => {
    const body = labelBody();
    const answer = await post(body);
    expect(answer).toMatchObject({ status: 201 });
    expect(answer.body).toEqual({
      id: expect.any(Number),
      trackingNumbers: [{ number: expect.any(String), description: "parcel 1 of 1" }],
      courier: "GENERIC",
      reference: body.reference,
      labels: [expect.any(String)],
      labelFormat: "PDF",
      extShipmentId: null,
      isExisting: false,
    });
  });

  test("PDF: one page of 10x15 cm a parcel, its Code 128 decodes to the tracking number", async () => {
    const parcels = [{ weight: 1.25 }, { weight: 2 }, {}];
    const { body } = await post(labelBody({ parcels }));
    expect(body.labels).toHaveLength(3);
    for (const [at, label] of body.labels.entries()) {
      const pdf = pdfOf(label);
      const { pages, width, height } = pdfInfo(pdf);
      expect([pages, Math.round(width), Math.round(height)]).toEqual([1, 283, 425]);
      expect(readBarcode(renderPage(pdf))).toBe(body.trackingNumbers[at].number);
    }
  });

  test("currency is EUR towards the carrier where none is given", async () => {
    const asked = [{ isCod: true, amount: 12.5 }, { currency: "CHF" }, undefined];
    const references = await Promise.all(
      asked.map(async (monetary) => (await post(national({ monetary }))).body.reference),
    );
    const currencies = references.map(
      (name) => carrier.orders.find(({ reference }) => reference === name)?.monetary?.currency,
    );
    expect(currencies).toEqual(["EUR", "CHF", undefined]);
  });

  test("PDF: addresses, reference, weight and the parcel's place can be read", async () => {
    const { body } = await post(
      labelBody({
        parcels: [{ weight: 1.25 }, { weight: 2 }],
        content: "Libri",
        monetary: { isCod: true, amount: 12.5 },
      }),
    );
    const text = pdfText(pdfOf(body.labels[1]));
    const expected = ["Acme S.p.A.", "Via Roma 1", "20121 Milano (MI) IT", "00184 Roma (RM) IT"];
    expected.push(CONSIGNEE.name, CONSIGNEE.street, body.reference, "2 kg", "2/2", "12.50 EUR");
    expected.push("Libri", body.trackingNumbers[1].number);
    for (const part of expected) expect(text).toContain(part);
    expect(pdfText(pdfOf(body.labels[0]))).toContain("1.25 kg");
  });

  test("ZPL: the same content, with the barcode as a Code 128 field", async () => {
    const { body } = await post(labelBody({ content: "a^b~c_d" }), outlet);
    expect(body.labelFormat).toBe("ZPL");
    const [zpl] = body.labels as string[];
    expect(zpl).toMatch(/^\^XA\n\^CI28/);
    expect(zpl).toMatch(/\^XZ$/);
    expect(zpl).toContain(`^BCN,200,N,N,N,A^FH_^FD${body.trackingNumbers[0].number}^FS`);
    for (const part of ["Acme S.p.A.", "Via Roma 1", "00184 Roma (RM) IT", body.reference]) {
      expect(zpl).toContain(part);
    }
    expect(zpl).toContain("1.5 kg");
    expect(zpl).toContain("a_5Eb_7Ec_5Fd");
  });

  test("text of any script is shown or transliterated, in PDF and in ZPL", async () => {
    const consignee = {
      ...CONSIGNEE,
      name: "Київ Ąžuolas 山田太郎 محمد",
      street: "שלום 5 😀\nहिन्दी",
    };
    const pdf = await post(labelBody({ consignee }));
    const text = pdfText(pdfOf(pdf.body.labels[0]));
    for (const part of ["Київ Ąžuolas", "ShanTianTaiLang mhmd", "slvm 5 :grinning: hindi"]) {
      expect(text).toContain(part);
    }
    const zpl = await post(labelBody({ consignee }), outlet);
    expect(zpl.body.labels[0]).toContain("^FDKiiv Ąžuolas^FS");
    expect(zpl.body.labels[0]).toContain("^FDShanTianTaiLang mhmd^FS");
    expect(zpl.body.labels[0]).toMatch(/^[\x20-\x7e\u00a0-\u017f€\n]+$/);
  });

  test("fields of the greatest length still make a label that scans", async () => {
    const consignee = { ...CONSIGNEE, name: "W".repeat(255), street: "via ".repeat(60) };
    const { status, body } = await post(
      labelBody({ consignee, reference: "R".repeat(50), content: "c".repeat(100) }),
    );
    expect(status).toBe(201);
    const pdf = pdfOf(body.labels[0]);
    expect(pdfInfo(pdf).pages).toBe(1);
    expect(readBarcode(renderPage(pdf))).toBe(body.trackingNumbers[0].number);
  });

  test("99 parcels make 99 labels", async () => {
    const parcels = Array.from({ length: 99 }, () => ({ weight: 0.1 }));
    const { status, body } = await post(labelBody({ parcels }), outlet);
    expect([status, body.labels.length, body.trackingNumbers.length]).toEqual([201, 99, 99]);
  });

  test("a sender given in the body replaces the channel's", async () => {
    const { body } = await post(labelBody({ sender: { businessName: "Drop Srl" } }));
    const text = pdfText(pdfOf(body.labels[0]));
    expect(text).toContain("Drop Srl");
    expect(text).not.toContain("Acme S.p.A.");
  });

  test("the national carrier's labels come from its gateway, with its own numbers", async () => {
    const body = national({ courier: "POSTE-ITA-CRONO", parcels: [{ weight: 1, boxCode: "S" }] });
    const answer = await post(body);
    expect(answer.status).toBe(201);
    const { trackingNumbers, extShipmentId, labels } = answer.body;
    expect(trackingNumbers[0].number).toMatch(/^NC\d{11}IT$/);
    expect(extShipmentId).toBe(`EXT-label-${answer.body.id}`);
    expect(readBarcode(renderPage(pdfOf(labels[0])))).toBe(trackingNumbers[0].number);
    expect(carrier.orders.at(-1)).toMatchObject({
      reference: body.reference,
      contract: "CRONO",
      labelFormat: "PDF",
      parcels: [{ weight: 1, length: 30, width: 20, height: 10 }],
    });
  });
});

describe("200", () => {
  test("the same channel, carrier and reference again: the same label, no other call", async () => {
    const body = national();
    const first = await post(body);
    const again = await post({ ...body, weight: 9 });
    expect(again.status).toBe(200);
    expect(again.body).toEqual({ ...first.body, isExisting: true });
    expect(callsFor(body.reference)).toBe(1);
  });

  test("a reference with blanks around it is the same one; its case and inner spaces count", async () => {
    const body = national();
    const first = await post(body);
    const again = await post({ ...body, reference: `\u00a0${body.reference}\r\n` });
    expect([again.status, again.body.id]).toEqual([200, first.body.id]);
    expect(callsFor(body.reference)).toBe(1);
    for (const reference of [`${body.reference}X y`, `${body.reference}x y`]) {
      expect((await post({ ...body, reference })).status).toBe(201);
    }
    const bad = await post({ ...body, reference: "\u200b" });
    expect(bad.body.violations).toMatchObject([{ path: "reference", code: "BAD_FORMAT" }]);
  });

  test("a label that 0.1.0 claimed under the reference as it was given is not made again", async () => {
    const body = labelBody({ reference: " older " });
    const first = await post(body);
    const channel = api.runtime.live.configuration().channelByCode.get("acme-it");
    const keys = companyKeys(companyPartition(channel?.companyId ?? 0));
    const [plain, asGiven] = [labelDigest, labelDigestAsGiven].map((digest) =>
      keys.labelClaim(channel?.id ?? 0, digest(body.courier, body.reference)),
    );
    await api.runtime.redis.rename(plain ?? "", asGiven ?? "");
    const again = await post(body);
    expect([again.status, again.body.id]).toEqual([200, first.body.id]);
  });

  test("another channel or another carrier has a label of its own", async () => {
    const body = labelBody();
    const ids = new Set<number>();
    for (const as of [token, outlet, beta]) ids.add((await post(body, as)).body.id);
    ids.add((await post({ ...body, courier: "POSTE_ITA" })).body.id);
    expect(ids.size).toBe(4);
  });

  test("twenty requests at once, over two processes: one call, one label, one 201", async () => {
    const other = await api.another();
    const body = national();
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, at) =>
        at % 2 === 0 ? post(body) : other("POST", "/v2/labels", { token, body }),
      ),
    );
    expect(callsFor(body.reference)).toBe(1);
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(1);
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(19);
    expect(new Set(answers.map((answer) => answer.body.id)).size).toBe(1);
  });

  test("a label whose answer was lost is fetched from the carrier, not made again", async () => {
    const body = national({ reference: "lost-1" });
    expect((await post(body)).status).toBe(502);
    const again = await post(body);
    expect([again.status, again.body.isExisting]).toEqual([200, true]);
    expect(callsFor("lost-1")).toBe(1);
  });
});

describe("a process that died between claim and answer", () => {
  async function orphaned(reference: string) {
    const channel = api.runtime.live.configuration().channelByCode.get("acme-it");
    const owner = { companyId: channel?.companyId ?? 0, channelId: channel?.id ?? 0 };
    const claim = await claimLabel(api.runtime.redis, owner, "POSTE_ITA", reference, 60_000);
    const { label } = companyKeys(companyPartition(owner.companyId));
    await api.runtime.redis.hSet(label(claim.id), "since", "0");
    return claim.id;
  }

  test("before the carrier was called: the carrier is asked, then called once", async () => {
    const body = national();
    const id = await orphaned(body.reference);
    const answer = await post(body);
    expect([answer.status, answer.body.id]).toEqual([201, id]);
    expect(callsFor(body.reference)).toBe(1);
  });

  test("after the carrier was called: its label is taken, and it is not called again", async () => {
    const body = national();
    const id = await orphaned(body.reference);
    await fetch(`${carrier.url}/labels`, {
      method: "POST",
      headers: { "idempotency-key": `label-${id}` },
      body: JSON.stringify({ ...body, parcels: [{}], sender: {}, labelFormat: "PDF" }),
    });
    const answer = await post(body);
    expect([answer.status, answer.body.id]).toEqual([200, id]);
    expect(callsFor(body.reference)).toBe(1);
  });
});

describe("400", () => {
  test("unknown, unconfigured, disabled or label-less carriers, as a problem document", async () => {
    for (const courier of ["NOBODY", "POSTE-ITA-XXL", "POSTE-ITA-OFF", "GLS_ITA", "POSTE-ITA-"]) {
      const answer = await post(labelBody({ courier }));
      expect(answer).toMatchObject({
        status: 400,
        body: {
          status: 400,
          code: "UNKNOWN_CARRIER",
          title: "Bad Request",
          type: "/v2/errors#UNKNOWN_CARRIER",
        },
      });
      expect(answer.headers.get("content-type")).toBe("application/problem+json");
      expect(answer.body.errorLabel).toBeUndefined();
    }
  });

  test("a body that is no JSON, as a problem document", async () => {
    const answer = await api.call("POST", "/v2/labels", { token, text: "{" });
    expect(answer).toMatchObject({ status: 400, body: { code: "MALFORMED_BODY" } });
    expect(answer.headers.get("content-type")).toBe("application/problem+json");
  });
});

describe("401", () => {
  test("no token", async () => {
    expect(await api.call("POST", "/v2/labels", { body: labelBody() })).toMatchObject({
      status: 401,
      body: { code: "INVALID_TOKEN" },
    });
  });
});

describe("422", () => {
  const { consignee } = labelBody();
  const faulty: [string, Readonly<Record<string, unknown>>, string][] = [
    ["an empty reference", { reference: "" }, "reference TOO_SHORT"],
    ["a reference of 51 characters", { reference: "r".repeat(51) }, "reference TOO_LONG"],
    ["a courier of 51 characters", { courier: "r".repeat(51) }, "courier TOO_LONG"],
    ["a source that is no platform", { source: "ebay" }, "source NOT_ALLOWED"],
    ["a source of 51 characters", { source: "r".repeat(51) }, "source TOO_LONG"],
    ["a service of 51 characters", { courierService: "r".repeat(51) }, "courierService TOO_LONG"],
    ["a content of 101 characters", { content: "c".repeat(101) }, "content TOO_LONG"],
    ["no consignee", { consignee: null }, "consignee REQUIRED"],
    ["no street", { consignee: { ...consignee, street: null } }, "consignee.street REQUIRED"],
    [
      "a long province",
      { consignee: { ...consignee, state: "Roma" } },
      "consignee.state BAD_FORMAT",
    ],
    [
      "a long country",
      { consignee: { ...consignee, country: "ITA" } },
      "consignee.country BAD_FORMAT",
    ],
    ["a weight of 0", { weight: 0 }, "weight OUT_OF_RANGE"],
    ["100 parcels", { parcels: Array(100).fill({ weight: 1 }) }, "parcels TOO_MANY"],
    ["an unknown box", { parcels: [{ boxCode: "XX" }] }, "parcels[0].boxCode NOT_ALLOWED"],
    ["a pickup date that is none", { pickupDate: "2026-02-30" }, "pickupDate BAD_FORMAT"],
    ["cash without amount", { monetary: { isCod: true } }, "monetary.amount REQUIRED"],
    ["a row without sku", { rows: [{ name: "n", qty: 1 }] }, "rows[0].sku REQUIRED"],
    ["a fractional qty", { rows: [{ sku: "s", name: "n", qty: 1.5 }] }, "rows[0].qty WRONG_TYPE"],
  ];
  test.each(faulty)("%s", async (_, members, violation) => {
    const answer = await post(labelBody(members));
    expect(answer.status).toBe(422);
    expect(answer.headers.get("content-type")).toBe("application/problem+json");
    const reported = answer.body.violations.map(
      ({ path, code }: { path: string; code: string }) => `${path} ${code}`,
    );
    expect(reported).toContain(violation);
    expect(answer.body.errorLabel).toBeUndefined();
  });

  test("the national carrier needs parcels or weight, GENERIC does not", async () => {
    const bare = { weight: null };
    expect(await post(national(bare))).toMatchObject({
      status: 422,
      body: { violations: [{ path: "weight", code: "REQUIRED" }] },
    });
    expect((await post(labelBody(bare))).status).toBe(201);
    const parcels = [{ weight: 1 }];
    expect((await post(national({ ...bare, parcels }))).status).toBe(201);
  });

  test("outside Italy the state may have any length", async () => {
    const abroad = { ...CONSIGNEE, country: "IE", state: "County Cork" };
    expect((await post(labelBody({ consignee: abroad }))).status).toBe(201);
  });

  test("the carrier's refusal, with an error label in the company's language (PDF)", async () => {
    const body = national({ reference: "refuse-1" });
    const answer = await post(body);
    expect(answer).toMatchObject({
      status: 422,
      body: { code: "CARRIER_REFUSED", detail: "CAP non servito: 深圳 / È chiuso" },
    });
    expect(answer.headers.get("content-type")).toBe("application/problem+json");
    const { format, label } = answer.body.errorLabel;
    expect(format).toBe("PDF");
    const pdf = pdfOf(label);
    const { pages, width } = pdfInfo(pdf);
    expect([pages, Math.round(width)]).toEqual([1, 283]);
    const text = pdfText(pdf);
    for (const part of ["NON SPEDIRE", "refuse-1", "POSTE_ITA", "CAP non servito: ShenZhen"]) {
      expect(text).toContain(part);
    }
    expect(text).toMatch(/Data e ora: 2\d{3}-\d\d-\d\d \d\d:\d\d:\d\d/);
    expect(() => readBarcode(renderPage(pdf))).toThrow();
  });

  test("the error label as ZPL, and none where the channel has not switched it on", async () => {
    const refused = await post(national({ reference: "refuse-2" }), outlet);
    expect(refused.body.errorLabel.format).toBe("ZPL");
    expect(refused.body.errorLabel.label).toContain("NON SPEDIRE");
    expect(refused.body.errorLabel.label).not.toContain("^BC");
    const without = await post(national({ reference: "refuse-3" }), beta);
    expect([without.status, without.body.errorLabel]).toEqual([422, undefined]);
  });

  test("after a refusal the reference is free: the carrier is asked again", async () => {
    const body = national({ reference: "refuse-4" });
    await post(body);
    expect((await post(body)).status).toBe(422);
    expect(callsFor("refuse-4")).toBe(2);
  });
});

describe("502", () => {
  test.each([
    ["fail-1", "CARRIER_UNREACHABLE"],
    ["babble-1", "CARRIER_UNREADABLE"],
    ["busy-1", "CARRIER_UNREADABLE"],
  ])("%s is %s, with an error label", async (reference, code) => {
    const answer = await post(national({ reference }));
    expect(answer).toMatchObject({ status: 502, body: { status: 502, code } });
    expect(answer.headers.get("content-type")).toBe("application/problem+json");
    const text = pdfText(pdfOf(answer.body.errorLabel.label));
    expect(text).toContain(reference);
    expect(text.replaceAll(/\s+/g, " ")).toContain(
      code === "CARRIER_UNREACHABLE"
        ? "Il corriere non è raggiungibile."
        : "La risposta del corriere non è leggibile.",
    );
  });

  test("a gateway that does not listen: nothing is claimed, the next one may ask again", async () => {
    const closed = await openTestApi(labelSetup(), "away", {
      NATIONAL_CARRIER_URL: "http://127.0.0.1:9",
    });
    const as = await closed.token("key_acme_main");
    const body = national();
    for (const _ of [1, 2]) {
      const answer = await closed.call("POST", "/v2/labels", { token: as, body });
      expect(answer).toMatchObject({ status: 502, body: { code: "CARRIER_UNREACHABLE" } });
    }
    const keys = await closed.runtime.redis.keys("*:lc:*");
    expect(keys).toEqual([]);
    await closed.end();
  });

  test("a carrier that does not answer in 10 s; the claim stays until its outcome is known", async () => {
    const body = national({ reference: "hang-1" });
    const started = performance.now();
    expect((await post(body)).status).toBe(502);
    expect(performance.now() - started).toBeLessThan(20_000);
    const claims = await api.runtime.redis.keys("*:lc:*");
    expect(claims.length).toBeGreaterThan(0);
  }, 300_000);
});
