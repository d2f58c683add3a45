/** What a release changes in files: the version everywhere, and the changelog's Unreleased section under its number and date. */
import { Refused } from "#core/runtime/runtime.ts";

/** Files that contain the version, each with a pattern for the text before it. */
const VERSIONED: Readonly<Record<string, RegExp>> = {
  "package.json": /^( {2}"version": ")[^"]+/m,
  "package-lock.json": /^( {2,6}"version": ")[^"]+/m,
  "docs/merchants.md": /(waybill[-_]client-)\d+\.\d+\.\d+(?=\.tgz|-py3)/gm,
  "client/README.md": /(waybill-client-)\d+\.\d+\.\d+(?=\.tgz)/m,
  "client/package.json": /^( {2}"version": ")[^"]+/m,
  "client/python/README.md": /(waybill_client-)\d+\.\d+\.\d+(?=-py3)/m,
  "client/python/pyproject.toml": /^(version = ")[^"]+/m,
  "deploy/helm/waybill/Chart.yaml": /^(version: |appVersion: ")[^"\n]+/gm,
};
const CHANGELOG = "CHANGELOG.md";
export const CHANGED_FILES = [...Object.keys(VERSIONED), CHANGELOG];
const VERSION = /^(\d+)\.(\d+)\.(\d+)$/;
const UNRELEASED = "## Unreleased\n";

/**
 * @param tags that exist, one a line
 * @returns why this may not be the next version; null = it may
 */
export function refusalOf(next: string, current: string, tags: string): string | null {
  const [wanted, last] = [VERSION.exec(next), VERSION.exec(current)];
  if (!wanted || !last) return `"${wanted ? current : next}" is no version such as 1.2.3.`;
  if (tags.split("\n").includes(`v${next}`)) return `The tag v${next} exists.`;
  for (const at of [1, 2, 3]) {
    const difference = Number(wanted[at]) - Number(last[at]);
    if (difference !== 0) return difference > 0 ? null : `${next} is older than ${current}.`;
  }
  return `The version is ${next} already.`;
}

/** @throws {Refused} where the file has no version, or nothing to release */
export function releasedText(path: string, text: string, version: string, day: string): string {
  if (path === CHANGELOG) return releasedChangelog(text, version, day);
  const pattern = VERSIONED[path];
  if (!pattern || text.search(pattern) === -1) throw new Refused(`${path} names no version`);
  if (path !== "package-lock.json") return text.replace(pattern, `$1${version}`);
  const lock = JSON.parse(text);
  lock.version = version;
  lock.packages[""].version = version;
  return `${JSON.stringify(lock, null, 2)}\n`;
}

function releasedChangelog(text: string, version: string, day: string): string {
  const from = text.indexOf(UNRELEASED) + UNRELEASED.length;
  if (from < UNRELEASED.length) throw new Refused("CHANGELOG.md has no section Unreleased");
  const next = text.indexOf("\n## ", from);
  const section = text.slice(from, next === -1 ? undefined : next);
  if (section.replace(/^#+ .*$/gm, "").trim() === "") {
    throw new Refused("CHANGELOG.md has nothing under Unreleased");
  }
  return `${text.slice(0, from)}\n## ${version} (${day})\n${text.slice(from)}`;
}
