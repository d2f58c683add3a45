/**
 * A part of `npm run check`: every shipped package has a permissive licence, and none a grave vulnerability that the registry knows of.
 * Where the registry does not answer, that is said and nothing fails.
 */
import { command } from "#core/platform/process/command-line.ts";
import { shippedPackages } from "#tools/licences/shipped.ts";
import { auditShipped } from "./advisories.ts";

export const tool = command({
  name: "npm run tool -- audit",
  forms: [""],
  about:
    "Lists shipped packages without a permissive licence, and known grave vulnerabilities. Status 1 = found some.",
  options: {},
  async run({ say }) {
    const packages = shippedPackages(await Bun.file("package-lock.json").json());
    const faults = packages
      .filter(({ isPermissive }) => !isPermissive)
      .map(({ name, version, licence }) => `${name} ${version}: licence ${licence || "none"}`);
    const audit = await auditShipped();
    if (audit.kind === "audited") faults.push(...audit.grave);
    else say(`not audited, the registry does not answer: ${audit.reason}`);
    for (const fault of faults) say(fault);
    say(`${packages.length} shipped packages, ${faults.length} findings`);
    return faults.length === 0 ? 0 : 1;
  },
});
