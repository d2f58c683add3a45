/** The Helm chart, rendered and checked against the schemas of Kubernetes and KEDA. */
import { describe, expect, test } from "bun:test";
import { ScaledObject } from "@kubernetes-models/keda/keda.sh/v1alpha1";
import { Deployment } from "kubernetes-models/apps/v1";
import { NetworkPolicy } from "kubernetes-models/networking.k8s.io/v1";
import { PodDisruptionBudget } from "kubernetes-models/policy/v1";
import { ConfigMap, Service } from "kubernetes-models/v1";
import { documentsOf, renderChart } from "#test/support/chart.ts";

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

  test.skipIf(Bun.which("helm") === null)("is rendered by helm to the same", async () => {
    const helm = Bun.spawn(["helm", "template", "prod", CHART], { stdout: "pipe" });
    const text = await new Response(helm.stdout).text();
    const sorted = (all: readonly Manifest[]) =>
      all.toSorted((one, other) =>
        `${one.kind} ${one.metadata.name}` < `${other.kind} ${other.metadata.name}` ? -1 : 1,
      );
    expect(sorted(documentsOf(text))).toEqual(sorted(await render()));
  });
});
