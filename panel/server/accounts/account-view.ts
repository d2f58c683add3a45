/** Accounts as the panel shows them, and what their callers may ask. */
import { type Static, Type } from "@sinclair/typebox";
import {
  ACCOUNT_KINDS,
  type AccountKind,
  ALL_ROLES,
  type Role,
} from "#core/accounts/rules/roles.ts";
import type { AccountEntity } from "#core/configuration/rules/entities.ts";
import { nameText } from "#core/platform/schema/name-text.ts";
import { nullableText } from "#core/platform/schema/nullable.ts";
import { version } from "#panel/server/http/version.ts";

export const KindSchema = Type.Union(ACCOUNT_KINDS.map((name) => Type.Literal(name)));
export const RoleSchema = Type.Union(ALL_ROLES.map((name) => Type.Literal(name)));

export const personName = nameText(100);

export const AccountView = Type.Object({
  id: Type.String(),
  email: nullableText,
  name: Type.String(),
  kind: Type.Unsafe<AccountKind>(KindSchema),
  role: Type.Unsafe<Role>(RoleSchema),
  companyCode: nullableText,
  courierCode: nullableText,
  state: Type.Union([Type.Literal("invited"), Type.Literal("active"), Type.Literal("disabled")]),
  totp: Type.Boolean({ description: "whether it has a second factor" }),
  createdAt: Type.String({ description: "ISO 8601" }),
  invitedUntil: Type.Union([Type.String({ description: "ISO 8601" }), Type.Null()], {
    description: "until when its invitation can be accepted; null once it was",
  }),
  version,
});
export type AccountView = Static<typeof AccountView>;

export function accountView(account: AccountEntity & { readonly version?: string }): AccountView {
  const { id, email, name, kind, role, companyCode, courierCode, active, passwordHash } = account;
  const isInvited = passwordHash === "";
  return {
    id,
    name,
    kind: kind as AccountKind,
    role: role as Role,
    email: email || null,
    companyCode: companyCode || null,
    courierCode: courierCode || null,
    state: active ? (isInvited ? "invited" : "active") : "disabled",
    totp: account.totpActive,
    createdAt: new Date(account.createdAtMs).toISOString(),
    invitedUntil: isInvited ? new Date(account.linkUntilMs).toISOString() : null,
    version: account.version ?? "",
  };
}
