/** A Nominatim-compatible geocoder (`GEOCODER_URL`): `GET /search` with a structured query. */

import { type Static, Type } from "@sinclair/typebox";
import { callGateway } from "#api/http/gateway.ts";
import type { CarrierAnswer } from "#api/labels/label-carrier.ts";
import { type CheckedAddress, type Match, NO_MATCH } from "#core/merchants/rules/address-check.ts";
import { compileSchema } from "#core/platform/schema/compile-schema.ts";
import { differingParts } from "./differing.ts";

const text = Type.Optional(Type.String());

const Place = Type.Object({
  lat: Type.String({ pattern: "^-?\\d+(\\.\\d+)?$" }),
  lon: Type.String({ pattern: "^-?\\d+(\\.\\d+)?$" }),
  address: Type.Optional(
    Type.Object({
      house_number: text,
      road: text,
      city: text,
      town: text,
      village: text,
      municipality: text,
      state: text,
      county: text,
      "ISO3166-2-lvl6": text,
      postcode: text,
      country_code: text,
    }),
  ),
});
type Place = Static<typeof Place>;
const checker = compileSchema(Type.Array(Place));

export async function matchByNominatim(
  base: string,
  address: CheckedAddress,
): Promise<CarrierAnswer<Match>> {
  const { street, city, state, postcode, country } = address;
  const query = new URLSearchParams({
    format: "jsonv2",
    addressdetails: "1",
    limit: "1",
    street,
    city,
    ...(state !== null && { state }),
    ...(postcode !== null && { postalcode: postcode }),
    countrycodes: country.toLowerCase(),
  });
  const answer = await callGateway(base, { method: "GET", path: `/search?${query}`, checker });
  if (answer.kind === "away") return answer;
  // A search has no refusals and is always there: anything else is no geocoder.
  if (answer.kind === "refused" || answer.value === null) {
    return { kind: "away", unreadable: true, called: true };
  }
  const [first] = answer.value;
  return { kind: "ok", value: first ? matchOf(first, address) : NO_MATCH };
}

function matchOf({ lat, lon, address = {} }: Place, asked: CheckedAddress): Match {
  const { house_number: house, road, postcode = null } = address;
  const { city: own, town, village, municipality } = address;
  const cities = [own, town, village, municipality].filter((name) => name !== undefined);
  const [city = null] = cities;
  // `IT-RM`
  const province = address["ISO3166-2-lvl6"]?.split("-")[1] ?? null;
  const deepest = road ? (house ? "HOUSE" : "STREET") : null;
  const level = deepest ?? (city ? "MUNICIPALITY" : "POSTCODE");
  const found = { street: road ?? null, cities, state: province, postcode };
  const differing = differingParts(asked, found);
  return {
    ...NO_MATCH,
    match: {
      status: differing.length === 0 ? "MATCHED" : "PARTIAL",
      level,
      differing,
      unchecked: [],
    },
    address: {
      street: road ? [road, house].filter(Boolean).join(" ") : null,
      city,
      state: province ?? address.state ?? null,
      postcode,
      country: address.country_code?.toUpperCase() ?? asked.country,
    },
    coordinates: { latitude: Number(lat), longitude: Number(lon) },
  };
}
