/** Lists the licences of the shipped packages (`npm run tool -- licences`); exits with 1 if one of them is not permissive. */
import { shippedPackages } from "./shipped.ts";

const packages = shippedPackages(await Bun.file("package-lock.json").json());
const width = Math.max(...packages.map(({ name, version }) => name.length + version.length + 1));
for (const { name, version, licence, isPermissive } of packages) {
  const remark = isPermissive ? "" : "  NOT PERMISSIVE";
  process.stdout.write(`${`${name} ${version}`.padEnd(width)}  ${licence || "none"}${remark}\n`);
}
const others = packages.filter(({ isPermissive }) => !isPermissive).length;
process.stdout.write(`${packages.length} packages, ${others} of them not permissive\n`);
process.exitCode = others === 0 ? 0 : 1;
