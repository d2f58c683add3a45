/** Lists that forms offer. The types keep them whole: a member that is missing or too many does not compile. */
import { channelForm } from "#core/configuration/rules/settings.ts" with { type: "macro" };
import type { Scope } from "#core/setup/rules/setup.ts";

const LANGUAGES = channelForm().flatMap(({ name, options }) =>
  name === "language" ? options : [],
);

/** Under their names in the visitor's language. */
export function languageChoices(language: string) {
  const names = new Intl.DisplayNames(language, { type: "language" });
  return LANGUAGES.map((value) => ({ value, label: names.of(value) ?? value }));
}

export function languageName(code: string, language: string): string {
  return new Intl.DisplayNames(language, { type: "language" }).of(code) ?? code;
}

const SCOPE_SET: Readonly<Record<Scope, true>> = {
  "shipments:read": true,
  "shipments:write": true,
  "shipments:create": true,
  "orders:read": true,
  "orders:write": true,
  "parcels:read": true,
  "parcels:create": true,
  "parcels:update": true,
  "parcels:delete": true,
  "labels:read": true,
  "labels:write": true,
  "jobs:read": true,
  "delivery-times:read": true,
  "efficiency-index:read": true,
  "sandbox:read": true,
  "sandbox:write": true,
};
export const SCOPES = Object.keys(SCOPE_SET);

/** A channel of test mode ends so (docs/test-mode.md). */
export function isShadow(channelCode: string): boolean {
  return channelCode.endsWith(":test");
}
