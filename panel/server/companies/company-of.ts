import type { Company, Configuration } from "#core/configuration/store/configuration.ts";
import { notFound } from "#panel/server/not-found.ts";

/** @throws {Problem} 404 */
export function companyOf({ companies }: Configuration, code: string): Company {
  const company = [...companies.values()].find((one) => one.code === code);
  if (!company) throw notFound("company");
  return company;
}
