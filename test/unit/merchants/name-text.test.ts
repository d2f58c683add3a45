/** Names that stand in mails and on other people's screens: one rule everywhere. */
import { describe, expect, test } from "bun:test";
import type { TSchema } from "@sinclair/typebox";
import { compileSchema } from "#core/platform/schema/compile-schema.ts";
import { nameText } from "#core/platform/schema/name-text.ts";
import { SetupFile } from "#core/setup/rules/setup.ts";
import { personName } from "#panel/server/accounts/account-view.ts";

const { couriers, companies, platforms } = SetupFile.properties;
const company = companies.items;
const NAMES: Readonly<Record<string, TSchema>> = {
  person: personName,
  courier: couriers.items.properties.name,
  company: company.properties.name,
  channel: company.properties.channels.items.properties.name,
  platform: platforms.items,
};

const character = (code: number) => String.fromCodePoint(code);
/** Every control and format character, and what ends a line. */
const UNSEEN = Array.from({ length: 0x110000 }, (_, code) => code)
  .filter((code) => code < 0xd800 || code > 0xdfff)
  .map(character)
  .filter((one) => /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u.test(one));

describe.each(Object.entries(NAMES))("the name of a %s", (_, schema) => {
  const checker = compileSchema(schema);

  test("has no control character, no format character and no line end, wherever it stands", () => {
    expect(UNSEEN).toContain("\u202e");
    const taken = UNSEEN.filter(
      (one) =>
        checker.check(one) ||
        checker.check(`An${one}na`) ||
        checker.check(`${one}A`) ||
        checker.check(`A${one}`),
    );
    expect(taken).toEqual([]);
  });

  test.each(["", " ", "\u00a0 \u3000"])("shows something: %j is refused", (name) => {
    expect(checker.check(name)).toBeFalse();
  });

  test.each([
    "Anna",
    "Anna De’ Rossi",
    "Łukasz",
    "محمد",
    "株式会社",
    "Shop 🚚",
    "𝒜",
    "G.L.S. & C.",
  ])("may be %s", (name) => {
    expect(checker.check(name)).toBeTrue();
  });
});

test("a name may have as many characters as it says, and not one more", () => {
  const checker = compileSchema(nameText(100));
  expect([checker.check("🚚".repeat(100)), checker.check("a".repeat(101))]).toEqual([true, false]);
});
