/** Everybody's own account: who am I, name, password, second factor. */

import { randomBytes } from "node:crypto";
import { type Static, Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import type { AccountKind, Role } from "#core/accounts/rules/roles.ts";
import { base32, otpauthUrl } from "#core/accounts/rules/totp.ts";
import { changeAccount } from "#core/accounts/store/accounts.ts";
import type { AccountEntity } from "#core/configuration/rules/entities.ts";
import { Problem } from "#core/platform/errors/problem.ts";
import { route } from "#core/platform/http/access.ts";
import { nullableText } from "#core/platform/schema/nullable.ts";
import { hashPassword, NewPassword } from "#core/platform/secrets/passwords.ts";
import type { Runtime } from "#core/runtime/runtime.ts";
import { type Caller, networkOf } from "#panel/server/caller.ts";
import { jsonBody } from "#panel/server/http/checked-body.ts";
import { notFound } from "#panel/server/not-found.ts";
import { noteChange, panelRoutes } from "#panel/server/panel-routes.ts";
import { accountView, KindSchema, personName, RoleSchema } from "./account-view.ts";
import { logInAccount, requirePassword, spendCode } from "./log-in.ts";

/** Of a second factor: what RFC 4226 recommends. */
const TOTP_SECRET_BYTES = 20;

export const Me = Type.Object({
  kind: Type.Unsafe<AccountKind>(KindSchema),
  role: Type.Unsafe<Role>(RoleSchema),
  name: Type.String(),
  email: Type.Union([Type.String(), Type.Null()], {
    description: "null of the operator of PANEL_TOKEN",
  }),
  companyCode: nullableText,
  courierCode: nullableText,
  totp: Type.Boolean({ description: "whether the account has a second factor" }),
  capabilities: Type.Array(Type.String()),
});

export const MePatch = Type.Object(
  {
    name: Type.Optional(personName),
    password: Type.Optional(Type.Object({ current: Type.String(), next: NewPassword })),
  },
  { additionalProperties: false },
);

const password = Type.String({ description: "the account's; asked for whatever the session" });
export const TotpStart = Type.Object({ password }, { additionalProperties: false });

export const TotpCode = Type.Object(
  { password, code: Type.String() },
  { additionalProperties: false },
);

export const TotpSecret = Type.Object({
  secret: Type.String({ description: "base32; shown this once" }),
  otpauthUrl: Type.String({ description: "the same for a QR code" }),
});

const OWN = { can: "me", of: "caller" } as const;
/** Of those who have an account. */
const OWN_ACCOUNT = { ...OWN, check: accountOf } as const;

export function meRoutes(runtime: Runtime) {
  return new Elysia({ name: "me-routes" })
    .use(ownAccountRoutes(runtime))
    .use(secondFactorRoutes(runtime))
    .use(switchFactorRoutes(runtime));
}

function ownAccountRoutes(runtime: Runtime) {
  return panelRoutes(runtime, "me")
    .get(
      "/panel/api/me",
      ({ caller }) => viewOf(caller),
      route({ access: OWN, response: Me, summary: "Who calls, and what they may do" }),
    )
    .patch(
      "/panel/api/me",
      async ({ body, caller, request, server, set }) => {
        const account = accountOf(caller);
        const { name = account.name, password } = body;
        const network = networkOf(runtime, request, server);
        const passwordHash = password && (await newHash(runtime, network, account, password));
        const after = await change(runtime, request, account, (now) => ({
          name,
          ...(passwordHash !== undefined && { passwordHash, epoch: now.epoch + 1, linkHash: "" }),
        }));
        // All sessions of the account are over; this one goes on under another id.
        if (passwordHash) set.headers["set-cookie"] = await logInAccount(runtime, after);
        return viewOf({ ...caller, account: after });
      },
      route({
        access: OWN_ACCOUNT,
        response: Me,
        summary: "Change one's name or password; another password ends all other sessions",
        errors: [
          "NO_ACCOUNT",
          "WRONG_PASSWORD",
          "ACCOUNT_NOT_FOUND",
          "LOGINS_BUSY",
          "CONFIGURATION_BUSY",
        ],
        body: jsonBody(MePatch, { name: "Maria Bianchi" }),
      }),
    );
}

function secondFactorRoutes(runtime: Runtime) {
  const { secrets } = runtime;
  return panelRoutes(runtime, "second-factor").post(
    "/panel/api/me/totp",
    async ({ body: input, caller, request, server }) => {
      const account = accountOf(caller);
      const network = networkOf(runtime, request, server);
      await requirePassword(runtime, network, account, input.password);
      const secret = randomBytes(TOTP_SECRET_BYTES);
      const totpSecret = secrets.vault.seal(secret.toString("base64url"));
      await change(runtime, request, account, (now) => {
        if (!now.totpActive) return { totpSecret };
        throw new Problem(409, "TOTP_ACTIVE", "The account has a second factor; remove it first.");
      });
      return { secret: base32(secret), otpauthUrl: otpauthUrl(secret, account.email) };
    },
    route({
      access: OWN_ACCOUNT,
      hasPassword: true,
      response: TotpSecret,
      summary: "Make the secret of a second factor, which its first code activates",
      errors: [
        "NO_ACCOUNT",
        "WRONG_PASSWORD",
        "TOTP_ACTIVE",
        "ACCOUNT_NOT_FOUND",
        "LOGINS_BUSY",
        "CONFIGURATION_BUSY",
      ],
      body: jsonBody(TotpStart, { password: "correct horse battery staple" }),
    }),
  );
}

function switchFactorRoutes(runtime: Runtime) {
  return panelRoutes(runtime, "second-factor-switch")
    .put(
      "/panel/api/me/totp",
      (call) => switchTotp(runtime, call, true),
      switchRoute(
        "Activate the second factor by the password and a code of it",
        "log-ins need a code from now on",
      ),
    )
    .delete(
      "/panel/api/me/totp",
      (call) => switchTotp(runtime, call, false),
      switchRoute(
        "Remove the second factor by the password and a code of it",
        "log-ins need the password alone",
      ),
    );
}

const switchRoute = (summary: string, done: string) =>
  route({
    access: OWN_ACCOUNT,
    summary,
    errors: [
      "NO_ACCOUNT",
      "WRONG_PASSWORD",
      "WRONG_CODE",
      "TOTP_REPLACED",
      "ACCOUNT_NOT_FOUND",
      "LOGINS_BUSY",
      "CONFIGURATION_BUSY",
    ],
    body: jsonBody(TotpCode, { password: "correct horse battery staple", code: "123456" }),
    answers: { 204: { description: done } },
  });

interface SwitchCall {
  readonly body: Static<typeof TotpCode>;
  readonly caller: Caller;
  readonly request: Request;
  readonly server: Bun.Server<unknown> | null;
}

async function switchTotp(
  runtime: Runtime,
  { body: { password, code }, caller, request, server }: SwitchCall,
  active: boolean,
): Promise<Response> {
  const account = accountOf(caller);
  const network = networkOf(runtime, request, server);
  await requirePassword(runtime, network, account, password);
  await spendCode(runtime, network, account, code);
  await change(runtime, request, account, (now) => {
    if (now.totpSecret !== account.totpSecret) {
      throw new Problem(409, "TOTP_REPLACED", "The secret has been replaced meanwhile.");
    }
    return { totpActive: active, ...(!active && { totpSecret: "" }) };
  });
  return new Response(null, { status: 204 });
}

async function change(
  { redis }: Runtime,
  request: Request,
  { id }: AccountEntity,
  make: (now: AccountEntity) => Partial<AccountEntity>,
): Promise<AccountEntity> {
  const changed = await changeAccount(redis, id, make);
  if (!changed) throw notFound("account");
  const { before, after } = changed;
  const passwordChanged = before.passwordHash !== after.passwordHash;
  // Not in force yet: its first code activates it.
  const totpPrepared = !after.totpActive && after.totpSecret !== before.totpSecret;
  noteChange(request, accountView(before), {
    ...accountView(after),
    ...(passwordChanged && { passwordChanged }),
    ...(totpPrepared && after.totpSecret !== "" && { totpPrepared }),
  });
  return after;
}

function viewOf({
  account,
  kind,
  role,
  companyCode,
  courierCode,
  capabilities,
}: Caller): Static<typeof Me> {
  return {
    kind,
    role,
    companyCode,
    courierCode,
    capabilities: [...capabilities],
    name: account?.name ?? "PANEL_TOKEN",
    email: account?.email ?? null,
    totp: account?.totpActive ?? false,
  };
}

/** @throws {Problem} 409: `PANEL_TOKEN` is set where the panel is started */
function accountOf({ account }: Caller): AccountEntity {
  if (account) return account;
  throw new Problem(409, "NO_ACCOUNT", "The operator of PANEL_TOKEN has no account.");
}

/** @throws {Problem} 401, 429, 503 */
async function newHash(
  runtime: Runtime,
  network: string,
  account: AccountEntity,
  { current, next }: { readonly current: string; readonly next: string },
): Promise<string> {
  await requirePassword(runtime, network, account, current);
  return hashPassword(next);
}
