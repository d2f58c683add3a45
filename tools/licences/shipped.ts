/** Licences of the packages that are shipped: everything in the lock file that is not for development alone. */

export interface ShippedPackage {
  readonly name: string;
  readonly version: string;
  /** An SPDX expression, or what stands in `BY_TEXT`. */
  readonly licence: string;
  readonly isPermissive: boolean;
}

interface LockedPackage {
  readonly version?: string;
  readonly license?: string;
  readonly dev?: boolean;
}

/** Ask for no more than that their text is passed on, and CC-BY-4.0 that the author is named: the map's page does. */
const PERMISSIVE: ReadonlySet<string> = new Set([
  "0BSD",
  "Apache-2.0",
  "BSD-2-Clause",
  "BSD-3-Clause",
  "BlueOak-1.0.0",
  "CC-BY-4.0",
  "CC0-1.0",
  "ISC",
  "MIT",
  "MIT-0",
  "Unlicense",
]);

/** Packages whose package.json names no licence of SPDX, by what their LICENSE file says. */
const BY_TEXT: Readonly<Record<string, string>> = {
  // Fonts may be used, embedded, copied and sold with software, and may not be sold alone: SPDX has the same terms as this.
  "dejavu-fonts-ttf": "Bitstream-Vera",
  "png-js": "MIT",
};

const PERMISSIVE_TEXTS: ReadonlySet<string> = new Set(Object.values(BY_TEXT));

/** @param lockFile `package-lock.json`. @returns sorted by name */
export function shippedPackages(lockFile: {
  readonly packages: Readonly<Record<string, LockedPackage>>;
}): ShippedPackage[] {
  const shipped = new Map<string, ShippedPackage>();
  for (const [path, { version = "", license = "", dev = false }] of Object.entries(
    lockFile.packages,
  )) {
    const name = path.split("node_modules/").at(-1) ?? "";
    if (dev || name === "") continue;
    const licence = BY_TEXT[name] ?? license;
    shipped.set(`${name} ${version}`, { name, version, licence, isPermissive: permits(licence) });
  }
  return [...shipped.values()].sort((one, other) => (one.name < other.name ? -1 : 1));
}

/** `A OR B` leaves the choice, `A AND B` asks for both. */
function permits(licence: string): boolean {
  const choices = licence.replace(/^\((.*)\)$/, "$1").split(" OR ");
  return choices.some((choice) =>
    choice.split(" AND ").every((one) => PERMISSIVE.has(one) || PERMISSIVE_TEXTS.has(one)),
  );
}
