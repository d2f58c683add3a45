/** Every call of the panel by every role: what a role lacks is 403, what is another's is answered as what does not exist. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { AnyElysia } from "elysia";
import { pino } from "pino";
import { type Benchmarks, openBenchmarks } from "#analytics/benchmarks.ts";
import { type Insights, openInsights } from "#analytics/insights.ts";
import {
  ACCOUNT_KINDS,
  type AccountKind,
  capabilitiesOf,
  type Role,
  rolesOf,
} from "#core/accounts/rules/roles.ts";
import { guardOf, isOfPanel, type PanelAccess } from "#core/platform/http/access.ts";
import { createPanelApp } from "#panel/server/app.ts";
import { makeAccount, type TestAccount } from "#test/support/data/accounts.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { addShipment } from "#test/support/data/shipments.ts";
import { type Measuring, startMeasuring } from "#test/support/measured.ts";
import { NO_CLICKHOUSE, openTestRuntime, type TestRuntime } from "#test/support/product/runtime.ts";

interface Route {
  readonly method: string;
  readonly path: string;
  readonly access: PanelAccess;
}

interface Member extends TestAccount {
  readonly kind: AccountKind;
  readonly role: Role;
}

/** Members of beta and of BRT: nothing of acme's and of GLS's is theirs. */
const OWNERS = {
  operator: {},
  company: { companyCode: "beta" },
  courier: { courierCode: "BRT_ITA" },
} as const;

let measuring: Measuring;
/** By what came of them. */
const calls = { refused: 0, admitted: 0, foreign: 0 };
let runtime: TestRuntime;
let benchmarks: Benchmarks;
let insights: Insights;
let app: AnyElysia;
let routes: Route[];
let members: Member[];
/** Of acme, of GLS, and of the operators. */
let others: Readonly<Record<string, string>>;
const logged: string[] = [];

beforeAll(async () => {
  measuring = startMeasuring("Nobody in", "every call of the panel, by every role");
  const setup = testSetup();
  const [channel] = setup.companies?.[0]?.channels ?? [];
  if (channel) {
    const url = "https://merchant.example/hook";
    channel.webhooks = [{ code: "main", url, alertEmail: "ops@acme.test" }];
  }
  runtime = await openTestRuntime(setup, {
    CLICKHOUSE_URL: NO_CLICKHOUSE,
  });
  benchmarks = await openBenchmarks(runtime.config);
  insights = openInsights(runtime.config);
  const log = pino({ level: "warn" }, { write: (line) => void logged.push(line) });
  app = createPanelApp({ ...runtime, log }, benchmarks, insights);
  routes = app.routes.flatMap((route) => {
    const access = guardOf(route)?.access;
    return isOfPanel(access) ? [{ method: route.method, path: route.path, access }] : [];
  });
  const roles = ACCOUNT_KINDS.flatMap((kind) => rolesOf(kind).map((role) => ({ kind, role })));
  members = await Promise.all(
    roles.map(async ({ kind, role }) => {
      return { kind, role, ...(await makeAccount(runtime, kind, role, OWNERS[kind])) };
    }),
  );
  const acme = await makeAccount(runtime, "company", "owner", { companyCode: "acme" });
  const configuration = runtime.live.configuration();
  const [endpointId = ""] = configuration.endpoints.keys();
  const key = [...configuration.apiKeyById.values()].find(
    ({ channelId }) => channelId === configuration.channelByCode.get("acme-it")?.id,
  );
  others = {
    "shipment:id": String(await addShipment(runtime, "ROLES-1")),
    "apiKey:id": String(key?.id),
    "account:id": acme.account.id,
    "company:code": "acme",
    "courier:code": "GLS_ITA",
    channelCode: "acme-it",
    endpointId,
  };
});

afterAll(async () => {
  await Promise.all([benchmarks.close(), insights.close()]);
  await runtime.end();
});

/** Neither is read before the caller is admitted: each would be refused in a way of its own. */
const BAD_QUERY = "?limit=x&cursor=%25&from=never";
const BAD_BODY = "{";

function pathOf({ path, access }: Route, names: Readonly<Record<string, string>>): string {
  return path.replaceAll(
    /:(\w+)/g,
    (_, name: string) => names[`${access.of}:${name}`] ?? names[name] ?? "nothing",
  );
}

/** What is the same of two answers to the same question. */
function withoutId(text: string): string {
  return text.replace(/"requestId":"[^"]*"/, "");
}

async function ask(member: Member, route: Route, names: Readonly<Record<string, string>>) {
  const isReading = route.method === "GET";
  const answer = await app.handle(
    new Request(`http://localhost${pathOf(route, names)}${BAD_QUERY}`, {
      method: route.method,
      headers: { cookie: member.cookie, "sec-fetch-site": "same-origin" },
      body: isReading ? null : BAD_BODY,
    }),
  );
  const { method, path } = route;
  // What never ends by itself is let in, and left.
  const isStream = answer.headers.get("content-type") === "text/event-stream";
  if (isStream) await answer.body?.cancel();
  const text = isStream ? "" : withoutId(await answer.text());
  return { status: answer.status, text, told: `${member.kind} ${member.role}: ${method} ${path}` };
}

const may = ({ kind, role }: Member, { access }: Route) =>
  capabilitiesOf(kind, role).includes(access.can) &&
  (kind === "operator" || access.of !== "installation");

describe("every role and every call", () => {
  test("each role is asked, and each call", () => {
    expect(members.map(({ kind, role }) => `${kind} ${role}`)).toEqual([
      ...["operator admin", "operator operator", "operator read-only"],
      ...["company owner", "company member", "company read-only"],
      ...["courier owner", "courier read-only"],
    ]);
    expect(routes.length).toBeGreaterThan(60);
  });

  test("what the role does not include is 403, before anything else of the request is read", async () => {
    const wrong: string[] = [];
    let asked = 0;
    for (const member of members) {
      for (const route of routes.filter((one) => !may(member, one))) {
        asked += 1;
        const { status, text, told } = await ask(member, route, others);
        if (status !== 403 || !text.includes('"FORBIDDEN"')) wrong.push(`${told} ${status}`);
      }
    }
    expect(wrong).toEqual([]);
    expect(asked).toBeGreaterThan(150);
    calls.refused = asked;
  });

  test("what it includes is not refused", async () => {
    const wrong: string[] = [];
    for (const member of members) {
      for (const route of routes.filter((one) => may(member, one))) {
        calls.admitted += 1;
        const { status, told } = await ask(member, route, {});
        if ([303, 401, 403, 500].includes(status)) wrong.push(`${told} ${status}`);
      }
    }
    expect(wrong).toEqual([]);
  });

  test("another company's or courier's thing is answered exactly as one that does not exist", async () => {
    const wrong: string[] = [];
    let asked = 0;
    for (const member of members.filter(({ kind }) => kind !== "operator")) {
      const owned = routes.filter(
        (one) => may(member, one) && !["caller", "installation"].includes(one.access.of),
      );
      for (const route of owned) {
        asked += 1;
        const theirs = await ask(member, route, others);
        const nothing = await ask(member, route, {});
        if (theirs.status !== 404 || theirs.text !== nothing.text) {
          wrong.push(`${theirs.told} ${theirs.status} ${theirs.text}`);
        }
      }
    }
    expect(wrong).toEqual([]);
    expect(asked).toBeGreaterThan(40);
    calls.foreign = asked;
  });

  test("lists show members what is theirs", async () => {
    const list = async (member: Member, path: string) => {
      const headers = { cookie: member.cookie };
      const answer = await app.handle(new Request(`http://localhost${path}`, { headers }));
      return withoutId(JSON.stringify(await answer.json()));
    };
    for (const member of members.filter(({ kind }) => kind === "company")) {
      const channels = await list(member, "/panel/api/channels");
      expect(channels).toContain("beta-it");
      expect(channels).not.toContain("acme");
    }
    for (const member of members.filter(({ kind }) => kind === "courier")) {
      const couriers = await list(member, "/panel/api/couriers");
      expect(couriers).toContain("BRT_ITA");
      expect(couriers).not.toContain("GLS_ITA");
      const events = await list(member, "/panel/api/events?courier=GLS_ITA&eventId=1");
      expect(events).toBe(await list(member, "/panel/api/events?courier=NONE&eventId=1"));
    }
    for (const { kind, ...member } of members.filter(({ role }) => role === "owner")) {
      const accounts = await list({ kind, ...member }, "/panel/api/accounts");
      const own = kind === "company" ? "@beta.test" : "@brt_ita.test";
      const addresses = accounts.match(/@[\w.]+/g) ?? [];
      expect(new Set(addresses)).toEqual(new Set([own]));
    }
  });

  test("none of this was an unexpected error: the log is empty", async () => {
    expect(logged).toEqual([]);
    const { refused, admitted, foreign } = calls;
    await measuring.done({
      inputs: refused + admitted + foreign,
      further: {
        "calls a role lacks, each answered 403": refused,
        "calls a role has, each admitted": admitted,
        "another's things, each answered as a missing one": foreign,
      },
    });
  });
});

describe("the roles", () => {
  test("read-only changes nothing and reads no statement of its own choice", () => {
    for (const kind of ACCOUNT_KINDS) {
      const others = capabilitiesOf(kind, "read-only").filter((one) => !one.endsWith(":read"));
      expect(others).toEqual(["me"]);
    }
  });

  test("a role of another kind gives nothing", () => {
    expect(capabilitiesOf("company", "admin")).toEqual([]);
    expect(capabilitiesOf("courier", "member")).toEqual([]);
  });
});
