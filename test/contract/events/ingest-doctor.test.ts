/** The doctor, which a courier's engineer downloads from the running product and runs in an empty folder. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { applySetupFile, type Running } from "#core/runtime/runtime.ts";
import { sign } from "#core/webhooks/rules/signature.ts";
import { probes } from "#ingest/doctor/probes.ts";
import { signMessage } from "#ingest/doctor/sign-message.ts";
import { startIngest } from "#ingest/main.ts";
import { event } from "#test/support/clients/courier.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { outcomeOf, startCommand } from "#test/support/product/command.ts";
import { openTestRuntime, type TestRuntime } from "#test/support/product/runtime.ts";
import { createTestAuthority, type TestAuthority } from "#test/support/servers/certificates.ts";
import { freePort } from "#test/support/servers/free-port.ts";

let runtime: TestRuntime;
let ingest: Running;
let folder: string;

beforeAll(async () => {
  const setup = testSetup();
  setup.couriers?.push(
    {
      code: "STRICT",
      tokens: ["tok_strict"],
      signingSecrets: ["sig_strict"],
      signatureRequired: true,
    },
    { code: "FENCED", tokens: ["tok_fenced"], allowedIps: ["192.0.2.1"] },
  );
  runtime = await openTestRuntime(setup);
  ingest = await startIngest(runtime);
  folder = await mkdtemp(join(tmpdir(), "waybill-doctor-"));
  const answer = await fetch(`${ingest.url}/v1/doctor.mjs`);
  await writeFile(join(folder, "doctor.mjs"), await answer.text());
});

afterAll(async () => {
  await ingest.stop();
  await runtime.end();
  await rm(folder, { recursive: true, force: true });
});

function run(program: string, args: readonly string[], input = "") {
  const command = [program, "doctor.mjs", "courier", ...args];
  return outcomeOf(startCommand(command, {}, { cwd: folder, input }));
}

const doctor = (args: readonly string[], input?: string) =>
  run("node", ["--url", ingest.url ?? "", ...args], input);
const strict = ["--token", "tok_strict", "--courier", "STRICT"];
const gls = ["--token", "tok_gls_1", "--courier", "GLS_ITA"];
const count = probes(Date.now).length;

const message = (events: readonly unknown[], members: object = {}) =>
  JSON.stringify({
    schemaVersion: "1.0",
    messageId: "m",
    sentAt: "2026-11-20T10:00:00+01:00",
    courier: "GLS_ITA",
    events,
    ...members,
  });

describe("the file", () => {
  test("is JavaScript that a browser takes for nothing else, may be cached, and names no path of this machine", async () => {
    const answer = await fetch(`${ingest.url}/v1/doctor.mjs`);
    expect(answer.status).toBe(200);
    expect(answer.headers.get("content-type")).toBe("text/javascript; charset=utf-8");
    expect(answer.headers.get("x-content-type-options")).toBe("nosniff");
    expect(answer.headers.get("cache-control")).toBe("public, max-age=300");
    const text = await answer.text();
    expect(text).not.toContain(process.cwd());
    for (const secret of ["tok_gls_1", "sig_gls_1", runtime.secrets.jwtSecret]) {
      expect(text).not.toContain(secret);
    }
  });

  test("imports nothing but what Node.js has, and stands alone in its folder", async () => {
    const text = await Bun.file(join(folder, "doctor.mjs")).text();
    const imports = [...text.matchAll(/^import .* from "([^"]+)";$/gm)].map(([, name]) => name);
    expect(imports.length).toBeGreaterThan(3);
    for (const name of imports) expect(name).toMatch(/^(node:|util$|zlib$|http$|https$|crypto$)/);
    expect(text).not.toMatch(/\bBun\./);
    expect(await readdir(folder)).toContain("doctor.mjs");
  });

  test("signs as the product does", () => {
    const body = new TextEncoder().encode('{"a":"è"}');
    const secrets = ["one", "two"];
    expect(signMessage(secrets, body, 1_795_165_200_123)).toBe(
      sign(secrets, body, 1_795_165_200_123),
    );
  });
});

describe("against the product itself", () => {
  test.each(["node", "bun"])(
    "%s: every probe is as expected: grade A, exit status 0",
    async (program) => {
      expect(count).toBeGreaterThanOrEqual(40);
      const args = ["--url", ingest.url ?? "", ...strict, "--secret", "sig_strict"];
      const { output, status } = await run(program, args);
      expect(output).toContain(`Grade A: ${count} of ${count} as expected.`);
      expect(status).toBe(0);
    },
  );

  test("from the repository too", async () => {
    const program = ["bun", "cli/main.ts", "doctor", "courier"];
    const command = [...program, "--url", ingest.url ?? "", ...gls, "--json"];
    const { output, status } = await outcomeOf(startCommand(command, {}));
    expect(JSON.parse(output)).toMatchObject({ service: { stopped: null }, messages: null });
    expect(status).toBe(0);
  });

  test("without a secret the signature is left out and said so", async () => {
    const { output, status } = await doctor(gls);
    expect(output).toContain("8 signature probes need --secret.");
    expect(status).toBe(0);
  });
});

describe("over TLS", () => {
  let secure: Running;
  let authority: TestAuthority;

  beforeAll(async () => {
    authority = await createTestAuthority();
    const files = { "server.pem": authority.server.cert, "server.key": authority.server.key };
    const client = await authority.issueClient("Bound", "push.bound.test");
    const own = { "ca.pem": authority.ca, "client.pem": client.cert, "client.key": client.key };
    for (const [name, text] of Object.entries({ ...files, ...own })) {
      await writeFile(join(folder, name), text);
    }
    const mtls = { subject: "CN=push.bound.test,O=Bound,C=IT" };
    await applySetupFile(runtime, { couriers: [{ code: "BOUND", tokens: ["tok_bound"], mtls }] });
    const path = (name: string) => join(folder, name);
    const ingestTls = {
      certFile: path("server.pem"),
      keyFile: path("server.key"),
      clientCaFile: path("ca.pem"),
    };
    secure = await startIngest({ ...runtime, config: { ...runtime.config, ingestTls } });
  });
  afterAll(() => secure.stop());

  const bound = ["--token", "tok_bound", "--courier", "BOUND"];
  const asked = (...args: readonly string[]) =>
    run("node", ["--url", secure.url ?? "", ...bound, ...args]);

  test("with a private root and a client certificate every probe is as expected", async () => {
    const client = ["--cert", "client.pem", "--key", "client.key"];
    const { output, status } = await asked("--ca", "ca.pem", ...client);
    expect(output).toContain(`Grade A: ${count - 8} of ${count - 8} as expected.`);
    expect(status).toBe(0);
  });

  test("an unknown root, a missing client certificate and plain HTTP are first causes", async () => {
    expect((await asked()).output).toContain("The certificate is not trusted: check --ca.");
    expect((await asked("--ca", "ca.pem")).output).toContain("The client certificate is missing");
    const crossed = (ingest.url ?? "").replace("http:", "https:");
    const { output } = await run("node", ["--url", crossed, ...bound]);
    expect(output).toContain("check http or https in --url");
  });
});

describe("stops at the first cause, names it alone and says what to do", () => {
  const causes: [string, readonly string[], string, string][] = [
    [
      "a wrong token",
      ["--token", "tok_wrong", "--courier", "GLS_ITA"],
      "The token is not known",
      "Check --token",
    ],
    [
      "a token of another courier",
      ["--token", "tok_brt_1", "--courier", "GLS_ITA"],
      "The token belongs to BRT_ITA, and --courier is GLS_ITA.",
      "Use the token and the code",
    ],
    ["a missing secret", strict, "Signing is mandatory", "Pass the signing secret: --secret"],
    [
      "a wrong secret",
      [...strict, "--secret", "sig_wrong"],
      "is refused (403 BAD_SIGNATURE)",
      "check --secret",
    ],
    [
      "an address that is not allowed",
      ["--token", "tok_fenced", "--courier", "FENCED"],
      "is not on the allowlist",
      "from where your sender sends",
    ],
  ];
  test.each(causes)("%s", async (_, args, what, remedy) => {
    const { output, status } = await doctor(args);
    expect(output.match(/STOPPED/g)).toHaveLength(1);
    expect(output).toContain(what);
    expect(output).toContain(remedy);
    expect(output).not.toMatch(/FAIL|Grade|sig_wrong|tok_wrong/);
    expect(status).toBe(1);
  });

  test("an address where nothing listens, a name that does not exist, silence, a server that is another one", async () => {
    const other = Bun.serve({ port: 0, fetch: () => new Response("<h1>Welcome</h1>") });
    const mute = Bun.listen({ port: 0, hostname: "127.0.0.1", socket: { data() {} } });
    const causes = [
      [`http://127.0.0.1:${await freePort()}`, "Nothing listens there"],
      ["http://doctor.invalid", "The host name is not known"],
      [`http://127.0.0.1:${mute.port}`, "no answer within 15 s"],
    ] as const;
    const asked = causes.map(async ([url, remedy]) => {
      const { output, status } = await run("node", ["--url", url, ...gls]);
      expect(output).toContain(`STOPPED  ${url} does not answer`);
      expect(output).toContain(remedy);
      expect(status).toBe(1);
    });
    await Promise.all(asked);
    mute.stop(true);
    const { output } = await run("node", ["--url", `http://127.0.0.1:${other.port}`, ...gls]);
    expect(output).toContain("This is not the ingestion API");
    await other.stop(true);
  });

  test("a service that dies in between", async () => {
    let asked = 0;
    const dying = Bun.serve({
      port: 0,
      async fetch(request) {
        asked += 1;
        if (asked > 5) await dying.stop(true);
        const { pathname } = new URL(request.url);
        const { method, headers } = request;
        const body = method === "GET" ? null : await request.arrayBuffer();
        return fetch(`${ingest.url}${pathname}`, { method, headers, body });
      },
    });
    const { output, status } = await run("node", [
      "--url",
      `http://127.0.0.1:${dying.port}`,
      ...gls,
    ]);
    expect(output.match(/STOPPED/g)).toHaveLength(1);
    expect(output).not.toContain("FAIL");
    expect(status).toBe(1);
  });
});

describe("a sender's own messages", () => {
  test("are judged event by event, by the schemas and by the service, and graded apart", async () => {
    const sample = message([event(), { ...event(), colour: "red" }]);
    await writeFile(join(folder, "message.json"), sample);
    const { output, status } = await doctor([...gls, "--messages", "message.json"]);
    expect(output).toContain(`Grade A: ${count - 8} of ${count - 8} as expected.`);
    expect(output).toContain("Your messages  1/2");
    expect(output.match(/colour: The field is not known\./g)).toHaveLength(1);
    expect(output).toContain("grade E, 1 of 2 valid");
    expect(output).toContain("and the service.");
    expect(status).toBe(1);
  });

  test("may come compressed, one a line, from several files and from standard input", async () => {
    await writeFile(join(folder, "packed.json.gz"), gzipSync(message([event(), event()])));
    await writeFile(join(folder, "lines.jsonl"), `${message([event()])}\n${message([event()])}\n`);
    const files = ["--messages", "packed.json.gz", "--sample", "lines.jsonl", "--messages", "-"];
    const { output, status } = await doctor(
      [...gls, ...files],
      message([event()], { messageId: "" }),
    );
    expect(output).toContain("Your messages  4/5");
    expect(output).toContain("FAIL  stdin");
    expect(output).toContain("messageId: At least 1 character.");
    expect(status).toBe(1);
  });

  test("are checked by the schemas alone without a service, and where it does not answer", async () => {
    const good = message([event()]);
    const alone = await run("bun", ["--messages", "-"], good);
    expect(alone.output).toContain(
      "grade A, 1 of 1 valid, checked by the published schemas alone.",
    );
    expect(alone.status).toBe(0);
    const dead = ["--url", "http://127.0.0.1:1", ...gls, "--messages", "-"];
    const { output, status } = await run("bun", dead, good);
    expect(output).toContain("STOPPED");
    expect(output).toContain("checked by the published schemas alone.");
    expect(status).toBe(1);
  });

  test("must not use an eventId for two events; the same event again is a retry", async () => {
    const one = event({ eventId: "same" });
    const other = { ...one, status: { code: "DLV", description: "Consegnata" } };
    const twice = await run("bun", ["--messages", "-"], `${message([one])}\n${message([one])}`);
    expect(twice.status).toBe(0);
    const { output, status } = await run("bun", ["--messages", "-"], message([one, other]));
    expect(output).toContain("eventId: another event of yours has this id");
    expect(output).toContain("-> Give every event an eventId of its own.");
    expect(output).not.toContain("with the same eventId");
    expect(status).toBe(1);
  });

  test("an INVALID event does not take its id: the corrected one has the same", async () => {
    const corrected = event();
    const both = `${message([{ ...corrected, weight: 2 }])}\n${message([corrected])}`;
    const { output } = await run("bun", ["--messages", "-"], both);
    expect(output).toContain("1 of 2 valid");
    expect(output).toContain("weight: The field is not known.");
    expect(output).not.toContain("DUPLICATE");
  });

  test("ahead of their time are warned of where they are valid, and INVALID more than 24 hours ahead", async () => {
    const inMs = (ms: number) => event({ occurredAt: new Date(Date.now() + ms).toISOString() });
    const hour = 3_600_000;
    const valid = message([event(), inMs(hour), inMs(2 * hour)]);
    const warned = await run("bun", ["--messages", "-"], valid);
    expect(warned.output).toContain("3 of 3 valid");
    expect(warned.output).toMatch(/WARN {2}2 of 3 are ahead of their time, by up to 1(19|20) min/);
    expect(warned.status).toBe(0);
    const refused = await run("bun", ["--messages", "-"], message([event(), inMs(25 * hour)]));
    expect(refused.output).toContain("1 of 2 valid");
    expect(refused.output).toContain("occurredAt: More than 24 hours ahead");
    expect(refused.output).not.toContain("WARN");
    expect(refused.status).toBe(1);
  });

  test("what is no message, no JSON, or too large is reported by its name", async () => {
    const cases: [string, string][] = [
      ["{", "The text is not valid JSON."],
      ["[]", "(whole): "],
      [message([event()], { schemaVersion: "one" }), "schemaVersion: Expected: major and minor"],
      [message([event()], { schemaVersion: "2.0" }), "schemaVersion 2.0 is not supported"],
      [message([event()]).replace('"m"', '"m","messageId":"n"'), "the field messageId twice"],
      [" ".repeat(5 * 1024 * 1024 + 1), "larger than 5 MiB"],
    ];
    for (const [input, fault] of cases) {
      const { output, status } = await run("bun", ["--messages", "-"], input);
      expect(output).toContain("FAIL  stdin");
      expect(output).toContain(fault);
      expect(status).toBe(1);
    }
    const none = await run("bun", ["--messages", "nowhere.json"]);
    expect(none.errors).toContain("nowhere.json");
    expect(none.status).toBe(1);
  });

  test("of a whole day are reported by their failures, 50 at most", async () => {
    const faulty = Array.from({ length: 51 }, () => ({ ...event(), weight: 2 }));
    const good = Array.from({ length: 400 }, () => event());
    const { output } = await run("bun", ["--messages", "-"], message([...faulty, ...good]));
    expect(output.match(/FAIL/g)).toHaveLength(50);
    expect(output).toContain("  and 1 more");
    expect(output).toContain("400 of 451 valid");
  });
});

test("--help prints the usage and succeeds", async () => {
  for (const args of [["--help"], ["-h"]]) {
    const { output, status } = await run("bun", args);
    expect(output).toStartWith("usage: node doctor.mjs courier");
    expect(status).toBe(0);
  }
});

test("a missing argument is named", async () => {
  const { errors, status } = await run("bun", ["--url", "http://127.0.0.1:1", "--token", ""]);
  expect(errors).toContain("Missing: --token, --courier");
  expect(status).toBe(2);
});

test("a missing or malformed argument tells the usage", async () => {
  for (const args of [
    ["--token", "x"],
    [],
    ["--url", "nowhere", "--token", "x", "--courier", "X"],
  ]) {
    const { errors, status } = await run("bun", args);
    expect(errors).toMatch(/^usage: node doctor\.mjs courier/m);
    expect(status).toBe(2);
  }
});
