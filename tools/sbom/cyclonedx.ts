/** The software bill of materials, CycloneDX 1.5, from the lock file. npm's own leaves out packages that others have as peers. */
import { shippedPackages } from "#tools/licences/shipped.ts";

interface Locked {
  readonly version?: string;
  readonly resolved?: string;
  readonly integrity?: string;
  readonly dev?: boolean;
}

export interface LockFile {
  readonly name: string;
  readonly version: string;
  readonly packages: Readonly<Record<string, Locked>>;
}

/** Licences whose names are no SPDX identifiers. */
const NAMED_ONLY: ReadonlySet<string> = new Set(["Bitstream-Vera"]);

/** @param paths only packages in these folders; absent = everything that is shipped */
export function cycloneDx(lock: LockFile, paths?: readonly string[]) {
  const licences = new Map(
    shippedPackages(lock).map(({ name, version, licence }) => [`${name}@${version}`, licence]),
  );
  const wanted = paths === undefined ? null : new Set(paths);
  const components = new Map<string, object>();
  for (const [path, { version = "", integrity, dev }] of Object.entries(lock.packages)) {
    if (path === "" || dev || (wanted !== null && !wanted.has(path))) continue;
    const name = path.split("node_modules/").at(-1) ?? "";
    const licence = licences.get(`${name}@${version}`) ?? "";
    const purl = `pkg:npm/${name.replace("@", "%40")}@${version}`;
    components.set(purl, {
      type: "library",
      "bom-ref": purl,
      name,
      version,
      purl,
      licenses: [licenceOf(licence)],
      ...(integrity !== undefined && { hashes: [hashOf(integrity)] }),
    });
  }
  const application = { type: "application", name: lock.name, version: lock.version };
  return {
    bomFormat: "CycloneDX",
    specVersion: "1.5",
    version: 1,
    metadata: { component: { ...application, "bom-ref": `${lock.name}@${lock.version}` } },
    components: [...components.values()],
  };
}

function licenceOf(licence: string): object {
  if (NAMED_ONLY.has(licence)) return { license: { name: licence } };
  return /[ (]/.test(licence) ? { expression: licence } : { license: { id: licence } };
}

/** @param integrity as npm writes it: `sha512-<base64>` */
function hashOf(integrity: string): object {
  const [kind = "", digest = ""] = integrity.split("-");
  const alg = kind.replace("sha", "SHA-");
  return { alg, content: Buffer.from(digest, "base64").toString("hex") };
}
