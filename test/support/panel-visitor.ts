/** People in a browser at the control panel, and what their pages must keep: no fault, no stranger asked, nothing too wide. */
import { expect } from "bun:test";
import { fileURLToPath } from "node:url";
import type { Browser, BrowserContextOptions, Page } from "playwright-core";

const AXE = fileURLToPath(import.meta.resolve("axe-core"));
const LEVELS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"];

export interface Visitor {
  readonly page: Page;
  /** Opens a page of the panel and waits until its heading stands. */
  readonly open: (path: string) => Promise<void>;
  /** What the browser reported: errors of scripts, refusals of the page's policy. */
  readonly problems: string[];
  readonly requests: string[];
  readonly end: () => Promise<void>;
}

export interface VisitorOptions extends BrowserContextOptions {
  /** Nobody is logged in without one. */
  readonly token?: string;
}

export async function openVisitor(
  browser: Browser,
  panel: string,
  { token, ...options }: VisitorOptions,
): Promise<Visitor> {
  const context = await browser.newContext({ locale: "en", reducedMotion: "reduce", ...options });
  if (token !== undefined) {
    const answer = await context.request.post(`${panel}/panel/api/session`, { data: { token } });
    expect(answer.status()).toBe(204);
  }
  const page = await context.newPage();
  const problems: string[] = [];
  const requests: string[] = [];
  page.on("request", (request) => requests.push(request.url()));
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") problems.push(message.text());
  });
  page.on("pageerror", (error) => problems.push(error.message));
  return {
    page,
    async open(path) {
      await page.goto(`${panel}${path}`);
      await page.locator("h1").waitFor();
    },
    problems,
    requests,
    end: () => context.close(),
  };
}

/** What is not accessible on the page as it stands: WCAG 2.2, levels A and AA. */
export async function accessFaults(page: Page): Promise<string[]> {
  await page.evaluate(await Bun.file(AXE).text());
  const found = (await page.evaluate(
    `axe.run(document, { runOnly: ${JSON.stringify(LEVELS)} }).then(({ violations }) =>
      violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => id + ": " + html)))`,
  )) as string[];
  return found;
}

/** Pixels by which the page is wider than its window. */
export async function overflowOf(page: Page): Promise<number> {
  const width = await page.evaluate(
    "document.documentElement.scrollWidth - document.documentElement.clientWidth",
  );
  return Math.max(0, width as number);
}
