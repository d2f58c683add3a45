/** Address checks (document 1, "Addresses"): what is asked, what is answered. */

import { type Static, type TSchema, Type } from "@sinclair/typebox";
import { nullableText as text } from "#core/platform/schema/nullable.ts";
import { countryCodeOrItaly } from "#core/platform/schema/text-forms.ts";
import { warnings } from "#core/platform/schema/unknown-members.ts";

const optional = <T extends TSchema>(schema: T) => Type.Optional(schema);
const given = Type.String({ minLength: 1, maxLength: 255 });

export const AddressCheckRequest = Type.Object({
  street: given,
  city: given,
  state: optional(
    Type.String({ maxLength: 255, description: "code or name of the province, or the region" }),
  ),
  postcode: optional(Type.String({ maxLength: 16 })),
  country: optional(countryCodeOrItaly),
  provider: optional(
    Type.Union([Type.Literal("geocoder"), Type.Literal("national-carrier")], {
      description: "geocoder (default), or the national carrier's street registry",
    }),
  ),
});
export type AddressCheckRequest = Static<typeof AddressCheckRequest>;

/** What the request says, with its defaults. */
export interface CheckedAddress {
  readonly street: string;
  readonly city: string;
  readonly state: string | null;
  readonly postcode: string | null;
  readonly country: string;
}

const Address = Type.Object({
  street: text,
  city: text,
  state: text,
  postcode: text,
  country: Type.String(),
});

const Part = Type.Union(
  ["street", "city", "state", "postcode"].map((name) => Type.Literal(name as PartName)),
);
type PartName = "street" | "city" | "state" | "postcode";

/** Candidates of one answer. */
export const CANDIDATES_LIMIT = 100;

export const AddressCheckView = Type.Object({
  provider: Type.Union([Type.Literal("geocoder"), Type.Literal("national-carrier")]),
  match: Type.Object({
    status: Type.Union([Type.Literal("MATCHED"), Type.Literal("PARTIAL"), Type.Literal("NONE")], {
      description:
        "MATCHED: the street was found and nothing differs; PARTIAL: something differs, was not checked or is ambiguous; NONE: no match",
    }),
    level: Type.Union(
      [
        Type.Literal("HOUSE"),
        Type.Literal("STREET"),
        Type.Literal("MUNICIPALITY"),
        Type.Literal("POSTCODE"),
        Type.Null(),
      ],
      { description: "how deep the match goes; null without one" },
    ),
    differing: Type.Array(Part, {
      description: "parts of the address for which the provider knows another value or none",
    }),
    unchecked: Type.Array(Part, {
      description:
        "parts that the provider did not look at: without GEOCODER_URL the offline Italian gazetteer answers, which knows no streets",
    }),
  }),
  address: Type.Union([Address, Type.Null()], { description: "as the provider writes it" }),
  coordinates: Type.Union(
    [Type.Object({ latitude: Type.Number(), longitude: Type.Number() }), Type.Null()],
    { description: "WGS 84; filled by the geocoder" },
  ),
  delivery: Type.Union(
    [Type.Object({ deliverable: Type.Boolean(), office: text, zone: text }), Type.Null()],
    { description: "filled by the national carrier's street registry" },
  ),
  candidates: Type.Array(Address, {
    description:
      "filled by the national carrier's street registry, and by the offline gazetteer where the name is ambiguous",
  }),
  warnings,
});
export type AddressCheckView = Static<typeof AddressCheckView>;

export type Match = Omit<AddressCheckView, "provider">;

export const NO_MATCH: Match = {
  match: { status: "NONE", level: null, differing: [], unchecked: [] },
  address: null,
  coordinates: null,
  delivery: null,
  candidates: [],
};
