import { command } from "#core/platform/process/command-line.ts";
import { shippedPackages } from "./shipped.ts";

export const tool = command({
  name: "npm run tool -- licences",
  forms: [""],
  about: "Lists the licences of the shipped packages. Status 1 = one of them is not permissive.",
  options: {},
  async run({ say }) {
    const packages = shippedPackages(await Bun.file("package-lock.json").json());
    const width = Math.max(
      ...packages.map(({ name, version }) => name.length + version.length + 1),
    );
    for (const { name, version, licence, isPermissive } of packages) {
      const remark = isPermissive ? "" : "  NOT PERMISSIVE";
      say(`${`${name} ${version}`.padEnd(width)}  ${licence || "none"}${remark}`);
    }
    const others = packages.filter(({ isPermissive }) => !isPermissive).length;
    say(`${packages.length} packages, ${others} of them not permissive`);
    return others === 0 ? 0 : 1;
  },
});
