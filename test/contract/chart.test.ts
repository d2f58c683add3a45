/**
 * The Helm chart, rendered and checked against the schemas of Kubernetes and KEDA: by packages from npm everywhere, and by Helm and
 * kubeconform where they are to be had. The tests that these skip are shown as skipped.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ScaledObject } from "@kubernetes-models/keda/keda.sh/v1alpha1";
import { Deployment } from "kubernetes-models/apps/v1";
import { NetworkPolicy } from "kubernetes-models/networking.k8s.io/v1";
import { PodDisruptionBudget } from "kubernetes-models/policy/v1";
import { ConfigMap, Service } from "kubernetes-models/v1";
import { documentsOf, renderChart } from "#test/support/chart.ts";
import { chartTools } from "#test/support/chart-tools.ts";
import { outcomeOf, startCommand } from "#test/support/command.ts";

const CHART = "deploy/helm/waybill";
const ROLES = ["analytics", "api", "ingest", "panel", "processors"];
const KINDS = {
  ConfigMap,
  Deployment,
  NetworkPolicy,
  PodDisruptionBudget,
  ScaledObject,
  Service,
} as const;
const CHANGES = {
  "autoscaling.enabled": true,
  "networkPolicy.from": [{ namespaceSelector: { matchLabels: { name: "ingress" } } }],
} as const;

// biome-ignore lint/suspicious/noExplicitAny: whatever the templates make
type Manifest = any;

async function render(changes: Readonly<Record<string, unknown>> = {}): Promise<Manifest[]> {
  return renderChart(CHART, "prod", changes);
}

let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "waybill-chart-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** Members by their paths with dots, as a file of values. */
async function valuesFile(changes: Readonly<Record<string, unknown>>): Promise<string> {
  const values: Record<string, Record<string, unknown>> = {};
  for (const [path, value] of Object.entries(changes)) {
    const [section = "", name = ""] = path.split(".");
    values[section] = { ...values[section], [name]: value };
  }
  const path = join(folder, "values.json");
  await writeFile(path, JSON.stringify(values));
  return path;
}

const ofKind = (all: readonly Manifest[], kind: string) => all.filter((one) => one.kind === kind);

describe("the chart", () => {
  test.each([{}, CHANGES])("conforms to the schemas of Kubernetes with %j", async (changes) => {
    for (const manifest of await render(changes)) {
      const Kind = KINDS[manifest.kind as keyof typeof KINDS];
      expect(() => new Kind(manifest).validate()).not.toThrow();
    }
  });

  test("is refused by those schemas where it is wrong", async () => {
    const [deployment] = ofKind(await render(), "Deployment");
    deployment.spec.template.spec.containers[0].ports[0].containerPort = "a port";
    expect(() => new Deployment(deployment).validate()).toThrow();
  });

  test("runs each role with probes, without rights and with the secret from outside", async () => {
    const all = await render();
    const deployments = ofKind(all, "Deployment");
    expect(deployments.map(({ metadata }) => metadata.name)).toEqual(
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
        ...{ readOnlyRootFilesystem: true, allowPrivilegeEscalation: false },
        capabilities: { drop: ["ALL"] },
      });
      expect(pod).toMatchObject({ automountServiceAccountToken: false });
      expect(pod.securityContext).toMatchObject({ runAsNonRoot: true });
    }
    expect(ofKind(all, "Secret")).toEqual([]);
  });

  test("stops a pod after its Services and its balancers have let go of it, and kills none that still drains", async () => {
    for (const [changes, seconds] of [
      [{}, 5],
      [{ drainSeconds: 30 }, 30],
    ] as const) {
      for (const { spec } of ofKind(await render(changes), "Deployment")) {
        const { terminationGracePeriodSeconds, containers } = spec.template.spec;
        const [{ env, lifecycle }] = containers;
        expect(env).toContainEqual({ name: "DRAIN_SECONDS", value: String(seconds) });
        expect(lifecycle.preStop.exec.command).toEqual(["sleep", String(seconds)]);
        expect(terminationGracePeriodSeconds).toBe(seconds + seconds + 10);
      }
    }
  });

  test("has a disruption budget, a service and a network policy that select each role", async () => {
    const all = await render();
    const labels = ofKind(all, "Deployment").map(({ spec }) => spec.selector.matchLabels);
    const policies = ofKind(all, "NetworkPolicy");
    const budgets = ofKind(all, "PodDisruptionBudget");
    expect(budgets.map(({ spec }) => spec.selector.matchLabels)).toEqual(labels);
    expect(ofKind(all, "Service").map(({ spec }) => spec.selector)).toEqual(labels);
    expect(policies.map(({ spec }) => spec.podSelector.matchLabels)).toEqual(labels);
    const from = (role: string, manifests: readonly Manifest[]) =>
      ofKind(manifests, "NetworkPolicy").find(({ metadata }) => metadata.name === `prod-${role}`)
        .spec.ingress[0].from;
    expect([from("processors", all), from("ingest", all)]).toEqual([
      [{ podSelector: {} }],
      undefined,
    ]);
    expect(from("ingest", await render(CHANGES))).toEqual(CHANGES["networkPolicy.from"]);
  });

  test("lets KEDA scale the processors by their lag, and then sets no replicas itself", async () => {
    const all = await render(CHANGES);
    const [scaled] = ofKind(all, "ScaledObject");
    const [target] = ofKind(all, "Deployment").filter(({ spec }) => spec.replicas === undefined);
    expect(scaled.spec.scaleTargetRef.name).toBe(target.metadata.name);
    const metrics = await Bun.file("core/metrics.ts").text();
    const [metric = ""] = /waybill_\w+/.exec(scaled.spec.triggers[0].metadata.query) ?? [];
    expect(metrics).toContain(`name: "${metric}"`);
    expect(ofKind(await render(), "ScaledObject")).toEqual([]);
  });

  test("gives each role the port that it listens on", async () => {
    const { roles } = Bun.YAML.parse(await Bun.file(`${CHART}/values.yaml`).text()) as Manifest;
    const ports = { ingest: 8081, api: 8080, panel: 8082, processors: 8083, analytics: 8084 };
    const found = Object.entries<Manifest>(roles).map(([role, { port }]) => [role, port]);
    expect(Object.fromEntries(found)).toEqual(ports);
  });
});

const { helm, kubeconform, schemas } = await chartTools([
  ...["apps.v1.Deployment", "core.v1.ConfigMap", "core.v1.Service"],
  ...["networking.v1.NetworkPolicy", "policy.v1.PodDisruptionBudget"],
]);

/** @param values a file of them, as an operator has one */
async function renderByHelm(values: string): Promise<string> {
  // A helm that was built from source assumes an old cluster unless the version is given.
  const args = ["template", "prod", CHART, "--kube-version", "1.30.0"];
  const command = [helm ?? "", ...args, "--values", values];
  const { output, errors, status } = await outcomeOf(startCommand(command, {}));
  expect([status, errors]).toEqual([0, ""]);
  return output;
}

describe.skipIf(helm === null)("by helm", () => {
  test.each([{}, CHANGES])("the chart is rendered to the same with %j", async (changes) => {
    const sorted = (all: readonly Manifest[]) =>
      all.toSorted((one, other) =>
        `${one.kind} ${one.metadata.name}` < `${other.kind} ${other.metadata.name}` ? -1 : 1,
      );
    const values = await valuesFile(changes);
    expect(sorted(documentsOf(await renderByHelm(values)))).toEqual(sorted(await render(changes)));
  });

  test("the chart is found to be without faults", async () => {
    const linted = await outcomeOf(startCommand([helm ?? "", "lint", "--strict", CHART], {}));
    expect([linted.status, linted.output]).toEqual([
      0,
      expect.stringContaining("0 chart(s) failed"),
    ]);
  });
});

describe.skipIf(kubeconform === null || schemas === null)("by kubeconform", () => {
  /** The schema of KEDA comes with the package from npm, above. */
  const check = (text: string) =>
    outcomeOf(
      startCommand(
        [
          ...[kubeconform ?? "", "-strict", "-summary", "-skip", "ScaledObject"],
          ...["-schema-location", `${schemas}/{{ .ResourceKind }}.json`, "-"],
        ],
        {},
        { input: text },
      ),
    );
  const textOf = async (changes: Readonly<Record<string, unknown>>) =>
    helm === null
      ? (await render(changes)).map((one) => JSON.stringify(one)).join("\n---\n")
      : renderByHelm(await valuesFile(changes));

  test.each([{}, CHANGES])("the chart is valid with %j", async (changes) => {
    const { output, status } = await check(await textOf(changes));
    expect(output).toMatch(/Valid: 21, Invalid: 0, Errors: 0, Skipped: [01]/);
    expect(status).toBe(0);
  });

  test("a member that Kubernetes does not know is refused", async () => {
    const [deployment] = ofKind(await render(), "Deployment");
    deployment.spec.template.spec.containers[0].readynessProbe = {};
    const { output, status } = await check(JSON.stringify(deployment));
    expect([status, output]).toEqual([1, expect.stringContaining("readynessProbe")]);
  });
});
