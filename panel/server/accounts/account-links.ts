/** One-time links of accounts, and the mails that carry them. */
import { accountMail } from "#core/accounts/rules/account-mail.ts";
import type { AccountEntity } from "#core/configuration/rules/entities.ts";
import type { Mailer } from "#core/platform/process/mail.ts";
import { hashToken } from "#core/platform/secrets/secrets.ts";
import type { Language } from "#core/shipments/rules/shipment.ts";
import type { PanelDeps } from "#panel/server/caller.ts";

/** The page of the application that takes the link's token. */
export function linkOf({ config }: Pick<PanelDeps, "config">, token: string): string {
  return `${config.publicUrl}/invitation/${token}`;
}

/**
 * A mail that cannot be sent is logged: the inviter has the link too, and who forgot a password asks again.
 * @returns whether it was sent
 */
export async function mailLink(
  deps: PanelDeps,
  mailer: Mailer,
  kind: "invitation" | "reset",
  account: AccountEntity,
  token: string,
): Promise<boolean> {
  const { email, name, linkUntilMs } = account;
  const facts = { kind, name, link: linkOf(deps, token), untilMs: linkUntilMs };
  const { subject, text } = accountMail(facts, languageOf(deps, account));
  const messageId = `account-${hashToken(token).slice(0, 32)}@waybill`;
  try {
    await mailer.send({ messageId, to: email, subject, text });
    return true;
  } catch (error) {
    const reason = (error as Error).message.replaceAll(email, "…");
    deps.log.warn(
      { account: account.id, reason },
      "the mail with the link of an account was not sent",
    );
    return false;
  }
}

/** The company's; couriers and operators are written to in English. */
function languageOf({ live }: PanelDeps, { companyCode }: AccountEntity): Language {
  const companies = [...live.configuration().companies.values()];
  return companies.find(({ code }) => code === companyCode)?.language ?? "en";
}
