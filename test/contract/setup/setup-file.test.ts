/** setup-file.md, The setup file: validation, idempotent application, secrets at rest. */
import { describe, expect, test } from "bun:test";
import { pino } from "pino";
import { allEntities } from "#core/configuration/store/entities.ts";
import { parseCidr } from "#core/platform/network/cidr.ts";
import { NAMES_AT_ONCE, vetHosts } from "#core/platform/network/vetted-address.ts";
import { companyKeys, companyPartition } from "#core/platform/redis/keys.ts";
import { hashToken } from "#core/platform/secrets/secrets.ts";
import { applySetupFile, HOSTS_NAMED } from "#core/runtime/runtime.ts";
import { checkSetup, type SetupFile, settingsWithoutEffect } from "#core/setup/rules/setup.ts";
import { applySetup, SetupFaults } from "#core/setup/store/apply-setup.ts";
import type { CatalogueEntry } from "#core/statuses/rules/map-status.ts";
import { statusDetailText } from "#core/statuses/rules/status-text.ts";
import { testSetup, WEBHOOK_SECRET } from "#test/support/data/setup.ts";
import { forAll } from "#test/support/for-all.ts";
import { openTestRuntime } from "#test/support/product/runtime.ts";

const runtime = forAll(() => openTestRuntime(fullSetup()));

/** The example of the document with every section filled. */
function fullSetup(): SetupFile {
  const setup = testSetup();
  const [channel] = setup.companies?.[0]?.channels ?? [];
  setup.statusDetails = [
    { id: 4, status: "EXCEPTION", heldInDepot: true, description: { it: "In giacenza" } },
    { id: 90, status: "DELAY", description: { it: "Sciopero", en: "Strike" } },
  ];
  Object.assign(channel ?? {}, {
    trackingPage: true,
    addressCheck: true,
    sender: { code: "HQ", businessName: "Acme S.p.A.", postcode: "20121", country: "IT" },
    emails: {
      managed: true,
      from: "noreply@acme.test",
      templates: [{ event: "review-request", language: "it", subject: "s", body: "{{custom1}}" }],
      statusNotifications: ["OUT_FOR_DELIVERY", "DELIVERED"],
    },
    webhooks: [
      { code: "given", url: "https://m.example/a", alertEmail: "o@m.test", secret: WEBHOOK_SECRET },
      { code: "made", url: "https://m.example/b", alertEmail: "o@m.test", include: ["consignee"] },
    ],
    webhookV1: { url: "http://m.example/v1", acknowledgement: '{"result":"OK"}' },
    orders: [{ source: "shopify", reference: "1001", createdAt: "2026-11-01T10:00:00+01:00" }],
    sandbox: [{ id: 1, stringValue: "a", dateTimeValue: null }],
  });
  channel?.apiKeys?.push({ code: "generated" });
  return setup;
}

const apply = (file: unknown) =>
  applySetup(runtime.redis, runtime.secrets.vault, file, runtime.live.now());

async function faultsOf(file: unknown): Promise<string[]> {
  try {
    await apply(file);
    return [];
  } catch (error) {
    if (!(error instanceof SetupFaults)) throw error;
    return error.faults.map(({ path, code }) => `${path} ${code}`);
  }
}

describe("application", () => {
  test("twice changes nothing the second time and generates no secret again", async () => {
    const version = runtime.live.configuration().version;
    expect(await apply(fullSetup())).toEqual({
      written: 0,
      generated: [],
      passedOver: [],
      unresolvedHosts: [],
    });
    expect((await runtime.live.refresh()).version).toBe(version);
  });

  test("a changed file changes what it names and leaves alone what it does not", async () => {
    const couriers = [
      { code: "GLS_ITA", tokens: ["tok_gls_1"], catalogue: [{ ...mapped("XYZ"), terminal: true }] },
    ];
    expect((await apply({ couriers })).written).toBe(1);
    const courier = (await runtime.live.refresh()).couriers.get("GLS_ITA");
    expect(courier?.name).toBe("GLS Italy");
    expect(courier?.catalogue.get("XYZ")?.status).toBe("DELAY");
    expect(courier?.catalogue.get("DLV")?.status).toBe("DELIVERED");
    const again = await apply({ couriers: [{ ...couriers[0], catalogue: [unmapped("XYZ")] }] });
    expect(again.written).toBe(1);
    const kept = (await runtime.live.refresh()).couriers.get("GLS_ITA")?.catalogue.get("XYZ");
    expect([kept?.status, kept?.terminal]).toEqual(["DELAY", false]);
  });

  test("an endpoint's rate may be named, within bounds, and is reported not to be in effect", async () => {
    const webhook = { code: "paced", url: "https://m.example/", alertEmail: "ops@acme.test" };
    const named = (members: object): SetupFile => ({
      companies: [
        { code: "acme", channels: [{ code: "acme-it", webhooks: [{ ...webhook, ...members }] }] },
      ],
    });
    for (const maxConcurrency of [1, 1_024]) {
      const file = named({ maxConcurrency, maxPerSecond: null });
      expect(await faultsOf(file)).toEqual([]);
      expect(settingsWithoutEffect(file)).toEqual(["maxConcurrency"]);
    }
    for (const members of [{ maxConcurrency: 0 }, { maxConcurrency: 1_025 }, { maxPerSecond: 0 }]) {
      expect(await faultsOf(named(members))).toHaveLength(1);
    }
  });

  test("files applied by several processes at once do not disturb each other", async () => {
    const file = { companies: [{ code: "racing", channels: [{ code: "racing-it" }] }] };
    await Promise.all(Array.from({ length: 5 }, () => apply(file)));
    const companies = await allEntities(runtime.redis, "company");
    expect(companies.filter(({ code }) => code === "racing").length).toBe(1);
  });

  test("members that nothing depends on may be absent and have their default", async () => {
    const catalogue = [{ code: "SPARSE", status: "DELAY", statusDetail: 91 }, { code: "BARE" }];
    const couriers = [{ code: "SPARSE", tokens: ["tok_sparse_1"], catalogue }];
    const file = { couriers, statusDetails: [{ id: 91 }] };
    expect(await faultsOf(file)).toEqual([]);
    expect((await apply(file)).written).toBe(0);
    const { couriers: stored, statusDetails } = await runtime.live.refresh();
    const sparse = stored.get("SPARSE")?.catalogue;
    const defaults = { description: "", terminal: false };
    expect(sparse?.get("SPARSE")).toEqual({ ...defaults, ...catalogue[0] } as CatalogueEntry);
    expect(sparse?.get("BARE")).toEqual({ ...defaults, code: "BARE" });
    expect(statusDetailText(statusDetails.get(91), "it")).toBeNull();
  });

  test("an absent member of a known code stays as it was", async () => {
    const apart = (entry: object) => ({
      couriers: [{ code: "KEPT", tokens: ["tok_kept_1"], catalogue: [{ code: "K", ...entry }] }],
    });
    await apply(apart({ description: "Consegnata", terminal: true, status: "DELIVERED" }));
    await apply(apart({ status: "RETURNED" }));
    const kept = (await runtime.live.refresh()).couriers.get("KEPT")?.catalogue.get("K");
    expect(kept).toEqual({
      code: "K",
      description: "Consegnata",
      terminal: true,
      status: "RETURNED",
    });
  });

  test("orders and sandbox rows are written once, and again when the file changes them", async () => {
    const channel = runtime.live.configuration().channelByCode.get("acme-it");
    const key = companyKeys(companyPartition(channel?.companyId ?? 0)).sandbox(channel?.id ?? 0);
    const row = async () => JSON.parse((await runtime.redis.hGet(key, "1")) ?? "null");
    expect((await row()).row.stringValue).toBe("a");
    const sandbox = [{ id: 1, stringValue: "b" }];
    const file = { companies: [{ code: "acme", channels: [{ code: "acme-it", sandbox }] }] };
    expect((await apply(file)).written).toBe(1);
    expect((await row()).row.stringValue).toBe("b");
  });
});

const unmapped = (code: string) => ({ code, description: code, terminal: false });
const mapped = (code: string) => ({ ...unmapped(code), status: "DELAY" });

describe("secrets", () => {
  test("keys and tokens are stored as hashes, signing and webhook secrets encrypted", async () => {
    const keys = await allEntities(runtime.redis, "apiKey");
    expect(keys.map(({ hash }) => hash)).toContain(hashToken("key_acme_main"));
    const everything = JSON.stringify([
      keys,
      await allEntities(runtime.redis, "courier"),
      await allEntities(runtime.redis, "endpoint"),
    ]);
    for (const secret of ["key_acme_main", "tok_gls_1", "sig_gls_1", WEBHOOK_SECRET]) {
      expect(everything).not.toContain(secret);
    }
    const endpoints = await allEntities(runtime.redis, "endpoint");
    const given = endpoints.find(({ code }) => code === "given");
    expect(runtime.secrets.vault.open(given?.secret ?? "")).toBe(WEBHOOK_SECRET);
  });

  test("a secret left out is generated in its documented form, once", async () => {
    const channels = [
      {
        code: "gen-it",
        apiKeys: [{ code: "k" }],
        webhooks: [{ code: "w", url: "https://m.example/", alertEmail: "o@m.test" }],
      },
    ];
    const file = { companies: [{ code: "gen", channels }] };
    const { generated } = await apply(file);
    expect(generated.map(({ secret }) => secret)).toEqual([
      expect.stringMatching(/^key_[0-9a-f]{64}$/),
      expect.stringMatching(/^whsec_[0-9a-f]{64}$/),
    ]);
    expect((await apply(file)).generated).toEqual([]);
  });

  test("a courier that must sign and has no secret gets one, once; others get none", async () => {
    const strict = { code: "MUST_SIGN", tokens: ["tok_must_sign"], signatureRequired: true };
    const free = { code: "MAY_SIGN", tokens: ["tok_may_sign"] };
    const { generated } = await apply({ couriers: [strict, free] });
    const secret = expect.stringMatching(/^sig_[0-9a-f]{64}$/);
    expect(generated).toEqual([{ owner: "courier MUST_SIGN, signing secret", secret }]);
    const again = await apply({ couriers: [strict, free] });
    expect(again).toMatchObject({ written: 0, generated: [] });
    const secrets = async () => {
      const couriers = await allEntities(runtime.redis, "courier");
      const stored = couriers.find(({ code }) => code === "MUST_SIGN")?.signingSecrets ?? [];
      return stored.map((sealed) => runtime.secrets.vault.open(sealed));
    };
    expect(await secrets()).toEqual(generated.map(({ secret: given }) => given));
    // The file's own secret replaces it.
    const named = { ...strict, signingSecrets: ["sig_named"] };
    expect((await apply({ couriers: [named] })).generated).toEqual([]);
    expect(await secrets()).toEqual(["sig_named"]);
  });

  test("another webhook secret in the file is a rotation: the old one signs 24 hours more", async () => {
    const secret = `whsec_${"f".repeat(64)}`;
    const webhooks = [
      { code: "given", url: "https://m.example/a", alertEmail: "o@m.test", secret },
    ];
    await apply({ companies: [{ code: "acme", channels: [{ code: "acme-it", webhooks }] }] });
    const endpoints = [...(await runtime.live.refresh()).endpoints.values()];
    const rotated = endpoints.find(({ code }) => code === "given");
    const { vault } = runtime.secrets;
    expect(vault.open(rotated?.secret ?? "")).toBe(secret);
    expect(vault.open(rotated?.previousSecret ?? "")).toBe(WEBHOOK_SECRET);
    const overlapMs = (rotated?.previousUntilMs ?? 0) - runtime.live.now();
    expect(Math.round(overlapMs / 3_600_000)).toBe(24);
  });

  test("a third secret within those 24 hours is a fault; the second-to-last one, or revokePrevious, is none", async () => {
    const [first, second, third] = ["1", "2", "3"].map((digit) => `whsec_${digit.repeat(64)}`);
    const url = "https://m.example/rotating";
    const file = (members: object) => {
      const webhooks = [{ code: "main", url, alertEmail: "o@m.test", ...members }];
      return { companies: [{ code: "rotating", channels: [{ code: "rotating-it", webhooks }] }] };
    };
    const inForce = async () => {
      const endpoints = [...(await runtime.live.refresh()).endpoints.values()];
      const { secret = "", previousSecret = "" } = endpoints.find((one) => one.url === url) ?? {};
      return [secret, previousSecret ?? ""].map(runtime.secrets.vault.open);
    };
    await apply(file({ secret: first }));
    await apply(file({ secret: second }));
    const before = await inForce();
    expect(await faultsOf(file({ secret: third }))).toEqual([
      "companies[0].channels[0].webhooks[0].secret NOT_ALLOWED",
    ]);
    expect(await inForce()).toEqual(before);
    expect((await apply(file({ secret: second }))).written).toBe(0);
    await apply(file({ secret: first }));
    expect(await inForce()).toEqual([first ?? "", second ?? ""]);
    await apply(file({ secret: third, revokePrevious: true }));
    expect(await inForce()).toEqual([third ?? "", first ?? ""]);
    expect((await apply(file({ secret: third, revokePrevious: true }))).written).toBe(0);
  });
});

describe("a faulty file changes nothing and every fault is listed with its path", () => {
  test("shape, ranges, names and formats", () => {
    const faults = checkSetup({
      surprise: 1,
      couriers: [
        { code: "A", tokens: [], catalogue: [{ description: "X", terminal: "no" }] },
        { code: "B" },
      ],
      companies: [
        { code: "c", channels: [{ code: "d", language: "xx", webhooks: [{ code: "w" }] }] },
      ],
    }).map(({ path, code }) => `${path} ${code}`);
    expect(faults).toEqual(
      expect.arrayContaining([
        "surprise UNKNOWN_FIELD",
        "couriers[0].tokens TOO_FEW",
        "couriers[0].catalogue[0].code REQUIRED",
        "couriers[0].catalogue[0].terminal WRONG_TYPE",
        "couriers[1].tokens REQUIRED",
        "companies[0].channels[0].language NOT_ALLOWED",
        "companies[0].channels[0].webhooks[0].url REQUIRED",
        "companies[0].channels[0].webhooks[0].alertEmail REQUIRED",
      ]),
    );
  });

  test("entities named twice, tokens and keys shared, unsafe webhook urls", () => {
    const webhook = { code: "w", url: "http://m.example/", alertEmail: "o@m.test" };
    const channel = {
      code: "ch",
      apiKeys: [{ code: "k", key: "key_shared" }],
      webhooks: [webhook],
    };
    const faults = checkSetup({
      platforms: ["a", "a"],
      couriers: [
        { code: "A", tokens: ["t"], catalogue: [unmapped("X"), unmapped("X")] },
        { code: "A", tokens: ["t"] },
      ],
      companies: [
        { code: "c", channels: [channel] },
        { code: "e", channels: [{ ...channel, webhooks: [] }] },
      ],
    }).map(({ path }) => path);
    expect(faults.sort()).toEqual(
      [
        "platforms[1]",
        "couriers[1]",
        "couriers[1].tokens[0]",
        "couriers[0].catalogue[1]",
        "companies[0].channels[0].webhooks[0].url",
        "companies[1].channels[0].code",
        "companies[1].channels[0].apiKeys[0].key",
      ].sort(),
    );
  });

  test("an unknown status name of a webhook is a configuration error (document 3, Trigger semantics)", () => {
    const webhooks = [
      { code: "w", url: "https://m.example/", alertEmail: "o@m.test", statuses: ["GONE"] },
    ];
    const [fault] = checkSetup({ companies: [{ code: "c", channels: [{ code: "d", webhooks }] }] });
    expect(fault?.path).toBe("companies[0].channels[0].webhooks[0].statuses[0]");
  });

  test("six endpoints are one too many (document 3, Limits)", () => {
    const webhooks = (count: number) =>
      Array.from({ length: count }, (_, n) => ({
        code: `w${n}`,
        url: "https://m.example/",
        alertEmail: "o@m.test",
      }));
    const file = (count: number) => ({
      companies: [{ code: "c", channels: [{ code: "d", webhooks: webhooks(count) }] }],
    });
    expect(checkSetup(file(5))).toEqual([]);
    expect(checkSetup(file(6)).map(({ code }) => code)).toEqual(["TOO_MANY"]);
  });

  test("endpoints that the file does not name count too", async () => {
    const webhooks = ["c", "d", "e", "f"].map((code) => ({
      code,
      url: "https://m.example/",
      alertEmail: "o@m.test",
    }));
    const file = { companies: [{ code: "acme", channels: [{ code: "acme-it", webhooks }] }] };
    expect(await faultsOf(file)).toEqual(["companies[0].channels[0].webhooks TOO_MANY"]);
  });

  test("faults of shape, of names and of what is not there are listed together", async () => {
    const webhook = { code: "w", alertEmail: "o@m.test" };
    const file = {
      couriers: [
        { code: "SHAPE", tokens: [] },
        { code: "NETS", tokens: ["tok_nets"], allowedIps: ["10.0.0.0/8", "10.0.0.0/99", "foo"] },
        { code: "NETS", tokens: ["tok_nets_2"] },
      ],
      companies: [
        {
          code: "faulty",
          channels: [
            {
              code: "faulty-it",
              couriers: [
                { code: "NETS", transcodings: ["Nets"] },
                { code: "NOPE", transcodings: ["nets"] },
              ],
              webhooks: [
                { ...webhook, url: "https://10.0.0.1/" },
                { ...webhook, code: "x", url: "https://0x7f.1/" },
                { ...webhook, code: "y", url: "https://localhost/" },
                { ...webhook, code: "z", url: "https://merchant.example/", alertEmail: "nobody" },
              ],
            },
          ],
        },
      ],
    };
    const application = applySetup(runtime.redis, runtime.secrets.vault, file, 0);
    const { faults } = await application.then(
      () => ({ faults: [] }),
      (error: SetupFaults) => error,
    );
    const path = "companies[0].channels[0]";
    expect(faults.map((fault) => `${fault.path} ${fault.code}`).sort()).toEqual(
      [
        "couriers[0].tokens TOO_FEW",
        "couriers[1].allowedIps[1] BAD_FORMAT",
        "couriers[1].allowedIps[2] BAD_FORMAT",
        "couriers[2] NOT_ALLOWED",
        `${path}.couriers[1].code NOT_ALLOWED`,
        `${path}.couriers[1].transcodings[0] NOT_ALLOWED`,
        `${path}.webhooks[0].url NOT_ALLOWED`,
        `${path}.webhooks[1].url NOT_ALLOWED`,
        `${path}.webhooks[2].url NOT_ALLOWED`,
        `${path}.webhooks[3].alertEmail BAD_FORMAT`,
      ].sort(),
    );
  });

  test("every fault of a channel is listed, whatever else is wrong with it or with what it names", async () => {
    const file = {
      couriers: [
        {
          code: "HALF",
          tokens: ["tok_half"],
          environment: 5,
          catalogue: [{ code: "A" }, { code: "A" }],
        },
      ],
      statusDetails: [{ id: 92, status: "LATE" }],
      companies: [
        {
          code: "halves",
          language: "xx",
          channels: [
            {
              code: "halves-it",
              rateLimit: { bucketSize: 0 },
              couriers: [{ code: "HALF" }, { code: "NOPE", labelFormat: "GIF" }],
              apiKeys: [
                { code: "a", key: "key_halves_1", active: "yes" },
                { code: "b", key: "key_halves_1" },
              ],
              webhooks: [
                { url: "http://m.example/a", alertEmail: "nobody", trigger: "sometimes" },
                { code: "b", url: "https://10.0.0.1/", alertEmail: "o@m.test", statuses: ["NO"] },
                { code: "b", url: "https://u:p@m.example/", alertEmail: 7 },
              ],
              webhookV1: { url: "ftp://m.example/", acknowledgement: 5 },
              orders: [{ source: "nowhere", reference: 5 }],
            },
          ],
        },
      ],
    };
    const path = "companies[0].channels[0]";
    expect((await faultsOf(file)).sort()).toEqual(
      [
        "couriers[0].environment WRONG_TYPE",
        "couriers[0].catalogue[1] NOT_ALLOWED",
        "statusDetails[0].status NOT_ALLOWED",
        "companies[0].language NOT_ALLOWED",
        `${path}.rateLimit.bucketSize OUT_OF_RANGE`,
        `${path}.couriers[1].code NOT_ALLOWED`,
        `${path}.couriers[1].labelFormat NOT_ALLOWED`,
        `${path}.apiKeys[0].active WRONG_TYPE`,
        `${path}.apiKeys[1].key NOT_ALLOWED`,
        `${path}.webhooks[0].code REQUIRED`,
        `${path}.webhooks[0].url BAD_FORMAT`,
        `${path}.webhooks[0].alertEmail BAD_FORMAT`,
        `${path}.webhooks[0].trigger NOT_ALLOWED`,
        `${path}.webhooks[1].url NOT_ALLOWED`,
        `${path}.webhooks[1].statuses[0] NOT_ALLOWED`,
        `${path}.webhooks[2] NOT_ALLOWED`,
        `${path}.webhooks[2].url BAD_FORMAT`,
        `${path}.webhooks[2].alertEmail WRONG_TYPE`,
        `${path}.webhookV1.acknowledgement WRONG_TYPE`,
        `${path}.webhookV1.url BAD_FORMAT`,
        `${path}.orders[0].reference WRONG_TYPE`,
        `${path}.orders[0].source NOT_ALLOWED`,
      ].sort(),
    );
  });

  test("a file with more faults than are listed is refused by those", async () => {
    const couriers = Array.from({ length: 300 }, () => ({ code: 5, tokens: 5 }));
    expect(await faultsOf({ couriers })).toHaveLength(200);
  });

  test("a rule is judged whole: without a faulty condition it would mean something else", async () => {
    const rules = [{ reasonCode: 5, status: "DELAY" }, { status: "DELAY" }];
    const catalogue = [{ code: "A", status: "DELAY", rules }];
    const couriers = [{ code: "RULES", tokens: ["tok_rules"], catalogue }];
    expect(await faultsOf({ couriers })).toEqual([
      "couriers[0].catalogue[0].rules[0].reasonCode WRONG_TYPE",
      "couriers[0].catalogue[0].rules[1] NOT_ALLOWED",
    ]);
  });

  test("what it names must exist, and belong to it", async () => {
    const before = runtime.live.configuration().version;
    const faults = await faultsOf({
      couriers: [
        {
          code: "NEW",
          tokens: ["tok_gls_1"],
          catalogue: [{ ...mapped("X"), statusDetail: 77 }],
        },
      ],
      companies: [
        {
          code: "beta",
          channels: [
            { code: "acme-it" },
            {
              code: "beta-it",
              couriers: [{ code: "NOBODY" }],
              apiKeys: [{ code: "main", key: "key_acme_main" }],
            },
          ],
        },
      ],
    });
    expect(faults.sort()).toEqual(
      [
        "couriers[0].tokens[0] NOT_ALLOWED",
        "couriers[0].catalogue[0].statusDetail NOT_ALLOWED",
        "companies[0].channels[0].code NOT_ALLOWED",
        "companies[0].channels[1].couriers[0].code NOT_ALLOWED",
        "companies[0].channels[1].apiKeys[0].key NOT_ALLOWED",
      ].sort(),
    );
    const after = await runtime.live.refresh();
    expect(after.couriers.has("NEW")).toBe(false);
    expect(after.version).toBeGreaterThanOrEqual(before);
  });
});

describe("document 3, Endpoint configuration: hosts of webhooks", () => {
  const file = (code: string, members: object) => ({
    companies: [{ code, channels: [{ code: `${code}-it`, ...members }] }],
  });
  const webhook = (url: string) => ({ code: "main", url, alertEmail: "o@m.test" });
  /** A name server that knows these names. */
  function world(
    names: Readonly<Record<string, readonly string[]>>,
    cidrs: readonly string[] = [],
  ) {
    const asked: string[] = [];
    const resolve = async (host: string) => {
      asked.push(host);
      const addresses = names[host];
      if (addresses) return addresses;
      throw Object.assign(new Error("unknown"), { code: "ESERVFAIL" });
    };
    const webhookAllowedCidrs = cidrs.map(parseCidr).filter((one) => one !== null);
    return { asked, world: { resolve, webhookAllowedCidrs } };
  }
  const applyIn = async (given: ReturnType<typeof world>, setup: object) => {
    const { redis, secrets, live } = runtime;
    return applySetup(redis, secrets.vault, setup, live.now(), given.world).then(
      ({ written, unresolvedHosts }) => ({ written, unresolvedHosts, faults: [] as string[] }),
      (error: SetupFaults) => ({ faults: error.faults.map(({ path, code }) => `${path} ${code}`) }),
    );
  };

  test("a name that resolves to any private address is refused, of v1 too", async () => {
    const names = world({ "in.test": ["10.0.0.5"], "mixed.test": ["1.1.1.1", "fd00::1"] });
    const setup = file("hosts", {
      webhooks: [webhook("https://in.test/"), { ...webhook("https://MIXED.test./"), code: "b" }],
      webhookV1: { url: "http://in.test/v1", acknowledgement: "OK" },
    });
    const path = "companies[0].channels[0]";
    expect((await applyIn(names, setup)).faults).toEqual([
      `${path}.webhooks[0].url NOT_ALLOWED`,
      `${path}.webhooks[1].url NOT_ALLOWED`,
      `${path}.webhookV1.url NOT_ALLOWED`,
    ]);
    expect(names.asked.sort()).toEqual(["in.test", "mixed.test"]);
    expect((await runtime.live.refresh()).channelByCode.has("hosts-it")).toBe(false);
  });

  test("a private network that is allowed may be named", async () => {
    const names = world({ "in.test": ["10.0.0.5"] }, ["10.0.0.0/8"]);
    const setup = file("allowed", { webhooks: [webhook("https://in.test/")] });
    expect((await applyIn(names, setup)).faults).toEqual([]);
  });

  test("a name server that is down stops nothing, and the host is reported", async () => {
    const setup = file("unresolved", { webhooks: [webhook("https://later.test/")] });
    expect(await applyIn(world({}), setup)).toMatchObject({
      faults: [],
      unresolvedHosts: ["later.test"],
    });
  });

  test("one that never answers delays the start by 5 s and does not stop it", async () => {
    const { redis, secrets, live } = runtime;
    const setup = file("silent", { webhooks: [webhook("https://silent.test/")] });
    const startMs = performance.now();
    const never = { resolve: () => new Promise<never>(() => {}) };
    const applied = await applySetup(redis, secrets.vault, setup, live.now(), never);
    expect(applied.unresolvedHosts).toEqual(["silent.test"]);
    expect(performance.now() - startMs).toBeGreaterThan(4_900);
  });

  test(`${NAMES_AT_ONCE} names are resolved at once, each once`, async () => {
    const names = Array.from({ length: NAMES_AT_ONCE + 1 }, (_, n) => `n${n}.test`);
    const asked: string[] = [];
    const held = Promise.withResolvers<readonly string[]>();
    const vetting = vetHosts([...names, ...names], [], (host) => {
      asked.push(host);
      return held.promise;
    });
    expect(asked).toHaveLength(NAMES_AT_ONCE);
    held.resolve(["1.1.1.1"]);
    expect(await vetting).toEqual({ refused: new Set(), unresolved: new Set() });
    expect(asked).toEqual(names);
  });

  test(`the log names ${HOSTS_NAMED} hosts that could not be resolved, and tells how many there are`, async () => {
    const lines: string[] = [];
    const log = pino({ level: "warn" }, { write: (line: string) => void lines.push(line) });
    const hosts = Array.from({ length: HOSTS_NAMED + 1 }, (_, n) => `host-${n}.invalid`);
    const channels = hosts.map((host, n) => ({
      code: `named-${n}`,
      webhooks: [webhook(`https://${host}/`)],
    }));
    await applySetupFile({ ...runtime, log }, { companies: [{ code: "named", channels }] });
    const [line] = lines.map((text) => JSON.parse(text));
    expect(line).toMatchObject({ hosts: hosts.slice(0, HOSTS_NAMED), total: hosts.length });
  });

  test("an entry that was applied before is not resolved again: its owner's name server stops no start", async () => {
    const setup = file("moved", {
      webhooks: [webhook("https://moved.test/")],
      webhookV1: { url: "http://moved.test/v1", acknowledgement: "OK" },
    });
    expect((await applyIn(world({ "moved.test": ["1.1.1.1"] }), setup)).faults).toEqual([]);
    const moved = world({ "moved.test": ["10.0.0.5"] });
    expect(await applyIn(moved, setup)).toMatchObject({ written: 0 });
    expect(moved.asked).toEqual([]);
    const changed = file("moved", { webhooks: [webhook("https://moved.test/other")] });
    expect((await applyIn(moved, changed)).faults).toHaveLength(1);
  });
});
