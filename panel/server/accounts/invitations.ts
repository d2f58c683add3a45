/** One-time links: what an invitation says, its acceptance, and the request for another password. */

import { Type } from "@sinclair/typebox";
import type { AccountKind, Role } from "#core/accounts/rules/roles.ts";
import {
  acceptLink,
  accountOfAddress,
  accountOfLink,
  addressIdOf,
  invitationNotFound,
  resetPassword,
} from "#core/accounts/store/accounts.ts";
import { writeAudit } from "#core/accounts/store/audit-log.ts";
import type { AccountEntity } from "#core/configuration/rules/entities.ts";
import { takeCourierRate } from "#core/events/store/courier-rate.ts";
import { publicRoutes, route } from "#core/platform/http/access.ts";
import type { Mailer } from "#core/platform/process/mail.ts";
import { rate } from "#core/platform/schema/limit.ts";
import { emailAddress } from "#core/platform/schema/text-forms.ts";
import { hashPassword, NewPassword } from "#core/platform/secrets/passwords.ts";
import type { Runtime } from "#core/runtime/runtime.ts";
import { tenantOf } from "#panel/server/caller.ts";
import { jsonBody } from "#panel/server/http/checked-body.ts";
import { refuseFaults } from "#panel/server/webhooks/webhook-access.ts";
import { mailLink } from "./account-links.ts";
import { accountView, KindSchema, personName, RoleSchema } from "./account-view.ts";
import { admitLogin, countedNetwork, logInAccount, requireCode } from "./log-in.ts";
import { LOGIN_LIMIT_BYTES, noContent } from "./session.ts";

const RESET_RATE = rate(
  3,
  1 / 1_200,
  "mails for another password of one account",
  "answered alike, and not sent",
);

export const InvitationView = Type.Object({
  email: Type.Union([Type.String(), Type.Null()], {
    description: "null of the first admin, who says it with the acceptance",
  }),
  name: Type.String(),
  kind: Type.Unsafe<AccountKind>(KindSchema),
  role: Type.Unsafe<Role>(RoleSchema),
  expiresAt: Type.String({ description: "ISO 8601" }),
  totp: Type.Boolean({ description: "the acceptance needs a code of the second factor" }),
});

export const AcceptanceInput = Type.Object(
  {
    password: NewPassword,
    name: Type.Optional(personName),
    email: Type.Optional(emailAddress),
    code: Type.Optional(Type.String()),
  },
  { additionalProperties: false },
);
const ACCEPTANCE = jsonBody(
  AcceptanceInput,
  { password: "correct horse battery staple", name: "Maria Bianchi" },
  { limitBytes: LOGIN_LIMIT_BYTES },
);

export const ResetInput = Type.Object({ email: emailAddress }, { additionalProperties: false });
const RESET = jsonBody(ResetInput, { email: "dev@example.com" }, { limitBytes: LOGIN_LIMIT_BYTES });

export function invitationRoutes(runtime: Runtime, mailer: Mailer) {
  const { redis, live } = runtime;
  return publicRoutes("invitations")
    .get(
      "/panel/api/invitations/:token",
      async ({ params, set }) => {
        set.headers["cache-control"] = "no-store";
        await live.followTestClock();
        const account = await accountOfLink(redis, params.token, live.now());
        if (!account) throw invitationNotFound();
        const { email, name, kind, role } = accountView(account);
        const expiresAt = new Date(account.linkUntilMs).toISOString();
        return { email, name, kind, role, expiresAt, totp: account.totpActive };
      },
      route({
        response: InvitationView,
        summary: "What a one-time link is for",
        errors: ["INVITATION_NOT_FOUND"],
      }),
    )
    .post(
      "/panel/api/invitations/:token",
      async ({ params, request, server }) => {
        const network = countedNetwork(await admitLogin(runtime, request, server));
        return noContent(await accept(runtime, network, params.token, request));
      },
      route({
        summary: "Choose a password, and log in; the link is used up",
        errors: [
          "INVITATION_NOT_FOUND",
          "ACCOUNT_EXISTS",
          "TOTP_REQUIRED",
          "WRONG_CODE",
          "CROSS_SITE",
          "RATE_LIMITED",
          "LOGINS_BUSY",
          "CONFIGURATION_BUSY",
        ],
        body: ACCEPTANCE,
        answers: { 204: { description: "the session cookie" } },
      }),
    )
    .post(
      "/panel/api/password-reset",
      async ({ request, server }) => {
        countedNetwork(await admitLogin(runtime, request, server));
        const { email } = await RESET.read(request);
        // Not awaited: how long it takes would tell whether there is such an account.
        void mailReset(runtime, mailer, email).catch((error: Error) => {
          runtime.log.warn({ reason: error.message }, "a password could not be reset");
        });
        return new Response(null, { status: 202, headers: { "cache-control": "no-store" } });
      },
      route({
        summary: "Mail a link for another password, if there is such an account",
        errors: ["CROSS_SITE", "RATE_LIMITED"],
        body: RESET,
        answers: { 202: { description: "always" } },
      }),
    );
}

/** @returns the cookie */
async function accept(
  runtime: Runtime,
  network: string,
  token: string,
  request: Request,
): Promise<string> {
  const { redis, live } = runtime;
  const input = await ACCEPTANCE.read(request);
  const account = await accountOfLink(redis, token, live.now());
  if (!account) throw invitationNotFound();
  refuseWrongEmail(account, input.email);
  await requireCode(runtime, network, account, input.code);
  const passwordHash = await hashPassword(input.password);
  const { name = null, email = null } = input;
  const acceptance = { passwordHash, name, email };
  const accepted = await acceptLink(redis, token, acceptance, live.now());
  await writeAudit(redis, {
    tenant: tenantOf(accepted),
    atMs: live.now(),
    actor: accepted.email,
    action: "POST /invitations/:token",
    target: `/accounts/${accepted.id}`,
    before: accountView(account),
    after: accountView(accepted),
  });
  return logInAccount(runtime, accepted);
}

/** The first admin says an address; everybody else has one. @throws {Problem} 422 */
function refuseWrongEmail(account: AccountEntity, email: string | undefined): void {
  const isNeeded = account.email === "";
  if (isNeeded === (email !== undefined)) return;
  const message = isNeeded ? "Needed by this invitation." : "The invitation has one already.";
  refuseFaults([{ path: "email", code: isNeeded ? "REQUIRED" : "NOT_ALLOWED", message }]);
}

async function mailReset(runtime: Runtime, mailer: Mailer, email: string): Promise<void> {
  const { redis, live, secrets } = runtime;
  const account = await accountOfAddress(redis, email);
  if (account === null) return;
  const subject = `reset ${addressIdOf(secrets.vault, email)}`;
  const { allowed } = await takeCourierRate(redis, subject, RESET_RATE, live.now());
  if (!allowed) return;
  const reset = await resetPassword(redis, account.id, live.now());
  if (reset) await mailLink(runtime, mailer, "reset", reset.account, reset.token);
}
