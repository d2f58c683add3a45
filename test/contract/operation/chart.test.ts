/**
 * The Helm chart: rendered and linted by Helm itself, checked against the schemas of Kubernetes, KEDA, the Prometheus operator and the
 * Gateway API by packages from npm, and by kubeconform where it is installed. Tests that need what is not there are shown as skipped.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdir } from "node:fs/promises";
import { AlertmanagerConfig } from "@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1alpha1/AlertmanagerConfig";
import { parser } from "@prometheus-io/lezer-promql";
import { VARIABLES } from "#core/platform/environment/variables.ts";
import { STOP_LIMIT_MS } from "#core/platform/process/stop-limits.ts";
import { examplesIn } from "#test/support/documents.ts";
import {
  CHART,
  findHelm,
  type Manifest,
  manifestsIn,
  type Rendering,
  renderedText,
  runHelm,
} from "#test/support/helm.ts";
import { findKubeconform } from "#test/support/kubeconform.ts";
import { KINDS, unknownMembers, validate } from "#test/support/kubernetes-schemas.ts";
import { outcomeOf, startCommand } from "#test/support/product/command.ts";
import { startKubeApi } from "#test/support/servers/kube-api.ts";
import { readSchema, valuePaths, valuesTable } from "#tools/chart-values/values-table.ts";

const ROLES = ["analytics", "api", "ingest", "panel", "processors"];
const PORTS = { ingest: 8081, api: 8080, panel: 8082, processors: 8083, analytics: 8084 };
const EVERY_VALUE = `${CHART}/ci/every-value.yaml`;
const WITHOUT_A_METRICS_PORT = {
  config: { METRICS_PORT: null },
  setup: { existingSecret: "", existingConfigMap: "waybill-setup" },
  autoscaling: { query: "" },
  serviceAccount: { name: "" },
};
/** With the number of objects of each. */
const VALUE_SETS: readonly (readonly [string, Rendering, number])[] = [
  ["its defaults", {}, 21],
  ["every value", { files: [EVERY_VALUE] }, 32],
  ["every value but METRICS_PORT", { files: [EVERY_VALUE], values: WITHOUT_A_METRICS_PORT }, 32],
];

const IN_YAML = ["docs/operations/deploy.md", "docs/operations/monitoring.md"]
  .flatMap(examplesIn)
  .filter(({ language }) => language === "yaml")
  .map(({ code }) => Bun.YAML.parse(code) as Manifest);
/** The examples of the guide: values of the chart, and an object that it does not make. */
const EXAMPLES = IN_YAML.filter(({ kind }) => kind === undefined);
const ALERTING = IN_YAML.filter(({ kind }) => kind === "AlertmanagerConfig");

const helm = await findHelm();
/** Texts of renderings that were asked for before: the files do not change meanwhile, a cluster that is asked may. */
const texts = new Map<string, Promise<string>>();

function textOf(rendering: Rendering = {}): Promise<string> {
  const key = JSON.stringify(rendering);
  const known = texts.get(key) ?? renderedText(helm ?? "", rendering);
  if (rendering.flags === undefined) texts.set(key, known);
  return known;
}

const rendered = async (rendering: Rendering = {}) => manifestsIn(await textOf(rendering));
const ofKind = (all: readonly Manifest[], kind: string) => all.filter((one) => one.kind === kind);
const podOf = (all: readonly Manifest[], role: string) =>
  ofKind(all, "Deployment").find(({ metadata }) => metadata.name === `prod-${role}`).spec.template;

beforeAll(() => mkdir(".test", { recursive: true }).then(() => {}));

describe.skipIf(helm === null)("the chart", () => {
  test("conforms to the schemas of its objects with each set of values and with those of the operations guide", async () => {
    expect(EXAMPLES.length).toBe(1);
    const examples = EXAMPLES.map((values) => ({ values }));
    const renderings = [...VALUE_SETS.map(([, rendering]) => rendering), ...examples];
    const all = (await Promise.all(renderings.map(rendered))).flat();
    for (const manifest of all) expect(() => validate(manifest)).not.toThrow();
    // One run of the compiler: most of it is the reading of the types.
    expect(await unknownMembers(all)).toBe("");
    expect(new Set(all.map(({ kind }) => kind))).toEqual(new Set(Object.keys(KINDS)));
  });

  test("renders each name, text and number of the values that it is given", async () => {
    const leavesOf = (value: unknown): unknown[] =>
      typeof value === "object" && value !== null
        ? Object.values(value).flatMap(leavesOf)
        : [value];
    const given = Bun.YAML.parse(await Bun.file(EVERY_VALUE).text()) as Manifest;
    const leaves = leavesOf(given).filter((leaf) => typeof leaf !== "boolean" && leaf !== "");
    const made = new Set(leavesOf(await rendered({ files: [EVERY_VALUE] })).map(String));
    // Parts of a text that is made of them.
    for (const part of [given.setup.key, given.image.repository, given.image.tag]) made.add(part);
    expect(leaves.filter((leaf) => !made.has(String(leaf)))).toEqual([]);
  });

  test("is refused by those schemas where it is wrong", async () => {
    const [deployment] = ofKind(await rendered(), "Deployment");
    deployment.spec.template.spec.containers[0].readynessProbe = {};
    expect(await unknownMembers([deployment])).toContain(`'"readynessProbe"' does not exist`);
    deployment.spec.template.spec.containers[0].ports[0].containerPort = "a port";
    expect(() => validate(deployment)).toThrow();
  });

  test.each(VALUE_SETS)("passes helm lint --strict with %s", async (_, rendering) => {
    const { status, output } = await runHelm(helm ?? "", ["lint", "--strict", CHART], rendering);
    expect([status, output]).toEqual([0, expect.stringContaining("0 chart(s) failed")]);
  });

  test("runs each role with probes, without rights and with the secret from outside", async () => {
    const all = await rendered();
    const deployments = ofKind(all, "Deployment");
    expect(deployments.map(({ metadata }) => metadata.name).sort()).toEqual(
      ROLES.map((role) => `prod-${role}`),
    );
    for (const { spec } of deployments) {
      const pod = spec.template.spec;
      const [container] = pod.containers;
      expect(container.startupProbe.httpGet.path).toBe("/healthz");
      expect(container.livenessProbe.httpGet.path).toBe("/healthz");
      expect(container.readinessProbe.httpGet.path).toBe("/readyz");
      expect(container.envFrom).toContainEqual({ secretRef: { name: "waybill" } });
      expect(container.securityContext).toMatchObject({
        readOnlyRootFilesystem: true,
        allowPrivilegeEscalation: false,
        capabilities: { drop: ["ALL"] },
      });
      expect(pod).toMatchObject({
        automountServiceAccountToken: false,
        serviceAccountName: "default",
        securityContext: { runAsNonRoot: true, seccompProfile: { type: "RuntimeDefault" } },
      });
    }
    expect(ofKind(all, "Secret")).toEqual([]);
  });

  test("stops a pod after its Services and its balancers have let go of it, and kills none that still drains", async () => {
    for (const [values, seconds] of [
      [{}, 5],
      [{ drainSeconds: 30 }, 30],
    ] as const) {
      for (const { spec } of ofKind(await rendered({ values }), "Deployment")) {
        const { terminationGracePeriodSeconds, containers } = spec.template.spec;
        const [{ env, lifecycle }] = containers;
        expect(env).toContainEqual({ name: "DRAIN_SECONDS", value: String(seconds) });
        expect(lifecycle.preStop.exec.command).toEqual(["sleep", String(seconds)]);
        expect(terminationGracePeriodSeconds).toBe(seconds + seconds + STOP_LIMIT_MS / 1_000 + 5);
      }
    }
  });

  test("and the compose files wait for a stop as long as it may take", async () => {
    for (const path of ["compose.yaml", "compose.cluster.yaml"]) {
      const [, seconds] = /stop_grace_period: (\d+)s/.exec(await Bun.file(path).text()) ?? [];
      const drainMs = Number(VARIABLES.DRAIN_SECONDS.fallback) * 1_000;
      expect(Number(seconds) * 1_000).toBeGreaterThan(drainMs + STOP_LIMIT_MS);
    }
  });

  test("has a disruption budget, a service and a network policy that select each role", async () => {
    const all = await rendered();
    const labels = ofKind(all, "Deployment").map(({ spec }) => spec.selector.matchLabels);
    const policies = ofKind(all, "NetworkPolicy");
    const budgets = ofKind(all, "PodDisruptionBudget");
    expect(budgets.map(({ spec }) => spec.selector.matchLabels)).toEqual(labels);
    expect(ofKind(all, "Service").map(({ spec }) => spec.selector)).toEqual(labels);
    expect(policies.map(({ spec }) => spec.podSelector.matchLabels)).toEqual(labels);
  });

  test("no service of the namespace sets a variable of ours, such as API_PORT", async () => {
    const all = await rendered({ values: { setup: { existingSecret: "installation" } } });
    const pods = [...ofKind(all, "Deployment"), ...ofKind(all, "Job")];
    expect(pods.length).toBe(6);
    for (const { spec } of pods) expect(spec.template.spec.enableServiceLinks).toBe(false);
  });

  test("gives each role the port that it listens on, and tells it another one", async () => {
    const { roles } = Bun.YAML.parse(await Bun.file(`${CHART}/values.yaml`).text()) as Manifest;
    const found = Object.entries<Manifest>(roles).map(([role, { port }]) => [role, port]);
    expect(Object.fromEntries(found)).toEqual(PORTS);
    const all = await rendered({ values: { roles: { api: { port: 9000 } } } });
    const [container] = podOf(all, "api").spec.containers;
    expect(container.ports).toEqual([{ name: "http", containerPort: 9000 }]);
    expect(container.env).toContainEqual({ name: "API_PORT", value: "9000" });
  });

  test("takes the tag of the image as it is written, and the version of the chart without one", async () => {
    const imageOf = async (image: object) =>
      podOf(await rendered({ values: { image } }), "api").spec.containers[0].image;
    const { appVersion } = Bun.YAML.parse(await Bun.file(`${CHART}/Chart.yaml`).text()) as Manifest;
    expect(await imageOf({})).toBe(`waybill:${appVersion}`);
    expect(await imageOf({ tag: "1.2.3" })).toBe("waybill:1.2.3");
    expect(await imageOf({ tag: 20_261_127 })).toBe("waybill:20261127");
  });

  test("passes variables on as texts, however they are written", async () => {
    const config = { LOG_HIGH_WATER: 2_000_000, ARCHIVE_AFTER_DAYS: 0, OTEL_SDK_DISABLED: true };
    const [{ data }] = ofKind(await rendered({ values: { config } }), "ConfigMap");
    expect(data).toEqual({
      PUBLIC_URL: "https://waybill.example",
      LOG_LEVEL: "info",
      LOG_HIGH_WATER: "2000000",
      ARCHIVE_AFTER_DAYS: "0",
      OTEL_SDK_DISABLED: "true",
    });
  });

  test("refuses a value that it does not know, or that cannot be", async () => {
    for (const [values, told] of [
      [{ replicas: 3 }, "replicas"],
      [{ roles: { api: { replica: 3 } } }, "replica"],
      [{ roles: { processors: { ingress: {} } } }, "ingress"],
      [{ config: { log_level: "info" } }, "log_level"],
      [{ roles: { api: { port: 70_000 } } }, "65,535"],
      [{ roles: { api: { ingress: { enabled: true } } } }, "hosts"],
      [{ setup: { existingSecret: "a", existingConfigMap: "b" } }, "set one of them"],
    ] as const) {
      await expect(renderedText(helm ?? "", { values })).rejects.toThrow(told);
    }
  });
});

describe.skipIf(helm === null)("a changed value restarts what was started with it", () => {
  const SECRET = "/api/v1/namespaces/default/secrets/waybill";
  const MAIL = "/api/v1/namespaces/default/secrets/mail";
  const sums = async (rendering: Rendering, role: string) =>
    podOf(await rendered(rendering), role).metadata.annotations;
  const secret = (value: string) => ({ kind: "Secret", apiVersion: "v1", data: { value } });
  const objects = new Map<string, object>();
  let kubernetes: ReturnType<typeof startKubeApi>;

  beforeAll(() => {
    kubernetes = startKubeApi(objects);
  });
  afterAll(() => kubernetes.stop());

  test("in the variables: every pod", async () => {
    const before = await sums({}, "api");
    expect(await sums({}, "api")).toEqual(before);
    const after = await sums({ values: { config: { LOG_LEVEL: "warn" } } }, "api");
    expect(after["checksum/config"]).not.toBe(before["checksum/config"]);
  });

  test("in the secret: every pod; in one that a role alone names: its pods", async () => {
    const extraEnvFrom = [{ secretRef: { name: "mail" } }];
    const { flags } = kubernetes;
    const rendering = { flags, values: { roles: { processors: { extraEnvFrom } } } };
    const both = async () => [await sums(rendering, "processors"), await sums(rendering, "api")];
    objects.set(SECRET, secret("MQ==")).set(MAIL, secret("MQ=="));
    const first = await both();
    objects.set(MAIL, secret("Mg=="));
    const second = await both();
    expect([second[0] === first[0], second[1]]).toEqual([false, first[1]]);
    expect(second[0]).not.toEqual(first[0]);
    objects.set(SECRET, secret("Mg=="));
    const third = await both();
    expect(third[0]).not.toEqual(second[0]);
    expect(third[1]).not.toEqual(second[1]);
    expect(JSON.stringify(third)).not.toContain("Mg==");
  });
});

describe.skipIf(helm === null)("what is added to pods", () => {
  test("reaches every role and the setup, and what a role adds reaches that role", async () => {
    const all = await rendered({ files: [EVERY_VALUE] });
    const [job] = ofKind(all, "Job");
    for (const pod of [...ROLES.map((role) => podOf(all, role)), job.spec.template]) {
      expect(pod.metadata.annotations["example.com/all"]).toBe("yes");
      const [container] = pod.spec.containers;
      expect(container.image).toBe("registry.example/waybill:1.2.3");
      expect(container.env).toContainEqual({ name: "NODE_EXTRA_CA_CERTS", value: "/tls/ca.crt" });
      expect(container.envFrom).toContainEqual({ secretRef: { name: "mail" } });
      expect(container.volumeMounts).toContainEqual(
        expect.objectContaining({ name: "tls", mountPath: "/tls" }),
      );
      expect(pod.spec.volumes).toContainEqual({ name: "tls", secret: { secretName: "roots" } });
      expect(pod.spec).toMatchObject({
        imagePullSecrets: [{ name: "registry" }],
        serviceAccountName: "waybill-workload",
      });
    }
    for (const [role, answer] of [
      ["api", "yes"],
      ["processors", "no"],
    ] as const) {
      const { metadata, spec } = podOf(all, role);
      expect(metadata.annotations["example.com/role"]).toBe(answer);
      expect(metadata.labels).toMatchObject({
        "example.com/all": "yes",
        "example.com/role": answer,
        "app.kubernetes.io/component": role,
      });
      expect(spec.volumes.map(({ name }: Manifest) => name)).toContain("of-the-role");
    }
  });

  test("a role's placement replaces that of all, and pods spread over hosts without one", async () => {
    const given = Bun.YAML.parse(await Bun.file(EVERY_VALUE).text()) as Manifest;
    const own = await rendered({ files: [EVERY_VALUE] });
    const { nodeSelector, tolerations, affinity } = given;
    const ofAll = await rendered({ values: { nodeSelector, tolerations, affinity } });
    for (const role of ROLES) {
      for (const name of ["nodeSelector", "tolerations", "affinity"]) {
        expect(podOf(own, role).spec[name]).toEqual(given.roles[role][name]);
        expect(podOf(ofAll, role).spec[name]).toEqual(given[name]);
      }
    }
    const spread = async (rendering: Rendering, role: string) => {
      const [constraint] = podOf(await rendered(rendering), role).spec.topologySpreadConstraints;
      return [constraint.topologyKey, constraint.labelSelector.matchLabels];
    };
    const ofApi = { "app.kubernetes.io/instance": "prod", "app.kubernetes.io/component": "api" };
    expect(await spread({}, "api")).toEqual(["kubernetes.io/hostname", ofApi]);
    const everything = { files: [EVERY_VALUE] };
    expect(await spread(everything, "api")).toEqual([
      "example.com/rack",
      { "example.com/role": "yes" },
    ]);
    const topologySpreadConstraints = [
      { maxSkew: 1, topologyKey: "zone", whenUnsatisfiable: "DoNotSchedule" },
    ];
    expect(await spread({ values: { topologySpreadConstraints } }, "api")).toEqual(["zone", ofApi]);
  });

  test("ingest with a certificate of its own is asked for its health over HTTPS, the others are not", async () => {
    const config = { INGEST_TLS_CERT_FILE: "/tls/tls.crt" };
    const all = await rendered({ values: { config, podMonitor: { enabled: true } } });
    for (const role of ROLES) {
      const [{ startupProbe, livenessProbe, readinessProbe }] = podOf(all, role).spec.containers;
      const schemes = [startupProbe, livenessProbe, readinessProbe].map(
        ({ httpGet }: Manifest) => httpGet.scheme,
      );
      expect([role, new Set(schemes)]).toEqual([
        role,
        new Set([role === "ingest" ? "HTTPS" : "HTTP"]),
      ]);
    }
    const [{ spec }] = ofKind(all, "PodMonitor");
    expect(spec.podMetricsEndpoints[0].relabelings).toContainEqual(
      expect.objectContaining({ regex: "ingest", targetLabel: "__scheme__", replacement: "https" }),
    );
  });
});

describe.skipIf(helm === null)("the routes", () => {
  test("an Ingress and an HTTPRoute lead to the service of their role", async () => {
    const all = await rendered({ files: [EVERY_VALUE] });
    const services = ofKind(all, "Service");
    for (const role of ["ingest", "api", "panel"]) {
      const named = ({ metadata }: Manifest) => metadata.name === `prod-${role}`;
      const [port] = services.find(named).spec.ports;
      const [rule] = ofKind(all, "Ingress").find(named).spec.rules;
      expect(rule.http.paths[0].backend.service).toEqual({
        name: `prod-${role}`,
        port: { name: port.name },
      });
      const [{ backendRefs }] = ofKind(all, "HTTPRoute").find(named).spec.rules;
      expect(backendRefs).toEqual([{ name: `prod-${role}`, port: port.port }]);
    }
    expect(ofKind(await rendered(), "Ingress")).toEqual([]);
    expect(ofKind(await rendered(), "HTTPRoute")).toEqual([]);
  });

  const from = [{ namespaceSelector: { matchLabels: { name: "ingress" } } }];
  const metricsFrom = [{ namespaceSelector: { matchLabels: { name: "monitoring" } } }];
  const rulesOf = async (role: string, values: Readonly<Record<string, unknown>>) => {
    const policies = ofKind(await rendered({ values }), "NetworkPolicy");
    const policy = policies.find(({ metadata }) => metadata.name === `prod-${role}`);
    return policy.spec.ingress.map((rule: Manifest) => [rule.ports[0].port, rule.from]);
  };
  const namespace = [{ podSelector: {} }];

  test("let the peers of networkPolicy in, and everybody where there are none", async () => {
    expect(await rulesOf("api", {})).toEqual([["http", undefined]]);
    expect(await rulesOf("processors", {})).toEqual([["http", namespace]]);
    const values = { networkPolicy: { from, metricsFrom } };
    // Metrics are on the same port.
    expect(await rulesOf("api", values)).toEqual([["http", [...from, ...metricsFrom]]]);
    expect(await rulesOf("processors", values)).toEqual([["http", metricsFrom]]);
  });

  test("METRICS_PORT is a port of every pod, which those who scrape may reach", async () => {
    const config = { METRICS_PORT: 9464 };
    expect(await rulesOf("api", { config })).toEqual([
      ["http", undefined],
      ["metrics", namespace],
    ]);
    const values = { config, networkPolicy: { from, metricsFrom }, podMonitor: { enabled: true } };
    expect(await rulesOf("api", values)).toEqual([
      ["http", from],
      ["metrics", metricsFrom],
    ]);
    const all = await rendered({ values });
    for (const role of ROLES) {
      const [{ ports }] = podOf(all, role).spec.containers;
      expect(ports).toContainEqual({ name: "metrics", containerPort: 9464 });
    }
    const [{ spec }] = ofKind(all, "PodMonitor");
    expect(spec.podMetricsEndpoints.map(({ port }: Manifest) => port)).toEqual(["metrics"]);
  });
});

test("the AlertmanagerConfig of the guide is valid, and holds back what alertmanager.yaml does", async () => {
  const text = await Bun.file("deploy/prometheus/alertmanager.yaml").text();
  const { inhibit_rules: inhibitions, route } = Bun.YAML.parse(text) as Manifest;
  expect(ALERTING.length).toBe(1);
  const [{ spec }] = ALERTING as [Manifest];
  expect(() => new AlertmanagerConfig(ALERTING[0]).validate()).not.toThrow();
  expect(spec.route.groupBy).toEqual(route.group_by);
  const written = (matchers: Manifest[]) =>
    matchers.map(({ name, matchType, value }) => `${name} ${matchType} "${value}"`);
  expect(
    spec.inhibitRules.map(({ sourceMatch, targetMatch, equal }: Manifest) => ({
      source_matchers: written(sourceMatch),
      target_matchers: written(targetMatch),
      equal,
    })),
  ).toEqual(inhibitions);
});

/** The matchers of every series that an expression of PromQL asks for. */
function matchersIn(expression: string): string[][] {
  const found: string[][] = [];
  parser.parse(expression).iterate({
    enter({ name, from, to, type }) {
      if (type.isError) throw new Error(`not PromQL at ${from}: ${expression}`);
      if (name === "VectorSelector") found.push([]);
      if (name === "UnquotedLabelMatcher") found.at(-1)?.push(expression.slice(from, to));
    },
  });
  return found;
}

describe.skipIf(helm === null)("two releases beside each other", () => {
  const MONITORED = {
    podMonitor: { enabled: true },
    prometheusRule: { enabled: true },
    autoscaling: { enabled: true },
  };
  const releases = [
    { release: "prod", namespace: "shop" },
    { release: "test", namespace: "shop" },
    { release: "prod", namespace: "lab" },
  ];
  const ownMatchers = ({ release, namespace }: (typeof releases)[number]) => [
    `namespace="${namespace}"`,
    `release="${release}"`,
  ];

  test("KEDA scales each by its own lag, and the chart then sets no replicas", async () => {
    const metrics = await Bun.file("core/platform/process/metrics.ts").text();
    for (const rendering of releases) {
      const all = await rendered({ ...rendering, values: MONITORED });
      const [{ spec }] = ofKind(all, "ScaledObject");
      const [target] = ofKind(all, "Deployment").filter((one) => one.spec.replicas === undefined);
      expect(spec.scaleTargetRef.name).toBe(target.metadata.name);
      const { query } = spec.triggers[0].metadata;
      expect(matchersIn(query)).toEqual([[...ownMatchers(rendering), 'group=~"track|webhooks"']]);
      expect(metrics).toContain(`name: "${/waybill_\w+/.exec(query)?.[0]}"`);
    }
    expect(ofKind(await rendered(), "ScaledObject")).toEqual([]);
  });

  test("each has the alarms of the guide, for its own series alone", async () => {
    const { groups } = Bun.YAML.parse(
      await Bun.file("deploy/prometheus/rules.yaml").text(),
    ) as Manifest;
    for (const rendering of releases) {
      const [{ spec }] = ofKind(
        await rendered({ ...rendering, values: MONITORED }),
        "PrometheusRule",
      );
      const own = ownMatchers(rendering);
      for (const [at, rule] of spec.groups[0].rules.entries()) {
        const source = groups[0].rules[at];
        const { release, namespace } = rendering;
        expect(rule).toEqual({
          ...source,
          expr: rule.expr,
          labels: { ...source.labels, release, namespace },
        });
        const expected = matchersIn(source.expr).map((matchers) => [...own, ...matchers]);
        expect([rule.alert, matchersIn(rule.expr)]).toEqual([rule.alert, expected]);
      }
      expect(spec.groups[0].rules.length).toBe(groups[0].rules.length);
    }
  });

  test("the PodMonitor attaches the labels by which they are told apart, to no other pods", async () => {
    const [{ spec }] = ofKind(await rendered({ values: MONITORED }), "PodMonitor");
    const { labels } = podOf(await rendered(), "api").metadata;
    expect(labels[spec.jobLabel]).toBe("waybill");
    const attached = spec.podMetricsEndpoints[0].relabelings.map(
      ({ sourceLabels: [from], targetLabel }: Manifest) => [targetLabel, from],
    );
    expect(attached).toEqual([
      ["role", "__meta_kubernetes_pod_label_app_kubernetes_io_component"],
      ["release", "__meta_kubernetes_pod_label_app_kubernetes_io_instance"],
    ]);
    expect(spec.selector).toEqual({
      matchLabels: { "app.kubernetes.io/instance": "prod" },
      matchExpressions: [
        {
          key: "app.kubernetes.io/component",
          operator: "In",
          values: ["analytics", "api", "ingest", "panel", "processors"],
        },
      ],
    });
  });

  test("no selector of one meets a pod of the other", async () => {
    const [one = [], other = []] = await Promise.all(
      releases.slice(0, 2).map((rendering) => rendered(rendering)),
    );
    const selectors = one.flatMap(({ kind, spec }) => {
      if (kind === "Service") return [spec.selector];
      if (kind === "NetworkPolicy") return [spec.podSelector.matchLabels];
      return spec?.selector ? [spec.selector.matchLabels] : [];
    });
    expect(selectors.length).toBe(20);
    const meets = (selector: object, labels: Readonly<Record<string, string>>) =>
      Object.entries(selector).every(([name, value]) => labels[name] === value);
    for (const selector of selectors) {
      const met = [one, other].map(
        (all) =>
          ROLES.filter((role) => {
            const { labels } = ofKind(all, "Deployment").find(({ metadata }) =>
              metadata.name.endsWith(`-${role}`),
            ).spec.template.metadata;
            return meets(selector, labels);
          }).length,
      );
      expect(met).toEqual([1, 0]);
    }
  });
});

describe.skipIf(helm === null)("the setup", () => {
  test.each([
    [{ existingSecret: "installation" }, { secret: { secretName: "installation" } }],
    [{ existingConfigMap: "installation" }, { configMap: { name: "installation" } }],
  ])(
    "of %j is applied by the image's own command after each install and upgrade",
    async (setup, volume) => {
      const [job] = ofKind(await rendered({ values: { setup } }), "Job");
      expect(job.metadata.annotations).toEqual({
        "helm.sh/hook": "post-install,post-upgrade",
        // A job cannot be changed: the one before goes first, and its log stays until then.
        "helm.sh/hook-delete-policy": "before-hook-creation",
      });
      const { volumes, containers } = job.spec.template.spec;
      expect(volumes).toContainEqual({ name: "setup", ...volume });
      const [{ args, volumeMounts, envFrom }] = containers;
      const [command, file] = args;
      expect([await Bun.file(command).exists(), file]).toEqual([true, "/setup/setup.json"]);
      expect(volumeMounts).toContainEqual({ name: "setup", mountPath: "/setup", readOnly: true });
      expect(envFrom).toContainEqual({ secretRef: { name: "waybill" } });
    },
  );

  test("is no job without a file", async () => {
    expect(ofKind(await rendered(), "Job")).toEqual([]);
  });
});

describe.skipIf(helm === null)("the notes after an install", () => {
  const notesOf = async (values: Readonly<Record<string, unknown>>) => {
    const command = ["install", "prod", CHART, "--dry-run=client"];
    const { output } = await runHelm(helm ?? "", command, { namespace: "shop", values });
    return output.slice(output.indexOf("NOTES:"));
  };

  test("name what is still missing", async () => {
    const api = { ingress: { enabled: true, hosts: ["api.example"] } };
    const setup = { existingSecret: "installation" };
    const notes = await notesOf({ roles: { api }, autoscaling: { enabled: true }, setup });
    expect(notes).toContain('the secret "waybill"');
    expect(notes).toContain("/metrics can be reached from outside");
    expect(notes).toContain('labels namespace="shop",release="prod". Enable podMonitor');
    expect(notes).toContain("Set config.PUBLIC_URL");
    expect(notes).toContain("logs job/prod-setup");
  });

  test("name nothing that is there", async () => {
    const roles = { panel: { httpRoute: { enabled: true, parentRefs: [{ name: "public" }] } } };
    const config = { PUBLIC_URL: "https://panel.shop.example", METRICS_PORT: 9464 };
    const notes = await notesOf({ roles, config, podMonitor: { enabled: true } });
    expect(notes).toContain("Waybill");
    expect(notes).not.toMatch(/metrics can|Enable podMonitor|Set config|port-forward|prod-setup/);
  });
});

describe("the documents", () => {
  test("the operations guide has the table of all values that `npm run tool -- chart-values` prints", async () => {
    const guide = await Bun.file("docs/operations/deploy.md").text();
    const table = await valuesTable();
    // Other tables have these columns among theirs.
    const from = guide.indexOf(`\n${table.slice(0, table.indexOf("\n"))}`) + 1;
    expect(guide.slice(from, guide.indexOf("\n\n", from) + 1)).toBe(table);
  });

  test("every value is described, has a default or belongs to a role, and is set where every value is", async () => {
    const schema = await readSchema();
    const parsed = async (path: string) => Bun.YAML.parse(await Bun.file(path).text()) as Manifest;
    const [defaults, everything] = [
      await parsed(`${CHART}/values.yaml`),
      await parsed(EVERY_VALUE),
    ];
    const at = (values: Manifest, path: string) =>
      path.split(".").reduce((found, name) => found?.[name], values);
    for (const { path, description } of valuePaths(schema)) {
      expect([path, description]).toEqual([path, expect.stringMatching(/\.$/)]);
      expect([path, at(everything, path) === undefined]).toEqual([path, false]);
      const isOptional = path.startsWith("roles.") || path.startsWith("podMonitor.tokenSecret.");
      expect([path, isOptional || at(defaults, path) !== undefined]).toEqual([path, true]);
    }
  });

  test("a role's memory limit is at least half as much again as the guide says that it needs", async () => {
    const guide = await Bun.file("docs/operations/redis.md").text();
    const [, ingest, others] =
      /(\d+) MB for ingest, and (\d+) MB each for processors and analytics/.exec(
        guide.replaceAll("\n", " "),
      ) ?? [];
    const { roles } = Bun.YAML.parse(await Bun.file(`${CHART}/values.yaml`).text()) as Manifest;
    const limitOf = (role: string) => {
      const [, amount, unit] = /^(\d+)(Mi|Gi)$/.exec(roles[role].resources.limits.memory) ?? [];
      return (Number(amount) * 1024 ** (unit === "Gi" ? 3 : 2)) / 1e6;
    };
    expect(limitOf("ingest")).toBeGreaterThan(1.5 * Number(ingest));
    for (const role of ["processors", "analytics"]) {
      expect(limitOf(role)).toBeGreaterThan(1.5 * Number(others));
    }
  });
});

const kubeconform = await findKubeconform([
  ...["apps.v1.Deployment", "batch.v1.Job", "core.v1.ConfigMap", "core.v1.Service"],
  ...["core.v1.ServiceAccount", "networking.v1.Ingress", "networking.v1.NetworkPolicy"],
  "policy.v1.PodDisruptionBudget",
]);
/** Their schemas come with the packages from npm, above. */
const CUSTOM = ["HTTPRoute", "PodMonitor", "PrometheusRule", "ScaledObject"];

describe.skipIf(helm === null || kubeconform === null)("by kubeconform", () => {
  const check = (text: string) =>
    outcomeOf(
      startCommand(
        [
          ...[kubeconform?.program ?? "", "-strict", "-summary", "-skip", CUSTOM.join(",")],
          ...["-schema-location", `${kubeconform?.schemas}/{{ .ResourceKind }}.json`, "-"],
        ],
        {},
        { input: text },
      ),
    );

  test.each(VALUE_SETS)("the chart is valid with %s", async (_, rendering, objects) => {
    const { output, status } = await check(await textOf(rendering));
    const [, valid, skipped] = /Valid: (\d+), Invalid: 0, Errors: 0, Skipped: (\d+)/.exec(
      output,
    ) ?? [output];
    expect([status, Number(valid) + Number(skipped)]).toEqual([0, objects]);
  });

  test("a member that Kubernetes does not know is refused", async () => {
    const [deployment] = ofKind(await rendered(), "Deployment");
    deployment.spec.template.spec.containers[0].readynessProbe = {};
    const { output, status } = await check(JSON.stringify(deployment));
    expect([status, output]).toEqual([1, expect.stringContaining("readynessProbe")]);
  });
});
