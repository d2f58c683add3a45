/** The schemas of Kubernetes, KEDA, the Prometheus operator and the Gateway API, from npm: what they say of a manifest. */
import { rm, writeFile } from "node:fs/promises";
import { resolve } from "node:path";
import { HTTPRoute } from "@kubernetes-models/gateway-api/gateway.networking.k8s.io/v1";
import { ScaledObject } from "@kubernetes-models/keda/keda.sh/v1alpha1";
import {
  PodMonitor,
  PrometheusRule,
} from "@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1";
import { Deployment } from "kubernetes-models/apps/v1";
import { Job } from "kubernetes-models/batch/v1";
import { Ingress, NetworkPolicy } from "kubernetes-models/networking.k8s.io/v1";
import { PodDisruptionBudget } from "kubernetes-models/policy/v1";
import { ConfigMap, Service, ServiceAccount } from "kubernetes-models/v1";
import { outcomeOf, startCommand } from "#test/support/product/command.ts";
import type { Manifest } from "./helm.ts";

/** The kinds that the chart makes, each with the module that has its type. */
export const KINDS = {
  ConfigMap: [ConfigMap, "kubernetes-models/v1"],
  Deployment: [Deployment, "kubernetes-models/apps/v1"],
  HTTPRoute: [HTTPRoute, "@kubernetes-models/gateway-api/gateway.networking.k8s.io/v1"],
  Ingress: [Ingress, "kubernetes-models/networking.k8s.io/v1"],
  Job: [Job, "kubernetes-models/batch/v1"],
  NetworkPolicy: [NetworkPolicy, "kubernetes-models/networking.k8s.io/v1"],
  PodDisruptionBudget: [PodDisruptionBudget, "kubernetes-models/policy/v1"],
  PodMonitor: [PodMonitor, "@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1"],
  PrometheusRule: [
    PrometheusRule,
    "@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1",
  ],
  ScaledObject: [ScaledObject, "@kubernetes-models/keda/keda.sh/v1alpha1"],
  Service: [Service, "kubernetes-models/v1"],
  ServiceAccount: [ServiceAccount, "kubernetes-models/v1"],
} as const;
const MODULES = ["--module", "esnext", "--moduleResolution", "bundler", "--target", "esnext"];

/** @throws for a value of the wrong kind, and for a kind that is not listed above */
export function validate(manifest: Manifest): void {
  const [Kind] = KINDS[manifest.kind as keyof typeof KINDS];
  new Kind(manifest).validate();
}

/**
 * Those validators ignore a member that does not exist. The compiler does not, where an object is written out for a type of theirs.
 * @returns what it says; empty if there is nothing wrong
 */
export async function unknownMembers(manifests: readonly Manifest[]): Promise<string> {
  const path = resolve(`.test/manifests-${process.pid}.ts`);
  const lines = manifests.map((manifest, at) => {
    const [, module] = KINDS[manifest.kind as keyof typeof KINDS];
    const type = `import("${module}").I${manifest.kind}`;
    return `export const manifest${at}: ${type} = ${JSON.stringify(manifest)};`;
  });
  await writeFile(path, lines.join("\n"));
  try {
    const compiler = ["node_modules/.bin/tsc", "--ignoreConfig", "--noEmit", "--strict"];
    const command = [...compiler, "--skipLibCheck", "--pretty", "false", ...MODULES, path];
    return (await outcomeOf(startCommand(command, {}))).output;
  } finally {
    await rm(path, { force: true });
  }
}
