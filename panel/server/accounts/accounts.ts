/** Accounts of the panel: who has one, invitations, roles. Owners manage those of their company or courier. */

import { type Static, Type } from "@sinclair/typebox";
import { rolesOf } from "#core/accounts/rules/roles.ts";
import { type KnownAccount, knownAccounts } from "#core/accounts/store/account-index.ts";
import {
  changeAccount,
  deleteAccount,
  inviteAccount,
  type NewAccount,
  readAccounts,
} from "#core/accounts/store/accounts.ts";
import type { AccountEntity } from "#core/configuration/rules/entities.ts";
import type { Configuration } from "#core/configuration/store/configuration.ts";
import { Problem } from "#core/platform/errors/problem.ts";
import { route } from "#core/platform/http/access.ts";
import type { Mailer } from "#core/platform/process/mail.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import { emailAddress, entityCode } from "#core/platform/schema/text-forms.ts";
import type { Runtime } from "#core/runtime/runtime.ts";
import type { Caller } from "#panel/server/caller.ts";
import { jsonBody } from "#panel/server/http/checked-body.ts";
import { listPageOf, listQuery, pageAfter } from "#panel/server/http/list-page.ts";
import { notFound } from "#panel/server/not-found.ts";
import { isTheirs } from "#panel/server/owners.ts";
import { forbidden, noteChange, panelRoutes } from "#panel/server/panel-routes.ts";
import { refuseFaults } from "#panel/server/webhooks/webhook-access.ts";
import { linkOf, mailLink } from "./account-links.ts";
import { AccountView, accountView, KindSchema, personName, RoleSchema } from "./account-view.ts";
import { takeInvitation } from "./invitation-rates.ts";

export const InvitationInput = Type.Object(
  {
    email: emailAddress,
    name: personName,
    kind: KindSchema,
    role: RoleSchema,
    companyCode: Type.Optional(entityCode),
    courierCode: Type.Optional(entityCode),
  },
  { additionalProperties: false },
);

export const AccountPatch = Type.Object(
  {
    role: Type.Optional(RoleSchema),
    active: Type.Optional(Type.Boolean({ description: "false ends the account's sessions" })),
    totp: Type.Optional(Type.Literal(false, { description: "takes a lost second factor away" })),
  },
  { additionalProperties: false },
);

export const Invited = Type.Object({
  account: AccountView,
  link: Type.Union([Type.String(), Type.Null()], {
    description:
      "works once, for 7 days; shown this once, to operators, who may hand it over. Null for everybody else: that the link was opened proves whose the address is",
  }),
  mailed: Type.Boolean({
    description: "false: the mail could not be sent; invite again, or ask an operator for the link",
  }),
});

export const Accounts = Type.Object({
  items: Type.Array(AccountView),
  nextCursor: Type.Union([Type.String(), Type.Null()]),
});

export function accountRoutes(runtime: Runtime, mailer: Mailer) {
  const { redis, live } = runtime;
  return panelRoutes(runtime, "accounts")
    .get(
      "/panel/api/accounts",
      ({ caller, query }) => pageFor(redis, caller, query),
      route({
        access: { can: "accounts:read", of: "caller" },
        query: listQuery,
        response: Accounts,
        summary: "Accounts by e-mail address, invited ones included",
      }),
    )
    .post(
      "/panel/api/invitations",
      async ({ body: input, caller, set }) => {
        const wanted = wantedOf(await live.refresh(), caller, input);
        await takeInvitation(runtime, caller, wanted);
        const { account, token } = await inviteAccount(redis, wanted, live.now());
        const mailed = await mailLink(runtime, mailer, "invitation", account, token);
        set.status = 201;
        const link = caller.kind === "operator" ? linkOf(runtime, token) : null;
        return { account: accountView(account), link, mailed };
      },
      route({
        access: { can: "accounts:write", of: "caller" },
        response: { 201: Invited },
        summary: "Invite somebody by mail; again replaces the link of an invitation not yet used",
        errors: [
          "ACCOUNT_EXISTS",
          "TOO_MANY_ACCOUNTS",
          "TOO_MANY_INVITATIONS",
          "CONFIGURATION_BUSY",
        ],
        body: jsonBody(InvitationInput, {
          email: "new@example.com",
          name: "Maria Bianchi",
          kind: "company",
          role: "member",
          companyCode: "acme",
        }),
      }),
    )
    .patch(
      "/panel/api/accounts/:id",
      async ({ body: patch, caller, params, request }) => {
        refuseOwn(caller, params.id);
        const changed = await changeAccount(redis, params.id, (account) => patched(account, patch));
        if (!changed) throw notFound("account");
        noteChange(request, accountView(changed.before), accountView(changed.after));
        return accountView(changed.after);
      },
      route({
        access: { can: "accounts:write", of: "account" },
        response: AccountView,
        summary: "Change a role, disable or enable, take a lost second factor away",
        errors: ["OWN_ACCOUNT", "CONFIGURATION_BUSY"],
        body: jsonBody(AccountPatch, { active: false }),
      }),
    )
    .delete(
      "/panel/api/accounts/:id",
      async ({ caller, params, request }) => {
        refuseOwn(caller, params.id);
        const deleted = await deleteAccount(redis, params.id);
        if (!deleted) throw notFound("account");
        noteChange(request, accountView(deleted), null);
        return new Response(null, { status: 204 });
      },
      route({
        access: { can: "accounts:write", of: "account" },
        summary: "Delete an account, or take an invitation back",
        errors: ["OWN_ACCOUNT", "CONFIGURATION_BUSY"],
        answers: { 204: { description: "deleted" } },
      }),
    );
}

async function pageFor(redis: Redis, caller: Caller, query: Static<typeof listQuery>) {
  const { after, limit } = listPageOf(query);
  const shown = (await knownAccounts(redis)).filter((one) => isTheirs(caller, one));
  const { items, nextCursor } = pageAfter(shown, sortKeyOf, after, limit);
  const ids = items.map(({ id }) => id);
  // One that was deleted in between has no fields.
  const read = (await readAccounts(redis, ids)).filter(({ id }) => id);
  return { items: read.map(accountView), nextCursor };
}

/** By address; the id keeps equal ones apart. */
function sortKeyOf({ email, id }: KnownAccount): string {
  return `${email} ${id}`;
}

/** @throws {Problem} 403, 422 */
function wantedOf(
  { companies, couriers }: Configuration,
  caller: Caller,
  input: Static<typeof InvitationInput>,
): NewAccount {
  const { email, name, kind, role } = input;
  const { companyCode = "", courierCode = "" } = input;
  const owner = { companyCode: companyCode || null, courierCode: courierCode || null };
  if (caller.kind !== "operator" && (caller.kind !== kind || !isTheirs(caller, owner))) {
    throw forbidden("Owners invite members of what is theirs.");
  }
  const isCompany = [...companies.values()].some(({ code }) => code === companyCode);
  const fits = {
    companyCode: kind === "company" ? isCompany : companyCode === "",
    courierCode: kind === "courier" ? couriers.has(courierCode) : courierCode === "",
    role: rolesOf(kind).includes(role),
  };
  const message = `Does not fit an account of kind ${kind}.`;
  const wrong = Object.entries(fits).filter(([, fitting]) => !fitting);
  refuseFaults(wrong.map(([path]) => ({ path, code: "NOT_ALLOWED" as const, message })));
  return { email, name, kind, role, companyCode, courierCode };
}

/** @throws {Problem} 422 */
function patched(
  account: AccountEntity,
  {
    role = account.role as Static<typeof RoleSchema>,
    active = account.active,
    totp,
  }: Static<typeof AccountPatch>,
): Partial<AccountEntity> {
  if (!rolesOf(accountView(account).kind).includes(role)) {
    const message = `Does not fit an account of kind ${account.kind}.`;
    refuseFaults([{ path: "role", code: "NOT_ALLOWED", message }]);
  }
  return {
    role,
    active,
    // A session from before must not come back when the account is enabled.
    ...(!active && account.active && { epoch: account.epoch + 1 }),
    ...(totp === false && { totpSecret: "", totpActive: false }),
  };
}

/**
 * So there is always somebody left who may do it.
 * @throws {Problem} 409
 */
function refuseOwn({ account }: Caller, id: string): void {
  if (account?.id !== id) return;
  throw new Problem(409, "OWN_ACCOUNT", "You cannot change or delete your own account here.");
}
