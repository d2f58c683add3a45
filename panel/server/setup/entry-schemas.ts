/** Bodies of the calls that take an entry of the setup file. What is wrong in them is found by the checks of setup files. */
import { type TObject, Type } from "@sinclair/typebox";
import { SetupChannel, SetupCompany, SetupCourier } from "#core/setup/rules/setup.ts";

const strict = { additionalProperties: false } as const;

const { tokens, ...withoutTokens } = SetupCourier.properties;
export const CourierEntry = Type.Object(
  { ...withoutTokens, tokens: Type.Optional(tokens) },
  { ...strict, description: "as in a setup file; tokens that are left out are generated" },
);
export const CourierPatch = patchOf(CourierEntry);
export const CompanyEntry = Type.Object(SetupCompany.properties, strict);
export const CompanyPatch = patchOf(CompanyEntry, ["seatPostcode"]);
export const ChannelEntry = Type.Object(SetupChannel.properties, strict);
export const ChannelPatch = patchOf(ChannelEntry, ["webhookV1", "sender"]);

/** @param emptied members that null empties */
function patchOf(entry: TObject, emptied: readonly string[] = []) {
  const members = Object.entries(entry.properties).map(([name, schema]) => {
    const given = emptied.includes(name) ? Type.Union([schema, Type.Null()]) : schema;
    return [name, Type.Optional(given)] as const;
  });
  const description =
    "absent = as it is; of boxes, channels, keys and other lists of entities, what is named is changed or added";
  return Type.Object(Object.fromEntries(members), { ...strict, minProperties: 1, description });
}
