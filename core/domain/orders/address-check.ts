/** Address checks (document 1, "Addresses"): what is asked, what is answered. */
import { type Static, type TSchema, Type } from "@sinclair/typebox";
import { nullableText as text } from "#core/domain/schema/nullable.ts";
import { countryCodeOrItaly } from "#core/domain/schema/text-forms.ts";

const optional = <T extends TSchema>(schema: T) => Type.Optional(schema);
const given = Type.String({ minLength: 1, maxLength: 255 });

export const AddressCheckRequest = Type.Object({
  street: given,
  city: given,
  state: optional(Type.String({ maxLength: 255, description: "province or region" })),
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

export const AddressCheckView = Type.Object({
  provider: Type.Union([Type.Literal("geocoder"), Type.Literal("national-carrier")]),
  match: Type.Object({
    status: Type.Union([Type.Literal("MATCHED"), Type.Literal("PARTIAL"), Type.Literal("NONE")], {
      description:
        "MATCHED: everything that the provider can tell agrees; PARTIAL: something differs; NONE: no match",
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
    description: "filled by the national carrier's street registry",
  }),
});
export type AddressCheckView = Static<typeof AddressCheckView>;

export type Match = Omit<AddressCheckView, "provider">;

export const NO_MATCH: Match = {
  match: { status: "NONE", level: null },
  address: null,
  coordinates: null,
  delivery: null,
  candidates: [],
};
