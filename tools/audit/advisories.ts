/** Known vulnerabilities of the shipped packages, as npm reports them; what is only used in development is left out. */

/** A registry that hangs must not hold `npm run check` up. */
const ANSWER_LIMIT_MS = 30_000;
/** Less grave ones are listed by `npm audit`, and wait for the next upgrade. */
const GRAVE = new Set(["high", "critical"]);

export type Audit =
  | { readonly kind: "audited"; readonly grave: readonly string[] }
  /** Offline, or a registry that keeps no advisories. */
  | { readonly kind: "unanswered"; readonly reason: string };

interface Report {
  readonly vulnerabilities?: Readonly<
    Record<string, { readonly severity: string; readonly range: string }>
  >;
  readonly message?: string;
}

/** @param registry instead of npm's own */
export async function auditShipped(registry: string | null = null): Promise<Audit> {
  const from = registry === null ? [] : ["--registry", registry];
  const command = ["npm", "audit", "--omit=dev", "--json", "--fetch-retries=0", ...from];
  const child = Bun.spawn(command, { stdout: "pipe", stderr: "ignore" });
  const timer = setTimeout(() => child.kill(), ANSWER_LIMIT_MS);
  const text = await new Response(child.stdout).text();
  clearTimeout(timer);
  const report = readReport(text);
  if (report?.vulnerabilities === undefined) {
    return { kind: "unanswered", reason: report?.message ?? "no answer in time" };
  }
  const grave = Object.entries(report.vulnerabilities)
    .filter(([, { severity }]) => GRAVE.has(severity))
    .map(([name, { severity, range }]) => `${name} ${range}: ${severity}`);
  return { kind: "audited", grave };
}

function readReport(text: string): Report | null {
  try {
    return JSON.parse(text) as Report;
  } catch {
    return null;
  }
}
