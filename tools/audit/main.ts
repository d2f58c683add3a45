/**
 * `npm run tool -- audit`, a part of `npm run check`: every shipped package has a permissive licence, and none a grave vulnerability that
 * the registry knows of. Where the registry does not answer, that is said and nothing fails.
 */
import { shippedPackages } from "#tools/licences/shipped.ts";
import { auditShipped } from "./advisories.ts";

const packages = shippedPackages(await Bun.file("package-lock.json").json());
const faults = packages
  .filter(({ isPermissive }) => !isPermissive)
  .map(({ name, version, licence }) => `${name} ${version}: licence ${licence || "none"}`);
const audit = await auditShipped();
if (audit.kind === "audited") faults.push(...audit.grave);
else process.stdout.write(`not audited, the registry does not answer: ${audit.reason}\n`);
for (const fault of faults) process.stdout.write(`${fault}\n`);
process.stdout.write(`${packages.length} shipped packages, ${faults.length} findings\n`);
process.exitCode = faults.length === 0 ? 0 : 1;
