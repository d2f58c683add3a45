/** People in a browser at the control panel, and what their pages must keep: no fault, no stranger asked, nothing too wide. */
import { expect } from "bun:test";
import { fileURLToPath } from "node:url";
import type { Browser, BrowserContextOptions, Page, Request } from "playwright-core";

const AXE = fileURLToPath(import.meta.resolve("axe-core"));
const LEVELS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"];
/** What depends on colours alone: the rest of a page is the same in both modes. */
const OF_COLOURS = ["color-contrast", "link-in-text-block"];
/** As long as no answer is awaited, a page that has drawn what came is whole. */
const QUIET_MS = 60;
const WHOLE_WAIT_MS = 10_000;

export interface Visitor {
  readonly page: Page;
  /** Opens a page of the panel and waits until its heading stands. */
  readonly open: (path: string) => Promise<void>;
  /** Goes on to another page as a link does, without loading the application again. */
  readonly go: (path: string) => Promise<void>;
  /** What the browser reported: errors of scripts, refusals of the page's policy. */
  readonly problems: string[];
  readonly requests: string[];
  /** Waits until every answer is there and drawn, events of a stream excepted. */
  readonly whole: () => Promise<void>;
  readonly end: () => Promise<void>;
}

export interface VisitorOptions extends BrowserContextOptions {
  /** Nobody is logged in without one, or a cookie. */
  readonly token?: string;
  /** Name and value, of an account's session. */
  readonly cookie?: string;
}

export async function openVisitor(
  browser: Browser,
  panel: string,
  { token, cookie, ...options }: VisitorOptions,
): Promise<Visitor> {
  const context = await browser.newContext({ locale: "en", reducedMotion: "reduce", ...options });
  if (token !== undefined) {
    const answer = await context.request.post(`${panel}/panel/api/session`, { data: { token } });
    expect(answer.status()).toBe(204);
  }
  const [name = "", value = ""] = cookie?.split("=") ?? [];
  if (cookie) await context.addCookies([{ name, value, url: panel }]);
  const page = await context.newPage();
  const problems: string[] = [];
  const requests: string[] = [];
  const pending = new Set<Request>();
  page.on("request", (request) => {
    requests.push(request.url());
    if (request.resourceType() !== "eventsource") pending.add(request);
  });
  page.on("requestfinished", (request) => void pending.delete(request));
  page.on("requestfailed", (request) => void pending.delete(request));
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
    go: (path) => page.evaluate(`history.pushState({}, "", ${JSON.stringify(path)})`),
    problems,
    requests,
    async whole() {
      const until = Date.now() + WHOLE_WAIT_MS;
      for (let quiet = 0; quiet < 2 && Date.now() < until; ) {
        await page.waitForTimeout(QUIET_MS);
        await drawn(page);
        quiet = pending.size === 0 ? quiet + 1 : 0;
      }
    },
    end: () => context.close(),
  };
}

/** Waits until the page stands as its window and its mode want it: two frames, and what fades from one colour to another. */
export async function drawn(page: Page): Promise<void> {
  await page.evaluate(`(async () => {
    for (let frame = 0; frame < 2; frame += 1) await new Promise(requestAnimationFrame);
    const passing = document.getAnimations().filter(({ effect }) => effect.getComputedTiming().endTime < Infinity);
    await Promise.allSettled(passing.map(({ finished }) => finished));
  })()`);
}

/**
 * What is not accessible on the page as it stands: WCAG 2.2, levels A and AA.
 * @param rules "colours": only what the other mode may change on a page that was looked at in whole
 */
export async function accessFaults(
  page: Page,
  rules: "all" | "colours" = "all",
): Promise<string[]> {
  // It is large, and stays for as long as the document does.
  if (!(await page.evaluate("'axe' in window"))) await page.evaluate(await Bun.file(AXE).text());
  const runOnly = rules === "all" ? LEVELS : { type: "rule", values: OF_COLOURS };
  const options = JSON.stringify({ runOnly, resultTypes: ["violations"], preload: false });
  const found = (await page.evaluate(
    `axe.run(document, ${options}).then(({ violations }) =>
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

/** What a narrow window cuts short: words of a button or a choice, the hint in a field, and cards that need scrolling sideways. */
export async function cutShort(page: Page): Promise<string[]> {
  return (await page.evaluate(`[...document.querySelectorAll(
    ".mantine-Button-label, .mantine-SegmentedControl-root, [class*=cards_], input[placeholder]"
  )].filter((one) => one.checkVisibility() && one.scrollWidth > one.clientWidth + 1 && one.clientWidth > 0)
    .map((one) => one.className + ": " + (one.placeholder ?? one.textContent))`)) as string[];
}

/** What can be clicked or filled in, and is seen. Of a group of radio buttons or tabs the arrow keys reach the others. */
const REACHABLE = [
  ..."a[href] button:not([disabled]) input:not([disabled]):not([type=radio]) textarea [tabindex='0']".split(
    " ",
  ),
].join(",");

/**
 * What the Tab key does not reach on the page as it stands, and what shows no sign that it has the focus.
 * @returns one line each
 */
export async function keyboardFaults(page: Page): Promise<string[]> {
  const count = (await page.evaluate(`(() => {
    const seen = (one) => one.checkVisibility({ visibilityProperty: true }) && one.tabIndex >= 0 &&
      !one.closest("[inert], [aria-hidden=true]");
    const all = [...document.querySelectorAll(${JSON.stringify(REACHABLE)})].filter(seen);
    window.walk = { all: new Set(all), unmarked: [] };
    document.addEventListener("focusin", ({ target }) => {
      window.walk.all.delete(target);
      const { outlineStyle, boxShadow, borderColor } = getComputedStyle(target);
      const isMarked = outlineStyle !== "none" || boxShadow !== "none" || target.matches("input, textarea, .cm-content, .mantine-Input-input");
      if (!isMarked) window.walk.unmarked.push(target);
    });
    document.activeElement?.blur();
    getSelection()?.removeAllRanges();
    return all.length;
  })()`)) as number;
  // A page that shows something more meanwhile needs a second round; what cannot be reached is not reached in three.
  for (let round = 0; round < 3; round += 1) {
    // One more for the browser's own stop between the last element and the first.
    // The browser takes them in the order in which they are sent.
    await Promise.all(Array.from({ length: count + 2 }, () => page.keyboard.press("Tab")));
    if ((await page.evaluate("window.walk.all.size")) === 0) break;
  }
  return (await page.evaluate(`[
    ...[...window.walk.all].map((one) => "not reached: " + one.outerHTML.slice(0, 160)),
    ...window.walk.unmarked.map((one) => "not marked: " + one.outerHTML.slice(0, 160)),
  ]`)) as string[];
}
