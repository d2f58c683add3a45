/** Prints the software bill of materials of everything that is shipped (`npm run tool -- sbom`): CycloneDX as JSON. */
import { cycloneDx } from "./cyclonedx.ts";

const sbom = cycloneDx(await Bun.file("package-lock.json").json());
process.stdout.write(`${JSON.stringify(sbom, null, 2)}\n`);
