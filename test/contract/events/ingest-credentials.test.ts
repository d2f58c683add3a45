/** Document 2, "Authentication" 4 and 5: proxies, OAuth 2.0 client credentials, mutual TLS. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { X509Certificate } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { allEntities } from "#core/configuration/store/entities.ts";
import { advanceClock } from "#core/configuration/store/live.ts";
import { applySetupFile, type Running } from "#core/runtime/runtime.ts";
import { checkSetup } from "#core/setup/rules/setup.ts";
import { UNKNOWN_CALLER_RATE } from "#ingest/authenticate.ts";
import { startIngest } from "#ingest/main.ts";
import { accessTokens, TOKEN_LIFE_SECONDS } from "#ingest/oauth/access-token.ts";
import { event, push } from "#test/support/clients/courier.ts";
import { untilRefused } from "#test/support/clients/until-refused.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { openTestRuntime, type TestRuntime } from "#test/support/product/runtime.ts";
import {
  createTestAuthority,
  type Pem,
  type TestAuthority,
} from "#test/support/servers/certificates.ts";

const roomy = { perSecond: 10_000, burst: 10_000 };
const oauth = { clientId: "gls-client", clientSecret: "secret of gls" };

let authority: TestAuthority;
let client: Pem;
let stranger: Pem;
let fingerprint: string;
let folder: string;
let runtime: TestRuntime;
let proxied: Running;
let direct: Running;
let secure: Running;

beforeAll(async () => {
  authority = await createTestAuthority();
  client = await authority.issueClient("GLS Italy", "push.gls.test");
  stranger = await authority.issueClient("Other", "push.other.test");
  fingerprint = new X509Certificate(client.cert).fingerprint256;
  folder = await mkdtemp(join(tmpdir(), "waybill-tls-"));
  const write = async (name: string, text: string) => {
    await writeFile(join(folder, name), text);
    return join(folder, name);
  };
  const setup = testSetup();
  setup.couriers?.push(
    {
      code: "LISTED",
      tokens: ["tok_listed"],
      rateLimit: roomy,
      allowedIps: ["203.0.113.0/24", "2001:db8::/32"],
    },
    { code: "OAUTH", tokens: ["tok_oauth"], rateLimit: roomy, oauth },
    { code: "FINGER", tokens: ["tok_finger"], rateLimit: roomy, mtls: { fingerprint } },
    {
      code: "SUBJECT",
      tokens: ["tok_subject"],
      rateLimit: roomy,
      mtls: { subject: "CN=push.gls.test, O=GLS Italy, C=IT" },
    },
  );
  runtime = await openTestRuntime(setup, { TRUSTED_PROXIES: "127.0.0.1,10.0.0.0/8" });
  proxied = await startIngest(runtime);
  const { config } = runtime;
  direct = await startIngest({ ...runtime, config: { ...config, trustedProxies: [] } });
  const ingestTls = {
    certFile: await write("server.pem", authority.server.cert),
    keyFile: await write("server.key", authority.server.key),
    clientCaFile: await write("ca.pem", authority.ca),
  };
  secure = await startIngest({ ...runtime, config: { ...config, trustedProxies: [], ingestTls } });
});

afterAll(async () => {
  for (const ingest of [secure, direct, proxied]) await ingest.stop();
  await runtime.end();
  await rm(folder, { recursive: true, force: true });
});

describe("4: the source address behind proxies", () => {
  const listed = { token: "tok_listed", courier: "LISTED" };
  const statusFrom = async (ingest: Running, forwardedFor: string) => {
    const headers = { "x-forwarded-for": forwardedFor };
    return (await push(ingest.url ?? "", [event()], { ...listed, headers })).status;
  };

  test("X-Forwarded-For of a trusted proxy tells it, IPv4, IPv6 and with a port", async () => {
    for (const address of ["203.0.113.9", "203.0.113.9:4711", "2001:db8::1", "[2001:db8::1]:80"]) {
      expect(await statusFrom(proxied, address)).toBe(200);
    }
    expect(await statusFrom(proxied, "198.51.100.1")).toBe(403);
  });

  test("the rightmost untrusted address counts, whatever the caller has put before it", async () => {
    expect(await statusFrom(proxied, "203.0.113.9, 198.51.100.1, 10.1.2.3")).toBe(403);
    expect(await statusFrom(proxied, "198.51.100.1, 203.0.113.9, 10.1.2.3, 10.9.9.9")).toBe(200);
  });

  test("text that is no address is no address", async () => {
    expect(await statusFrom(proxied, "203.0.113.9, nonsense")).toBe(403);
  });

  test("from anybody else the header is ignored", async () => {
    expect(await statusFrom(direct, "203.0.113.9")).toBe(403);
  });
});

describe("the setup file", () => {
  const faultsOf = (couriers: readonly object[]) =>
    checkSetup({ couriers }).map(({ path, code }) => `${path} ${code}`);
  const one = { code: "ONE", tokens: ["tok_one"] };

  test("faults of oauth and mtls are reported by their path", () => {
    expect(faultsOf([{ ...one, oauth: { clientSecret: oauth.clientSecret } }])).toEqual([
      "couriers[0].oauth.clientId REQUIRED",
    ]);
    expect(faultsOf([{ ...one, mtls: {} }])).toEqual(["couriers[0].mtls TOO_FEW"]);
    expect(faultsOf([{ ...one, mtls: { fingerprint: "AB:CD" } }])).toEqual([
      "couriers[0].mtls.fingerprint BAD_FORMAT",
    ]);
    const two = { code: "TWO", tokens: ["tok_two"], oauth };
    expect(faultsOf([{ ...one, oauth }, two])).toEqual(["couriers[1].oauth.clientId NOT_ALLOWED"]);
  });

  test("a client id of another courier is refused, and the same file changes nothing", async () => {
    const again = { code: "OAUTH", tokens: ["tok_oauth"], rateLimit: roomy, oauth };
    expect(await applySetupFile(runtime, { couriers: [again] })).toBe(0);
    const thief = { couriers: [{ ...one, oauth }] };
    expect(applySetupFile(runtime, thief)).rejects.toThrow("another courier's");
  });

  test("the client secret is stored as a hash only", async () => {
    const stored = JSON.stringify(await allEntities(runtime.redis, "courier"));
    expect(stored).toContain(oauth.clientId);
    expect(stored).not.toContain(oauth.clientSecret);
  });
});

describe("5: OAuth 2.0 client credentials (RFC 6749)", () => {
  const askFor = async (
    form: Readonly<Record<string, string>>,
    headers: Readonly<Record<string, string>> = {},
  ) => {
    const response = await fetch(`${direct.url}/v1/oauth/token`, {
      method: "POST",
      body: new URLSearchParams(form),
      headers,
    });
    // biome-ignore lint/suspicious/noExplicitAny: tests look into whatever the server answered
    return { response, status: response.status, body: (await response.json()) as any };
  };
  const grant = { grant_type: "client_credentials" };
  const inForm = { ...grant, client_id: oauth.clientId, client_secret: oauth.clientSecret };
  const basic = (id: string, secret: string) => ({
    authorization: `Basic ${btoa(`${encodeURIComponent(id)}:${encodeURIComponent(secret)}`)}`,
  });
  const pushWith = (token: string, courier = "OAUTH") =>
    push(direct.url ?? "", [event()], { token, courier });

  test("credentials in the form or by HTTP Basic get a bearer token of limited life", async () => {
    const answers = [
      await askFor(inForm),
      await askFor(grant, basic(oauth.clientId, oauth.clientSecret)),
    ];
    for (const { response, status, body } of answers) {
      expect([status, body.token_type, body.expires_in]).toEqual([200, "Bearer", 3_600]);
      expect(response.headers.get("cache-control")).toBe("no-store");
      expect(response.headers.get("x-ratelimit-remaining")).toMatch(/^\d+$/);
      expect((await pushWith(body.access_token)).status).toBe(200);
    }
  });

  test("the courier's own token keeps working beside it", async () => {
    expect((await pushWith("tok_oauth")).status).toBe(200);
  });

  test("the token is the courier's: another courier in the body is 403", async () => {
    const { body } = await askFor(inForm);
    expect((await pushWith(body.access_token, "GLS_ITA")).body.code).toBe("COURIER_MISMATCH");
  });

  test("a changed token, and one of another installation's key, are 401", async () => {
    const { body } = await askFor(inForm);
    const [header, payload, signature] = body.access_token.split(".");
    const forged = Buffer.from(
      JSON.stringify({ aud: "courier-events", sub: "gls-client", key: "x", exp: 9e9 }),
    );
    const { live } = runtime;
    const courier = live.configuration().courierByClientId.get(oauth.clientId);
    if (!courier) throw new Error("no courier has this client");
    const foreign = await accessTokens("another-installation").mint(courier, live.now());
    // The last character holds four bits of the signature and two unused ones, which are zero.
    const next = String.fromCharCode(signature.charCodeAt(signature.length - 1) + 1);
    const respelled = `${signature.slice(0, -1)}${next}`;
    expect(Buffer.from(respelled, "base64url")).toEqual(Buffer.from(signature, "base64url"));
    for (const token of [
      `${header}.${payload}.${signature.startsWith("A") ? "B" : "A"}${signature.slice(1)}`,
      `${header}.${payload}.${respelled}`,
      `${header}.${forged.toString("base64url")}.${signature}`,
      `${header}.${payload}.`,
      foreign,
    ]) {
      const answer = await pushWith(token);
      expect([answer.status, answer.body.code]).toEqual([401, "UNKNOWN_TOKEN"]);
      expect(answer.headers.get("www-authenticate")).toContain("invalid_token");
    }
  });

  const refused: [string, Record<string, string>, Record<string, string>, number, string][] = [
    ["no grant type", { client_id: "gls-client", client_secret: "x" }, {}, 400, "invalid_request"],
    ["another grant", { ...inForm, grant_type: "password" }, {}, 400, "unsupported_grant_type"],
    ["another scope", { ...inForm, scope: "all" }, {}, 400, "invalid_scope"],
    ["no credentials", grant, {}, 401, "invalid_client"],
    ["a wrong secret", { ...inForm, client_secret: "wrong" }, {}, 401, "invalid_client"],
    ["an unknown client", { ...inForm, client_id: "nobody" }, {}, 401, "invalid_client"],
    ["a wrong secret by Basic", grant, basic("gls-client", "wrong"), 401, "invalid_client"],
    ["credentials twice", inForm, basic("gls-client", "secret of gls"), 400, "invalid_request"],
    [
      "a form of another type",
      inForm,
      { "content-type": "application/json" },
      400,
      "invalid_request",
    ],
    ["a form over 8 KiB", { ...inForm, more: "x".repeat(9_000) }, {}, 400, "invalid_request"],
  ];
  test.each(refused)(
    "%s is refused in the RFC's shape",
    async (_, form, headers, status, error) => {
      const answer = await askFor(form, headers);
      expect([answer.status, answer.body.error]).toEqual([status, error]);
      expect(answer.body.error_description).toEqual(expect.any(String));
      if (error === "invalid_client" && "client_id" in form) {
        expect(answer.body.error_description).toInclude("Form-encode the id and the secret");
      }
      const challenge = answer.response.headers.get("www-authenticate");
      expect(challenge !== null).toBe(status === 401 && "authorization" in headers);
    },
  );

  test("a parameter that appears twice is refused", async () => {
    const body = `${new URLSearchParams(inForm)}&client_id=gls-client`;
    const headers = { "content-type": "application/x-www-form-urlencoded" };
    const response = await fetch(`${direct.url}/v1/oauth/token`, { method: "POST", body, headers });
    expect(await response.json()).toMatchObject({ error: "invalid_request" });
  });

  test("a new secret ends the tokens of the old one at once, and null ends OAuth", async () => {
    const { body } = await askFor(inForm);
    const courier = { code: "OAUTH", tokens: ["tok_oauth"] };
    const changed = { ...oauth, clientSecret: "another secret" };
    await applySetupFile(runtime, { couriers: [{ ...courier, oauth: changed }] });
    expect((await pushWith(body.access_token)).status).toBe(401);
    const renewed = await askFor({ ...inForm, client_secret: changed.clientSecret });
    expect((await pushWith(renewed.body.access_token)).status).toBe(200);
    await applySetupFile(runtime, { couriers: [{ ...courier, oauth: null }] });
    expect((await pushWith(renewed.body.access_token)).status).toBe(401);
    expect((await askFor({ ...inForm, client_secret: changed.clientSecret })).status).toBe(401);
    await applySetupFile(runtime, { couriers: [{ ...courier, oauth }] });
  });

  test("a token expires by the service clock", async () => {
    const { body } = await askFor(inForm);
    await advanceClock(runtime.redis, TOKEN_LIFE_SECONDS - 60);
    expect((await pushWith(body.access_token)).status).toBe(200);
    await advanceClock(runtime.redis, 60);
    expect((await pushWith(body.access_token)).status).toBe(401);
  });

  test("asking for tokens is limited by address: 429 with Retry-After", async () => {
    const { body, response } = await untilRefused(UNKNOWN_CALLER_RATE, 401, () => askFor(grant));
    expect(body.code).toBe("RATE_LIMITED");
    expect(response.headers.get("retry-after")).toMatch(/^\d+$/);
    await advanceClock(runtime.redis, 60);
  });
});

describe("5: mutual TLS, ended by ingest itself", () => {
  const pushOver = async (code: string, certificate: Pem | null, path = "/v1/events") => {
    const envelope = {
      schemaVersion: "1.0",
      messageId: "m",
      sentAt: "2026-11-20T10:00:00+01:00",
      courier: code,
      events: [event()],
    };
    const response = await fetch(`${secure.url}${path}`, {
      method: "POST",
      body: JSON.stringify(envelope),
      headers: {
        "content-type": "application/json",
        authorization: `Bearer tok_${code.toLowerCase()}`,
      },
      keepalive: false,
      tls: { ca: authority.ca, ...certificate },
    });
    // biome-ignore lint/suspicious/noExplicitAny: tests look into whatever the server answered
    return { status: response.status, body: (await response.json()) as any };
  };

  test("the certificate bound by fingerprint, or by subject in any order, passes", async () => {
    for (const code of ["FINGER", "SUBJECT"]) {
      expect((await pushOver(code, client)).status).toBe(200);
    }
  });

  test("no certificate, and another one of the same authority, are 403 on every endpoint", async () => {
    for (const certificate of [null, stranger]) {
      for (const path of ["/v1/events", "/v1/events/validate"]) {
        const { status, body } = await pushOver("FINGER", certificate, path);
        expect([status, body.code]).toEqual([403, "CERTIFICATE_NOT_ACCEPTED"]);
      }
    }
  });

  test("a certificate of the right name that another authority has signed is 403", async () => {
    const other = await createTestAuthority();
    const pretended = await other.issueClient("GLS Italy", "push.gls.test");
    expect((await pushOver("SUBJECT", pretended)).status).toBe(403);
  });

  test("a courier that is not bound needs none", async () => {
    const envelope = { courier: "OAUTH" };
    expect((await pushOver(envelope.courier, null)).status).toBe(200);
  });

  test("a 500-event message of 5 MiB passes through", async () => {
    const { status } = await fetch(`${secure.url}/v1/events/validate`, {
      method: "POST",
      body: JSON.stringify({
        schemaVersion: "1.0",
        messageId: "m",
        sentAt: "2026-11-20T10:00:00+01:00",
        courier: "OAUTH",
        events: Array.from({ length: 500 }, () => event()),
        filler: "x".repeat(4_800_000),
      }),
      headers: { "content-type": "application/json", authorization: "Bearer tok_oauth" },
      tls: { ca: authority.ca },
    });
    expect(status).toBe(200);
  });
});

describe("5: mutual TLS, ended by a proxy", () => {
  const FAMILIES = ["none", "x-client-cert", "envoy", "rfc9440"] as const;
  type Family = (typeof FAMILIES)[number];
  const behind = new Map<Family, Running>();

  beforeAll(async () => {
    for (const clientCertHeaders of FAMILIES) {
      const config = { ...runtime.config, clientCertHeaders };
      behind.set(clientCertHeaders, await startIngest({ ...runtime, config }));
    }
  });
  afterAll(async () => {
    for (const ingest of behind.values()) await ingest.stop();
  });

  const statusWith = async (ingest: Running, code: string, headers: Record<string, string>) => {
    const token = `tok_${code.toLowerCase()}`;
    return (await push(ingest.url ?? "", [event()], { token, courier: code, headers })).status;
  };
  const statusBehind = (family: Family, code: string, headers: Record<string, string>) => {
    const ingest = behind.get(family);
    if (!ingest) throw new Error(`no ingest behind ${family}`);
    return statusWith(ingest, code, headers);
  };
  const plain = () => fingerprint.replaceAll(":", "").toLowerCase();
  const xfcc = (value: string) => ({ "x-forwarded-client-cert": value });
  const clientCert = (pem: string) => {
    const der = new X509Certificate(pem).raw.toString("base64");
    return { "client-cert": `:${der}:` };
  };
  /** The right certificate as each family tells it. */
  const reported = (): Record<Exclude<Family, "none">, Record<string, string>> => ({
    "x-client-cert": { "x-client-cert-fingerprint": plain() },
    envoy: xfcc(`By=spiffe://x;Hash=${plain()};Subject="CN=a,O=b"`),
    rfc9440: clientCert(client.cert),
  });

  test("only the family of headers named in the configuration is trusted", async () => {
    for (const family of FAMILIES) {
      for (const [name, headers] of Object.entries(reported())) {
        const status = await statusBehind(family, "FINGER", headers);
        expect([family, name, status]).toEqual([family, name, name === family ? 200 : 403]);
      }
      expect(await statusBehind(family, "FINGER", {})).toBe(403);
    }
  });

  test("a caller's header of another family does not beat the proxy's own", async () => {
    const other = new X509Certificate(stranger.cert).fingerprint256.replaceAll(":", "");
    const families: Record<Exclude<Family, "none">, Record<string, string>> = {
      "x-client-cert": { "x-client-cert-fingerprint": other },
      envoy: xfcc(`Hash=${other}`),
      rfc9440: clientCert(stranger.cert),
    };
    const all = Object.assign({}, ...Object.values(reported()));
    for (const [family, proxys] of Object.entries(families)) {
      expect(await statusBehind(family as Family, "FINGER", { ...all, ...proxys })).toBe(403);
    }
  });

  test("none is trusted unless the configuration names one", async () => {
    const all = Object.assign({}, ...Object.values(reported()));
    expect(await statusWith(proxied, "FINGER", all)).toBe(403);
  });

  test("X-Client-Cert carries the fingerprint or the subject", async () => {
    const subject = { "x-client-cert-subject": "C=IT,O=GLS Italy,CN=push.gls.test" };
    expect(await statusBehind("x-client-cert", "SUBJECT", subject)).toBe(200);
    const repeated = { "x-client-cert-fingerprint": `${plain()}, ${"0".repeat(64)}` };
    expect(await statusBehind("x-client-cert", "FINGER", repeated)).toBe(403);
  });

  test("of X-Forwarded-Client-Cert the element of the nearest proxy counts", async () => {
    const own = `Hash=${plain()};Subject="CN=a,O=b"`;
    const cases: [string, number][] = [
      [own, 200],
      [`By=x;Hash=00,${own}`, 200],
      [`${own},By=x;Hash=00`, 403],
      [`${own}, `, 403],
    ];
    for (const [value, status] of cases) {
      expect([value, await statusBehind("envoy", "FINGER", xfcc(value))]).toEqual([value, status]);
    }
    const subject = 'Hash=00;Subject="CN=push.gls.test,O=GLS Italy,C=IT"';
    expect(await statusBehind("envoy", "SUBJECT", xfcc(subject))).toBe(200);
  });

  test("a caller's element with an open quotation mark does not swallow the proxy's", async () => {
    const proxys = 'By=x;Hash=00;Subject="CN=\\"push\\",O=b"';
    for (const opened of ['Subject="', 'Subject="\\', 'Subject="a\\"', 'Subject="";URI="x']) {
      const value = `Hash=${plain()};${opened},${proxys}`;
      expect([opened, await statusBehind("envoy", "FINGER", xfcc(value))]).toEqual([opened, 403]);
    }
  });

  test("Client-Cert (RFC 9440) is one certificate; two, or none, or a chain are none", async () => {
    const right = clientCert(client.cert)["client-cert"];
    const wrong = [`${right}, ${right}`, right.slice(1), ":AAAA:", "", `${right};x`];
    for (const value of wrong) {
      expect(await statusBehind("rfc9440", "FINGER", { "client-cert": value })).toBe(403);
    }
    expect(await statusBehind("rfc9440", "SUBJECT", clientCert(client.cert))).toBe(200);
  });

  test("from anybody else the headers are ignored", async () => {
    for (const [family, headers] of Object.entries(reported())) {
      const clientCertHeaders = family as Family;
      const config = { ...runtime.config, trustedProxies: [], clientCertHeaders };
      const open = await startIngest({ ...runtime, config });
      expect(await statusWith(open, "FINGER", headers)).toBe(403);
      await open.stop();
    }
    expect(await statusWith(direct, "FINGER", reported()["x-client-cert"])).toBe(403);
  });
});
