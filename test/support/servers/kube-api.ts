/** As much of the API of Kubernetes as helm asks when a chart looks objects up: which kinds there are, and objects by their names. */

interface Kind {
  readonly group: string;
  readonly kind: string;
}

/** Of the chart with its defaults. */
const KINDS: readonly Kind[] = [
  ...["ConfigMap", "Secret", "Service", "ServiceAccount"].map((kind) => ({ group: "", kind })),
  { group: "apps", kind: "Deployment" },
  { group: "networking.k8s.io", kind: "NetworkPolicy" },
  { group: "policy", kind: "PodDisruptionBudget" },
];

const namesOf = (kind: string) =>
  kind === "NetworkPolicy" ? "networkpolicies" : `${kind.toLowerCase()}s`;

/** @param objects by their paths, such as `/api/v1/namespaces/default/secrets/waybill`; may be changed */
export function startKubeApi(objects: Map<string, object>) {
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch(request) {
      const { pathname } = new URL(request.url);
      const answer = objects.get(pathname) ?? discovered(pathname);
      if (answer !== null) return Response.json(answer);
      const status = { kind: "Status", apiVersion: "v1", status: "Failure", reason: "NotFound" };
      return Response.json({ ...status, code: 404 }, { status: 404 });
    },
  });
  return {
    /** Flags that let helm ask it. */
    flags: [
      ...["--dry-run=server", "--disable-openapi-validation", "--kube-token", "none"],
      ...["--kube-apiserver", `http://127.0.0.1:${server.port}`],
    ],
    stop: () => server.stop(true),
  };
}

function discovered(path: string): object | null {
  if (path === "/version") return { major: "1", minor: "35", gitVersion: "v1.35.0" };
  if (path === "/api") return { kind: "APIVersions", versions: ["v1"] };
  if (path === "/apis") return { kind: "APIGroupList", apiVersion: "v1", groups: groups() };
  const [, group = ""] = /^\/(?:api|apis\/([^/]+))\/v1$/.exec(path) ?? [null, null];
  const own = KINDS.filter((one) => one.group === group);
  if (own.length === 0 || !path.endsWith("/v1")) return null;
  const groupVersion = group === "" ? "v1" : `${group}/v1`;
  const resources = own.map(({ kind }) => ({
    name: namesOf(kind),
    singularName: kind.toLowerCase(),
    kind,
    namespaced: true,
    verbs: ["get"],
  }));
  return { kind: "APIResourceList", apiVersion: "v1", groupVersion, resources };
}

function groups(): object[] {
  const names = [...new Set(KINDS.map(({ group }) => group))].filter((name) => name !== "");
  return names.map((name) => {
    const version = { groupVersion: `${name}/v1`, version: "v1" };
    return { name, versions: [version], preferredVersion: version };
  });
}
