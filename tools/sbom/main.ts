import { command } from "#core/platform/process/command-line.ts";
import { cycloneDx } from "./cyclonedx.ts";

export const tool = command({
  name: "npm run tool -- sbom",
  forms: [""],
  about: "Prints the software bill of materials of everything that is shipped: CycloneDX as JSON.",
  options: {},
  async run({ say }) {
    const sbom = cycloneDx(await Bun.file("package-lock.json").json());
    say(JSON.stringify(sbom, null, 2));
  },
});
