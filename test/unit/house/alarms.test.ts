/** Alarms and dashboards name metrics that exist, each alarm fires and clears, and the operations guide has all of them. */
import { afterAll, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parser } from "@prometheus-io/lezer-promql";
import { ALARMS } from "#core/alarms/rules/alarm.ts";
import { registry } from "#core/platform/process/metrics.ts";
import operations from "#deploy/grafana/operations.json" with { type: "json" };

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly for?: string;
  readonly keep_firing_for?: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

const RULES_FILE = "deploy/prometheus/rules.yaml";
const { groups } = Bun.YAML.parse(await Bun.file(RULES_FILE).text()) as {
  groups: { rules: Rule[] }[];
};
const rules = groups.flatMap((group) => group.rules);
const guide = await Bun.file("docs/operations/monitoring.md").text();

/** Those of Prometheus itself. */
const FOREIGN = new Set(["up"]);

async function metricNames(): Promise<Set<string>> {
  const metrics = await registry.getMetricsAsJSON();
  return new Set(
    metrics.flatMap(({ name, type }) =>
      String(type) === "histogram"
        ? ["bucket", "sum", "count"].map((end) => `${name}_${end}`)
        : [name],
    ),
  );
}

/** @returns the names of metrics in an expression of PromQL @throws for a faulty one */
function metricsIn(expression: string): string[] {
  const found: string[] = [];
  parser.parse(expression).iterate({
    enter({ name, from, to, type }) {
      if (type.isError) throw new Error(`not PromQL at ${from}: ${expression}`);
      if (name === "VectorSelector") {
        found.push(/^[\w:]+/.exec(expression.slice(from, to))?.[0] ?? "");
      }
    },
  });
  return found;
}

const expressions: readonly (readonly [string, string])[] = [
  ...rules.map(({ alert, expr }) => [`the alarm ${alert}`, expr] as const),
  ...operations.panels.flatMap(({ title, targets }) =>
    targets.map(({ expr }) => [`the panel ${title}`, expr] as const),
  ),
];

test.each(expressions)("%s asks for metrics that exist, in PromQL", async (_, expr) => {
  const names = metricsIn(expr);
  expect(names.length).toBeGreaterThan(0);
  const known = await metricNames();
  expect(names.filter((name) => !known.has(name) && !FOREIGN.has(name))).toEqual([]);
});

test("a metric that does not exist, or an expression that is none, would be noticed", async () => {
  expect(metricsIn("rate(waybill_no_such_total[5m])")).toEqual(["waybill_no_such_total"]);
  expect((await metricNames()).has("waybill_no_such_total")).toBe(false);
  expect(() => metricsIn("rate(waybill_events_total[5m]")).toThrow("not PromQL");
});

test("every metric of ours is described, and named after its unit", async () => {
  for (const { name, help, type } of await registry.getMetricsAsJSON()) {
    expect(name).toMatch(/^waybill_[a-z0-9_]+$/);
    expect(help.length).toBeGreaterThan(10);
    if (String(type) === "counter") expect(name).toEndWith("_total");
  }
});

test("the guide lists every alarm with its severity, and each alarm points to a section of the guide", () => {
  const [, table = ""] = guide.split("## Alarms");
  const listed = [...table.matchAll(/^\| `(Waybill\w+)` \| (\w+) \|/gm)].map(([, ...row]) => row);
  expect(listed).toEqual(rules.map(({ alert, labels }) => [alert, labels["severity"] ?? ""]));
  for (const { annotations } of rules) {
    const [page = "", anchor = ""] = annotations["runbook_url"]?.split("#") ?? [];
    expect([page, headingsOf(readFileSync(page, "utf8")).includes(anchor)]).toEqual([page, true]);
    expect(annotations["description"]).toMatch(/\.$/);
  }
});

test("an alarm of the panel is as grave as the rule about the same, and the guide lists it", () => {
  for (const [kind, { rule, severity }] of Object.entries(ALARMS)) {
    expect(guide).toContain(`| \`${kind}\` | ${severity} |`);
    if (rule === null) continue;
    const found = rules.find(({ alert }) => alert === rule);
    expect([kind, found?.labels["severity"]]).toEqual([kind, severity]);
  }
});

function headingsOf(text: string): string[] {
  return [...text.matchAll(/^## (.+)$/gm)].map(([, heading = ""]) =>
    heading
      .toLowerCase()
      .replaceAll(" ", "-")
      .replace(/[^\w-]/g, ""),
  );
}

/** The aggregations of an expression that lose one of these labels; a plain one loses all. */
function losing(labels: readonly string[], expression: string): string[] {
  const found: string[] = [];
  parser.parse(expression).iterate({
    enter({ name, node, from, to }) {
      if (name !== "AggregateExpr") return;
      const modifier = node.getChild("AggregateModifier");
      const text = modifier ? expression.slice(modifier.from, modifier.to) : "by ()";
      const named = labels.filter((label) => new RegExp(`\\b${label}\\b`).test(text));
      const isKept = text.startsWith("without")
        ? named.length === 0
        : named.length === labels.length;
      if (!isKept) found.push(expression.slice(from, to));
    },
  });
  return found;
}

describe("while a store is away", () => {
  interface Inhibition {
    readonly source_matchers: string[];
    readonly target_matchers: string[];
    readonly equal: string[];
  }

  const readInhibitions = async () =>
    (
      Bun.YAML.parse(await Bun.file("deploy/prometheus/alertmanager.yaml").text()) as {
        inhibit_rules: Inhibition[];
      }
    ).inhibit_rules;

  /** Metrics that an outage changes or leaves standing: an alarm that reads one may fire. */
  const OUTAGES = {
    redis: [
      // Steps and requests fail, and are slow until they do.
      'waybill_store_failures_total{store="redis"}',
      "waybill_http_request_seconds_count",
      "waybill_http_request_seconds_bucket",
      // Entries age. None is added, so that the number of entries stays.
      "waybill_group_lag_seconds",
      // The last reading is repeated, however it was.
      "waybill_ledger",
      "waybill_replicas_missing",
      // Nothing can be exported or archived.
      'waybill_store_failures_total{store="export"}',
      "waybill_export_finished_timestamp_seconds",
      "waybill_archive_finished_timestamp_seconds",
    ],
    clickhouse: [
      'waybill_store_failures_total{store="clickhouse"}',
      // Questions are answered 503.
      "waybill_http_request_seconds_count",
      "waybill_http_request_seconds_bucket",
      "waybill_benchmark_failures_total",
      // The logs of what analytics write fill.
      "waybill_group_lag_seconds",
      "waybill_group_lag_entries",
      "waybill_attempt_log",
      'waybill_store_failures_total{store="export"}',
      "waybill_export_finished_timestamp_seconds",
      "waybill_archive_finished_timestamp_seconds",
    ],
  } as const;

  /** Critical alarms that no outage of a store raises, and why. */
  const INDEPENDENT: Readonly<Record<string, string>> = {
    WaybillDown: "a process answers /healthz and /metrics without a store",
    WaybillDeadLettersAtLimit: "an unavailable store makes no dead letters",
  };

  const isAffected = ({ expr }: Rule, metrics: readonly string[]) =>
    metricsIn(expr).some((metric) =>
      metrics.includes(`${metric}${/\{store="\w+"\}/.exec(expr)?.[0] ?? ""}`),
    );

  /** Its labels for what the store is needed for: a condition of a template holds for ClickHouse's readers and writers alone. */
  const labelsOf = ({ alert, labels }: Rule, store: keyof typeof OUTAGES) => {
    const text = (value: string) =>
      value.replace(/\{\{ if .*?\}\}(.*?)\{\{ end \}\}/g, store === "clickhouse" ? "$1" : "");
    const rendered = Object.entries(labels).map(([name, value]) => [name, text(value)] as const);
    return { ...Object.fromEntries(rendered), alertname: alert } as Record<string, string>;
  };

  /** As Alertmanager reads a matcher: an expression has to match the whole value. */
  function doesMatch(matchers: readonly string[], labels: Readonly<Record<string, string>>) {
    return matchers.every((matcher) => {
      const [, name = "", operator, value = ""] = /^(\w+) (=~?) "(.*)"$/.exec(matcher) ?? [];
      const label = labels[name] ?? "";
      return operator === "=" ? label === value : new RegExp(`^(?:${value})$`).test(label);
    });
  }

  test.each(["redis", "clickhouse"] as const)(
    "an outage of %s raises one critical alarm that is not held back",
    async (store) => {
      const inhibitions = await readInhibitions();
      const firing = rules
        .filter((rule) => isAffected(rule, OUTAGES[store]))
        .map((rule) => labelsOf(rule, store));
      const critical = firing.filter(({ severity }) => severity === "critical");
      expect(critical.length).toBeGreaterThan(1);
      const free = firing.filter(
        (target) =>
          !inhibitions.some(
            ({ source_matchers, target_matchers }) =>
              doesMatch(target_matchers, target) &&
              firing.some((source) => source !== target && doesMatch(source_matchers, source)),
          ),
      );
      const root = store === "redis" ? "WaybillRedisUnavailable" : "WaybillClickhouseUnavailable";
      expect(free.map(({ alertname }) => alertname)).toEqual([root]);
    },
  );

  test("every critical alarm is an outage, depends on one, or is independent of all", () => {
    const others = rules
      .filter(({ labels }) => labels["severity"] === "critical")
      .filter(({ labels }) => !labels["cause"] && !labels["depends_on"])
      .map(({ alert }) => alert);
    expect(others).toEqual(Object.keys(INDEPENDENT));
    for (const { expr } of rules.filter(({ alert }) => INDEPENDENT[alert])) {
      const metrics = [...OUTAGES.redis, ...OUTAGES.clickhouse] as readonly string[];
      expect(metricsIn(expr).filter((metric) => metrics.includes(metric))).toEqual([]);
    }
  });

  test("an alarm is held back in its own installation alone: all keep the labels that tell installations apart", async () => {
    const own = ["job", "namespace", "release"];
    for (const { equal } of await readInhibitions()) expect(equal).toEqual(own);
    for (const { alert, expr } of rules) expect([alert, losing(own, expr)]).toEqual([alert, []]);
    expect(losing(own, "max(up)")).toEqual(["max(up)"]);
    expect(losing(own, "max without (job) (up)")).toEqual(["max without (job) (up)"]);
  });

  test("an outage is reported until the alarms over the minutes before its end have cleared", () => {
    for (const { labels, keep_firing_for } of rules.filter((rule) => rule.labels["cause"])) {
      expect([labels["cause"], keep_firing_for]).toEqual([labels["cause"], "15m"]);
    }
  });
});

interface Provocation {
  readonly at: number;
  readonly step: string;
  readonly series: Record<string, string>;
}

/**
 * What makes each alarm fire, and what follows: the step at which it fires (55 later it does not), how long a step is, and its series,
 * a sample a step (`a+bxn`: n further ones, each b more). The clock of these tests begins at 0.
 */
const PROVOKED = readProvocations(`
WaybillDown 10 1m
  up{job="waybill",role="api"} 1x4 0x10 1x60
WaybillRedisUnavailable 12 1m
  waybill_store_failures_total{part="webhooks",store="redis"} 0x4 1+5x10 51x60
  waybill_store_failures_total{part="track",store="redis"} 0x4 1+5x10 51x60
WaybillClickhouseUnavailable 12 1m
  waybill_store_failures_total{part="analytics",store="clickhouse"} 0x4 1+5x10 51x60
WaybillExportUnavailable 12 1m
  waybill_store_failures_total{part="export",store="export"} 0x4 1+5x10 51x60
WaybillReplicasMissing 8 1m
  waybill_replicas_missing 0x4 1x10 0x60
WaybillInternalErrors 8 1m
  waybill_internal_errors_total{part="imports"} _x5 1x60
WaybillDeadLetters 8 1m
  waybill_dead_letters_total{group="track"} 0x5 1x60
WaybillDeadLettersAtLimit 8 1m
  waybill_dead_letters_at_limit_total{group="track"} _x5 1x60
WaybillLag 15 1m
  waybill_group_lag_seconds{log="change",group="analytics"} 0x3 0+60x15 0x60
WaybillLogFilling 10 1m
  waybill_group_lag_entries{log="event",group="track"} 0x3 500001x10 500000x60
WaybillAuditFilling 12 1m
  waybill_group_lag_entries{log="audit",group="audit"} 2500x5 2501x10 2500x60
WaybillLedgerDifference 35 1m
  waybill_ledger{entry="received"} 100x70
  waybill_ledger{entry="accepted"} 89x40 90x40
  waybill_ledger{entry="duplicate"} 5x70
  waybill_ledger{entry="unknown"} 3x70
  waybill_ledger{entry="invalid"} 2x70
WaybillServerErrors 18 1m
  waybill_http_request_seconds_count{role="api",status="2xx"} 0+100x80
  waybill_http_request_seconds_count{role="api",status="5xx"} 0+10x20 200x60
WaybillSlow 25 1m
  waybill_http_request_seconds_bucket{role="api",le="1"} 0+90x30 2700+100x60
  waybill_http_request_seconds_bucket{role="api",le="5"} 0+100x30 3000+100x60
  waybill_http_request_seconds_bucket{role="api",le="+Inf"} 0+100x30 3000+100x60
WaybillInvalidEvents 33 1m
  waybill_events_total{courier="GLS_ITA",outcome="ACCEPTED"} 0+80x90
  waybill_events_total{courier="GLS_ITA",outcome="INVALID"} 0+20x35 700x60
WaybillWebhooksFailing 33 1m
  waybill_webhook_attempts_total{outcome="delivered"} 0+10x90
  waybill_webhook_attempts_total{outcome="retry"} 0+20x35 700x60
WaybillAlertMailsFailing 8 1m
  waybill_webhook_alert_mails_total{outcome="failed"} _x5 1x60
WaybillAttemptsDropped 20 1m
  waybill_attempt_log{entry="dropped"} 0x15 7x60
WaybillEventsNotSetAside 8 1m
  waybill_events_not_set_aside_total{courier="BRT_ITA"} _x5 3x60
WaybillBenchmarksFailing 14 1m
  waybill_benchmark_failures_total{reason="TIMEOUT"} 0x5 0+1x10 10x60
WaybillExportOverdue 50 1h
  waybill_export_finished_timestamp_seconds 3600x55 378000x60
WaybillArchiveOverdue 30 1h
  waybill_archive_finished_timestamp_seconds 3600x35 270000x60
WaybillArchiveDamaged 8 1m
  waybill_archive_damaged_rows 0x5 2x10 0x60
WaybillOpenFiles 9 1m
  waybill_process_open_fds{role="ingest"} 81x10 10x60
  waybill_process_max_fds{role="ingest"} 100x70
`);

function readProvocations(text: string): Readonly<Record<string, Provocation>> {
  const all: Record<string, Provocation> = {};
  let last: Provocation | undefined;
  for (const line of text.trim().split("\n")) {
    const [first = "", ...rest] = line.trim().split(" ");
    if (line.startsWith(" ")) Object.assign(last?.series ?? {}, { [first]: rest.join(" ") });
    else last = all[first] = { at: Number(rest[0]), step: rest[1] ?? "", series: {} };
  }
  return all;
}

/** Its rules are checked by Prometheus' own tool where it is installed. */
const promtool = Bun.which("promtool");

describe.if(promtool !== null)("by Prometheus itself", () => {
  const made: string[] = [];

  afterAll(async () => {
    for (const folder of made) await rm(folder, { recursive: true, force: true });
  });

  async function run(...args: string[]) {
    const child = Bun.spawn([promtool ?? "", ...args], { stdout: "pipe", stderr: "pipe" });
    const [output, errors] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
    ]);
    return { status: await child.exited, text: output + errors };
  }

  /** It must be off, on when it is provoked, and off later. */
  async function runTests(alert: string) {
    const folder = await mkdtemp(join(tmpdir(), "waybill-alarms-"));
    made.push(folder);
    const { at = 0, series = {}, step = "1m" } = PROVOKED[alert] ?? {};
    const instants = [
      [1, 0],
      [at, 1],
      [at + 55, 0],
    ] as const;
    const provoked = {
      interval: step,
      input_series: Object.entries(series).map(([name, values]) => ({ series: name, values })),
      // How many are firing, whatever their labels.
      promql_expr_test: instants.map(([steps, count]) => ({
        expr: `count(ALERTS{alertname="${alert}",alertstate="firing"}) or vector(0)`,
        eval_time: `${steps}${step.slice(1)}`,
        exp_samples: [{ labels: "{}", value: count }],
      })),
    };
    const path = join(folder, "test.yaml");
    const file = {
      rule_files: [resolve(RULES_FILE)],
      evaluation_interval: step,
      tests: [provoked],
    };
    await Bun.write(path, JSON.stringify(file));
    return run("test", "rules", path);
  }

  test("rules and scrape configuration are valid", async () => {
    for (const args of [
      ["check", "rules", RULES_FILE],
      ["check", "config", "deploy/prometheus/prometheus.yaml"],
    ]) {
      expect(await run(...args)).toMatchObject({ status: 0 });
    }
  });

  test.each(rules.map(({ alert }) => alert))(
    "%s fires when it is provoked, and clears",
    async (alert) => {
      expect(PROVOKED[alert]).toBeDefined();
      const { status, text } = await runTests(alert);
      expect([status, status === 0 ? "" : text]).toEqual([0, ""]);
    },
  );
});
