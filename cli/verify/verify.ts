/** `waybill verify` holds the running installation against the reference model (`core/verify`). It reads only. */

import { openArchive } from "#analytics/archive.ts";
import { openEvidence } from "#analytics/verify-evidence.ts";
import { readStoreConfig } from "#cli/store-config.ts";
import { checkLayout } from "#core/configuration/store/layout.ts";
import { createLive } from "#core/configuration/store/live.ts";
import type { Config } from "#core/platform/environment/config.ts";
import { command, JSON_OPTION, WrongUsage } from "#core/platform/process/command-line.ts";
import { commandLog } from "#core/platform/process/log.ts";
import { counted } from "#core/platform/schema/counted.ts";
import { openSecrets } from "#core/runtime/open-secrets.ts";
import { openStore } from "#core/runtime/runtime.ts";
import type { Difference } from "#core/verify/rules/compare.ts";
import { type Verified, verifyInstallation } from "#core/verify/store/verify-shipments.ts";

async function verifyStore(config: Config, share: number): Promise<Verified> {
  const log = commandLog();
  const store = await openStore(config, log);
  try {
    const { redis } = store;
    await checkLayout(redis);
    const opened = await openSecrets(config, redis, log, { isServing: false });
    const archive = openArchive(config, opened.secrets.vault, log);
    const live = await createLive(redis, config.testClock, config.publicUrl);
    const configuration = await live.refresh();
    const analytics = openEvidence({ redis, config, archive, configuration });
    try {
      const deps = { redis, refresh: live.refresh, analytics, now: live.now };
      return await verifyInstallation(deps, { share });
    } finally {
      await Promise.all([analytics.close(), archive.close(), opened.close()]);
    }
  } finally {
    await store.close();
  }
}

/** @throws {WrongUsage} */
function shareOf(text: string): number {
  const percent = /^(\d{1,3}(?:\.\d{1,6})?)\s?%$/.exec(text)?.[1];
  const share = Number(percent ?? Number.NaN) / 100;
  if (share > 0 && share <= 1) return share;
  throw new WrongUsage(`--share is more than 0 % and at most 100 %, such as 1%: ${text}`);
}

function lineOf({ shipmentId, what, found, expected, rule }: Difference): string {
  const whose = shipmentId === null ? "installation" : `shipment ${shipmentId}`;
  return `${whose}  ${what}: ${JSON.stringify(found)}, expected ${JSON.stringify(expected)}\n     ${rule}`;
}

function textOf({ shipments, archived, trimmed, count, differences }: Verified): string {
  const unlisted = count - differences.length;
  return [
    ...differences.map(lineOf),
    ...(unlisted > 0
      ? [`and ${counted(unlisted, "further difference")}, not looked at again`]
      : []),
    `${counted(shipments, "shipment")} in Redis and ${archived} in the archive compared${trimmed === 0 ? "" : `, ${trimmed} of them without their state: their histories are over the limit`}.`,
    count === 0 ? "No difference." : `${counted(count, "difference")}.`,
  ].join("\n");
}

export const verify = command({
  name: "waybill verify",
  forms: ["[--share PERCENT] [--json]"],
  about: `Recomputes shipments from their raw events with a second, independent model of the specification, and compares states,
histories, indices, references, webhooks, benchmark rows, the archive and the ledger with it. It reads only, works for a tenth
of the time, and looks at each difference again before it prints it. Exit status 1: there are differences, or a store does not
answer.`,
  options: {
    share: {
      type: "string",
      value: "PERCENT",
      about: "compares a random part of the shipments, such as 1%; all of them by default",
    },
    json: JSON_OPTION,
  },
  async run({ values: { share = "100%" }, env, say, report }) {
    const wanted = shareOf(share);
    const verified = await verifyStore(await readStoreConfig(env, say), wanted);
    report(verified, textOf(verified));
    return verified.count === 0 ? 0 : 1;
  },
});
