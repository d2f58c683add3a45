/** Document 1, "Addresses": `POST /v2/addresses/check` and its billing. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { openBenchmarks } from "#analytics/benchmarks.ts";
import { matchByRegistry } from "#api/addresses/registry-provider.ts";
import { type SimulatedCarrier, startNationalCarrier } from "#demo/national-carrier.ts";
import { createPanelApp } from "#panel/server/app.ts";
import { labelSetup } from "#test/support/data/label-setup.ts";
import { openTestApi, type TestApi } from "#test/support/product/api.ts";

let api: TestApi;
let geocoded: TestApi;
let carrier: SimulatedCarrier;
let geocoder: ReturnType<typeof startGeocoder>;

/** A Nominatim: knows one house, fails and babbles on demand. */
function startGeocoder() {
  const queries: URLSearchParams[] = [];
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch(request) {
      const { pathname, searchParams } = new URL(request.url);
      queries.push(searchParams);
      const street = searchParams.get("street") ?? "";
      if (pathname !== "/search" || street.includes("fail")) {
        return new Response("down", { status: 500 });
      }
      if (street.includes("babble")) return new Response("<html>");
      if (street.includes("nowhere")) return Response.json([]);
      const address = {
        road: "Via Roma",
        ...(street.includes("1") && { house_number: "1" }),
        ...(street.includes("unnamed") && { road: undefined }),
        city: "Milano",
        "ISO3166-2-lvl6": "IT-MI",
        postcode: "20121",
        country_code: "it",
      };
      return Response.json([{ lat: "45.4642", lon: "9.19", address }]);
    },
  });
  return { url: `http://127.0.0.1:${server.port}`, queries, stop: () => server.stop(true) };
}

function addressSetup() {
  const setup = labelSetup();
  const [acme, beta] = setup.companies ?? [];
  const [main, outlet] = acme?.channels ?? [];
  Object.assign(acme ?? {}, { products: ["checkAddress"] });
  Object.assign(main ?? {}, { addressCheck: true });
  Object.assign(outlet ?? {}, { addressCheck: false });
  Object.assign(beta?.channels?.[0] ?? {}, { addressCheck: true });
  acme?.channels?.push({
    code: "acme-bare",
    addressCheck: true,
    couriers: [{ code: "GLS_ITA" }],
    apiKeys: [{ code: "main", key: "key_acme_bare" }],
  });
  return setup;
}

beforeAll(async () => {
  carrier = startNationalCarrier();
  geocoder = startGeocoder();
  const env = { NATIONAL_CARRIER_URL: carrier.url };
  api = await openTestApi(addressSetup(), "away", env);
  geocoded = await openTestApi(addressSetup(), "away", { GEOCODER_URL: geocoder.url });
});
afterAll(async () => {
  await api.end();
  await geocoded.end();
  await geocoder.stop();
  await carrier.stop();
});

const VIA_ROMA = { street: "Via Roma 1", city: "Milano", state: "MI", postcode: "20121" };

async function check(members: object = {}, on = api, key = "key_acme_main") {
  const body = { ...VIA_ROMA, ...members };
  return on.call("POST", "/v2/addresses/check", { token: await on.token(key), body });
}
const registry = (members: object = {}) => check({ provider: "national-carrier", ...members });

async function billed(on: TestApi, channel = "acme-it") {
  const benchmarks = await openBenchmarks(on.runtime.config);
  const response = await createPanelApp(on.runtime, benchmarks).handle(
    new Request(`http://localhost/panel/api/channels/${channel}/address-checks`, {
      headers: { authorization: `Bearer ${on.runtime.config.panelToken}` },
    }),
  );
  await benchmarks.close();
  return (await response.json()) as { total: number; months: { month: string }[] };
}

/** The gazetteer's verdict on an address of which everything agrees that it looks at. */
const ALL_BUT_THE_STREET = {
  status: "PARTIAL",
  level: "MUNICIPALITY",
  differing: [],
  unchecked: ["street"],
};

describe("200, offline gazetteer", () => {
  test("a street that was not looked at is never MATCHED, and the answer tells so", async () => {
    const { status, body } = await check();
    expect(status).toBe(200);
    expect(body).toEqual({
      provider: "geocoder",
      match: ALL_BUT_THE_STREET,
      address: {
        street: "Via Roma 1",
        city: "Milano",
        state: "MI",
        postcode: "20121",
        country: "IT",
      },
      coordinates: { latitude: expect.closeTo(45.46, 1), longitude: expect.closeTo(9.19, 1) },
      delivery: null,
      candidates: [],
    });
  });

  test.each([
    ["other case and accents", { city: "CANTU", state: "co", postcode: "22063" }, "Cantù"],
    ["an apostrophe", { city: "L Aquila", state: "AQ", postcode: "67100" }, "L'Aquila"],
    ["neither province nor postal code", { city: "Napoli", state: null, postcode: null }, "Napoli"],
    [
      "an abbreviated saint and the province's name",
      { city: "S. Giovanni Rotondo", state: "Foggia", postcode: "71013" },
      "San Giovanni Rotondo",
    ],
    [
      "initials, and the province in brackets",
      { city: "S.G.Rotondo", state: "(FG)", postcode: null },
      "San Giovanni Rotondo",
    ],
    [
      "a contraction with a full stop at its end",
      { city: "Sta. Margherita Ligure", state: "Liguria", postcode: "16038" },
      "Santa Margherita Ligure",
    ],
    [
      "a contracted word",
      { city: "M.te Argentario", state: "Toscana", postcode: "58019" },
      "Monte Argentario",
    ],
    [
      "small words left out",
      { city: "Reggio Emilia", state: "Reggio Emilia", postcode: null },
      "Reggio nell'Emilia",
    ],
    [
      "a province with two names, one of them given",
      { city: "Cesena", state: "prov. di Forlì", postcode: null },
      "Cesena",
    ],
    [
      "a province with its code behind",
      { city: "S. Giovanni Rotondo", state: "Foggia (FG)", postcode: null },
      "San Giovanni Rotondo",
    ],
    [
      "a province with an abbreviation and no blank",
      { city: "S. Giovanni Rotondo", state: "prov.FG", postcode: null },
      "San Giovanni Rotondo",
    ],
    [
      "a city with the code of its province behind, which tells two of the name apart",
      { city: "Samone (TN)", state: null, postcode: null },
      "Samone",
    ],
    ["both languages", { city: "Bolzano/Bozen", state: "Südtirol", postcode: "39100" }, "Bolzano"],
    [
      "a code that is a small word too",
      { city: "Casale M.to", state: "AL", postcode: null },
      "Casale Monferrato",
    ],
  ])("%s", async (_, members, city) => {
    const { body } = await check(members);
    expect(body.match).toEqual(ALL_BUT_THE_STREET);
    expect(body.address.city).toStartWith(city);
  });

  test("the right postal code is reported where the municipality has only one", async () => {
    const { body } = await check({ city: "Cantù", state: "CO", postcode: "20121" });
    expect(body.match).toEqual({ ...ALL_BUT_THE_STREET, differing: ["postcode"] });
    expect(body.address).toMatchObject({ city: "Cantù", postcode: "22063" });
  });

  test("a wrong or unknown province differs; an unknown town is found by its postal code", async () => {
    const wrong = { ...ALL_BUT_THE_STREET, differing: ["state"] };
    expect((await check({ state: "RM" })).body.match).toEqual(wrong);
    expect((await check({ state: "Nirgendwo" })).body.match).toEqual(wrong);
    const { body } = await check({ city: "Nessun Luogo", state: null, postcode: "39100" });
    expect(body.match).toEqual({ ...ALL_BUT_THE_STREET, level: "POSTCODE", differing: ["city"] });
  });

  test("an unknown town with a postal code of several municipalities is not guessed", async () => {
    const { body } = await check({ city: "Nessun Luogo", state: null, postcode: "24060" });
    const match = { ...ALL_BUT_THE_STREET, level: "POSTCODE", differing: ["city"] };
    expect(body).toMatchObject({ match, address: null, coordinates: null });
    expect(body.candidates.length).toBeGreaterThan(10);
  });

  test("a name that several places have, or may be short for, is never guessed", async () => {
    const castro = { city: "Castro", state: null, postcode: null };
    const { body } = await check(castro);
    expect(body).toMatchObject({ match: ALL_BUT_THE_STREET, address: null, coordinates: null });
    const provinces = body.candidates.map(({ state }: { state: string }) => state);
    expect(provinces.toSorted()).toEqual(["BG", "LE"]);
    const told = await check({ ...castro, state: "Lecce" });
    expect(told.body).toMatchObject({ address: { state: "LE" }, candidates: [] });
    const saints = await check({ city: "S. Pietro", state: null, postcode: null });
    expect(saints.body.match.status).toBe("NONE");
  });

  test("unmatched addresses, also those outside Italy, are 200 with NONE", async () => {
    const nowhere = { city: "Nessun Luogo", postcode: "99999", state: null };
    const abroad = { city: "Paris", state: null, postcode: "75001", country: "FR" };
    const codeWords = ["constructor", "{{constructor}}", "San __proto__", "toString valueOf"];
    const odd = codeWords.map((city) => ({ city, state: null, postcode: null }));
    for (const members of [nowhere, abroad, ...odd]) {
      const { status, body } = await check(members);
      expect(status).toBe(200);
      expect(body).toMatchObject({
        match: { status: "NONE", level: null },
        address: null,
        coordinates: null,
      });
    }
  });
});

describe("200, geocoder by HTTP", () => {
  test("house, street and nothing, with the structured query of Nominatim", async () => {
    const house = await check({}, geocoded);
    expect(house.body).toMatchObject({
      match: { status: "MATCHED", level: "HOUSE" },
      address: { street: "Via Roma 1", state: "MI", country: "IT" },
      coordinates: { latitude: 45.4642, longitude: 9.19 },
    });
    const asked = Object.fromEntries(geocoder.queries.at(-1) ?? []);
    expect(asked).toMatchObject({ format: "jsonv2", postalcode: "20121", countrycodes: "it" });
    const street = await check({ street: "Via Roma" }, geocoded);
    expect(street.body.match).toMatchObject({ status: "MATCHED", level: "STREET" });
    const other = await check({ postcode: "20122" }, geocoded);
    expect(other.body.match).toMatchObject({
      status: "PARTIAL",
      level: "HOUSE",
      differing: ["postcode"],
    });
    const none = await check({ street: "nowhere" }, geocoded);
    expect([none.status, none.body.match.status]).toEqual([200, "NONE"]);
  });

  test.each([
    ["a house number without a street", { street: "unnamed 1" }, "MUNICIPALITY", ["street"]],
    ["another city", { city: "Monza" }, "HOUSE", ["city"]],
    ["another province", { state: "MB" }, "HOUSE", ["state"]],
    ["another postal code", { postcode: " 20122 " }, "HOUSE", ["postcode"]],
  ])("%s is never MATCHED", async (_, members, level, differing) => {
    const { body } = await check(members, geocoded);
    expect(body.match).toEqual({ status: "PARTIAL", level, differing, unchecked: [] });
  });

  test("other spellings, and what was not given, do not differ", async () => {
    for (const members of [
      { city: "MILANO", state: "Lombardia", postcode: " " },
      { city: "Milano", state: "prov. di Milano", postcode: " 20121 " },
      { city: "Milano (MI)", state: "Milano (MI)" },
      { state: " ", postcode: "" },
    ]) {
      const { body } = await check(members, geocoded);
      expect(body.match).toMatchObject({ status: "MATCHED", differing: [] });
    }
  });
});

describe("200, street registry", () => {
  test("one candidate is the match, with delivery and without coordinates", async () => {
    const { status, body } = await registry();
    expect(status).toBe(200);
    expect(body).toMatchObject({
      provider: "national-carrier",
      match: { status: "MATCHED", level: "STREET" },
      coordinates: null,
      delivery: { deliverable: true, office: "UDR 1", zone: "12" },
      candidates: [{ street: "Via Roma 1", city: "Milano", state: "MI", postcode: "20121" }],
    });
  });

  test("several candidates are PARTIAL, none is NONE", async () => {
    const twice = await registry({ street: "twice" });
    expect(twice.body.match.status).toBe("PARTIAL");
    expect(twice.body.candidates).toHaveLength(2);
    const none = await registry({ street: "nowhere" });
    expect([none.status, none.body.match.status]).toEqual([200, "NONE"]);
  });

  test("one candidate in another place, or without a street, is PARTIAL", async () => {
    const other = await registry({ street: "elsewhere" });
    const differing = ["city", "state", "postcode"];
    expect(other.body.match).toMatchObject({ status: "PARTIAL", level: "STREET", differing });
    const { body } = await registry({ street: "unnamed" });
    const match = { status: "PARTIAL", level: "MUNICIPALITY", differing: ["street"] };
    expect(body).toMatchObject({ match, address: { street: null } });
  });
});

test("a street registry may answer 100 candidates; an answer of more is none", async () => {
  const registry = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      const { street } = (await request.json()) as { readonly street: string };
      const candidates = Array(Number(street)).fill({ street: "Via Roma", city: "Milano" });
      return Response.json({ candidates });
    },
  });
  const ask = (street: string) =>
    matchByRegistry(`http://127.0.0.1:${registry.port}`, {
      street,
      city: "Milano",
      state: null,
      postcode: null,
      country: "IT",
    });
  const most = await ask("100");
  expect(most).toMatchObject({ kind: "ok", value: { match: { status: "PARTIAL" } } });
  expect(most.kind === "ok" && most.value.candidates).toHaveLength(100);
  expect(await ask("101")).toMatchObject({ kind: "away", unreadable: true });
  await registry.stop(true);
});

describe("403", () => {
  test("product not owned; address check not enabled on the channel", async () => {
    expect(await check({}, api, "key_beta_main")).toMatchObject({
      status: 403,
      body: { code: "PRODUCT_NOT_OWNED" },
    });
    expect(await check({}, api, "key_acme_outlet")).toMatchObject({
      status: 403,
      body: { code: "ADDRESS_CHECK_NOT_ENABLED" },
    });
  });
});

describe("422", () => {
  test.each([
    ["no street", { street: null }, "street REQUIRED"],
    ["an empty city", { city: "" }, "city TOO_SHORT"],
    ["a long country", { country: "ITA" }, "country BAD_FORMAT"],
    ["another provider", { provider: "other" }, "provider NOT_ALLOWED"],
  ])("%s", async (_, members, violation) => {
    const { status, body } = await check(members);
    expect(status).toBe(422);
    const [first] = body.violations;
    expect(`${first.path} ${first.code}`).toBe(violation);
  });

  test("the registry serves neither addresses outside Italy nor channels without its carrier", async () => {
    expect(await registry({ country: "FR" })).toMatchObject({
      status: 422,
      body: { code: "PROVIDER_CANNOT_SERVE", violations: [{ path: "country" }] },
    });
    const bare = await check({ provider: "national-carrier" }, api, "key_acme_bare");
    expect(bare).toMatchObject({
      status: 422,
      body: { code: "PROVIDER_CANNOT_SERVE", violations: [{ path: "provider" }] },
    });
  });
});

describe("502", () => {
  test("a provider that is unavailable or babbles", async () => {
    const answers = [
      await registry({ street: "fail" }),
      await registry({ street: "babble" }),
      await check({ street: "fail" }, geocoded),
      await check({ street: "babble" }, geocoded),
    ];
    expect(answers.map(({ status, body }) => `${status} ${body.code}`)).toEqual([
      "502 PROVIDER_UNREACHABLE",
      "502 PROVIDER_UNREADABLE",
      "502 PROVIDER_UNREACHABLE",
      "502 PROVIDER_UNREADABLE",
    ]);
  });
});

describe("billing", () => {
  test("every accepted request once, whatever its outcome; the others not at all", async () => {
    const before = (await billed(api)).total;
    const accepted = [{}, { city: "Nessun Luogo", postcode: "99999", state: null }];
    await Promise.all(Array.from({ length: 10 }, (_, at) => check(accepted[at % 2])));
    await registry({ street: "nowhere" });
    await registry({ street: "fail" });
    await registry({ country: "FR" });
    await check({ street: "" });
    await check({}, api, "key_beta_main");
    const { total, months } = await billed(api);
    expect(total - before).toBe(11);
    expect(months[0]?.month).toMatch(/^\d{4}-\d\d$/);
    expect((await billed(api, "beta-it")).total).toBe(0);
  });
});
