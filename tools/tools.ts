/** What maintainers run now and then. Each file exports its program as `tool`. */
export const TOOLS: Readonly<Record<string, readonly [file: string, about: string]>> = {
  audit: ["tools/audit/main.ts", "licences and known vulnerabilities of what is shipped"],
  binary: ["tools/binary/main.ts", "builds standalone programs"],
  "chart-values": ["tools/chart-values/main.ts", "prints the guide's table of the chart's values"],
  "client-packages": [
    "tools/client-packages/main.ts",
    "builds the merchants' packages for npm and Python",
  ],
  "client-types": [
    "test/client-types/main.ts",
    "writes what the merchants' packages have of the API",
  ],
  "dbt-sources": ["tools/dbt-sources/main.ts", "writes deploy/dbt/sources.yml"],
  "env-example": ["tools/env-example/main.ts", "writes .env.example"],
  fault: ["test/fault/run.ts", "runs the fault suites for as long as wanted"],
  fuzz: ["test/fuzz/run.ts", "sends requests drawn from the OpenAPI documents"],
  "image-test": ["test/image/main.ts", "builds the image and tries it in containers"],
  "image-tree": ["tools/image/main.ts", "builds what the image has under /app"],
  limits: ["tools/limits/main.ts", "writes docs/limits.md from the limits in the source"],
  licences: ["tools/licences/main.ts", "lists the licences of the shipped packages"],
  mutate: ["test/mutation/main.ts", "changes the rules of core, and runs their tests"],
  release: ["tools/release/main.ts", "releases a version"],
  reliability: ["test/reliability/main.ts", "runs the reliability tests, and writes their page"],
  sbom: ["tools/sbom/main.ts", "prints the software bill of materials"],
  "settings-table": [
    "tools/settings-table/main.ts",
    "writes the table of a channel's settings in docs/operations/settings.md",
  ],
  screenshots: ["test/screenshots/main.ts", "takes the pictures of the README from a running demo"],
  steady: ["test/steady.ts", "runs the tests again and again, to find flaky ones"],
};
