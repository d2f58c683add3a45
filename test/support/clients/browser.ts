/** Headless Chromium of this machine, for tests of pages. Without one a test fails with one line that says what to install. */
import { existsSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { type Browser, chromium } from "playwright-core";
import { LIMIT_MS } from "#test/support/eventually.ts";

const PROGRAMS = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
const PLACES = [
  "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
  "/Applications/Chromium.app/Contents/MacOS/Chromium",
];

/** What tests leave behind to be looked at; git does not keep it. */
const ARTEFACTS = join(import.meta.dir, "..", "..", "artefacts");

/** Its pages wait for conditions as long as other tests do. */
export async function openBrowser(): Promise<Browser> {
  const found = PROGRAMS.map((name) => Bun.which(name)).find((path) => path !== null);
  const executablePath = found ?? PLACES.find((path) => existsSync(path));
  if (!executablePath) {
    throw new Error('no Chromium: "apt-get install chromium" or "brew install --cask chromium"');
  }
  // Containers have neither the user namespaces of the sandbox nor a large /dev/shm.
  const args = ["--no-sandbox", "--disable-dev-shm-usage"];
  const browser = await chromium.launch({ executablePath, args });
  browser.on("context", (context) => context.setDefaultTimeout(LIMIT_MS));
  return browser;
}

/** The path of a file to be kept. */
export async function artefact(name: string): Promise<string> {
  await mkdir(ARTEFACTS, { recursive: true });
  return join(ARTEFACTS, name);
}
