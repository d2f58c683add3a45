/** What a provider that looks streets up knows otherwise than the address that was asked about. */
import type { CheckedAddress, Match } from "#core/merchants/rules/address-check.ts";
import { gazetteer } from "./gazetteer.ts";
import { matchesName, plain, regionKey, words } from "./place-names.ts";

type Part = Match["match"]["differing"][number];

interface Found {
  /** Without its house number; null or empty where none was found. */
  readonly street: string | null;
  /** Names that the place goes by; none where the provider names no place. */
  readonly cities: readonly string[];
  /** Two letters of an Italian province; anything else is not compared. */
  readonly state: string | null;
  readonly postcode: string | null;
}

/** A part that the provider does not name, or that was not given, does not differ; a street that was not found does. */
export function differingParts(asked: CheckedAddress, found: Found): Part[] {
  const differing: Part[] = [];
  if (!found.street?.trim()) differing.push("street");
  if (found.cities.length > 0 && !isOneOf(asked.city, found.cities)) differing.push("city");
  if (isOtherProvince(asked, found.state)) differing.push("state");
  const [one, other] = [asked.postcode, found.postcode?.trim()];
  if (one && other && one !== other) differing.push("postcode");
  return differing;
}

function isOneOf(city: string, names: readonly string[]): boolean {
  const written = [city, ...city.split("/")];
  return names.some((name) =>
    written.some((one) => plain(one) === plain(name) || matchesName(words(one), words(name))),
  );
}

function isOtherProvince({ state, country }: CheckedAddress, found: string | null): boolean {
  if (state === null || country !== "IT" || !/^[A-Z]{2}$/.test(found ?? "")) return false;
  return !gazetteer()
    .provinces.get(regionKey(state))
    ?.has(found ?? "");
}
