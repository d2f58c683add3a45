/** What maintainers run now and then. Each file says at its beginning what it does and takes. */
export const TOOLS: Readonly<Record<string, readonly [file: string, about: string]>> = {
  audit: ["tools/audit/main.ts", "licences and known vulnerabilities of what is shipped"],
  binary: ["tools/binary/main.ts", "standalone programs: FOLDER [PROGRAM …]"],
  "chart-values": ["tools/chart-values/main.ts", "prints the guide's table of the chart's values"],
  "client-types": ["test/client-types/main.ts", "writes the types of the merchants' packages"],
  "env-example": ["tools/env-example/main.ts", "writes .env.example"],
  fault: ["test/fault/run.ts", "the fault suites for longer: --minutes N"],
  fuzz: ["test/fuzz/run.ts", "requests drawn from the OpenAPI documents: [--cases N] [--seed N]"],
  "image-test": ["test/image/main.ts", "builds the image and tries it in containers"],
  "image-tree": ["tools/image/main.ts", "builds what the image has under /app: FOLDER [COMMIT]"],
  limits: ["tools/limits/main.ts", "writes docs/limits.md from the limits in the source"],
  licences: ["tools/licences/main.ts", "lists the licences of the shipped packages"],
  mutate: ["test/mutation/main.ts", "changes the rules of core, and runs their tests"],
  release: ["tools/release/main.ts", "releases a version: VERSION [--dry-run] [--test]"],
  reliability: ["test/reliability/main.ts", "the reliability tests for an hour: [--minutes N]"],
  sbom: ["tools/sbom/main.ts", "prints the software bill of materials"],
  "settings-table": [
    "tools/settings-table/main.ts",
    "writes the table of a channel's settings in docs/operations/settings.md",
  ],
  screenshots: ["test/screenshots/main.ts", "takes the pictures of the README from a running demo"],
  steady: ["test/steady.ts", "finds flaky tests: [--runs N] [--busy N]"],
};
