/** Applies a setup file. Twice changes nothing the second time; a faulty file changes nothing at all. */

import { changingAs, SETUP_FILE } from "#core/configuration/store/change-context.ts";
import { bumpVersion } from "#core/configuration/store/entities.ts";
import { underSetupLock } from "#core/configuration/store/setup-lock.ts";
import type { LabelCarriers } from "#core/merchants/rules/label-carrier.ts";
import type { Cidr } from "#core/platform/network/cidr.ts";
import type { Resolve } from "#core/platform/network/resolve-name.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import { counted } from "#core/platform/schema/counted.ts";
import type { Fault } from "#core/platform/schema/fault.ts";
import type { Vault } from "#core/platform/secrets/secrets.ts";
import type { GeneratedSecret } from "#core/platform/secrets/unshown-secrets.ts";
import {
  checkSetup,
  type SetupFile,
  wellFormedPart,
  withoutOrderNulls,
} from "#core/setup/rules/setup.ts";
import { activateRemap } from "#core/statuses/store/remaps.ts";
import { checkReferences } from "./check-references.ts";
import { checkWebhooks, type WebhookChecks, type WebhookRules } from "./setup-webhooks.ts";
import {
  type Cleared,
  createSetupWriter,
  type KeepSecrets,
  type SetupWriter,
} from "./setup-writer.ts";
import { mergedDetails, mergedPlatforms, readStored, type Stored } from "./stored-setup.ts";
import { writeCompany } from "./write-company.ts";
import { writeCourier } from "./write-courier.ts";
import { writeReceiver } from "./write-receiver.ts";

export class SetupFaults extends Error {
  constructor(readonly faults: readonly Fault[]) {
    const lines = faults.map(
      ({ path, code, message }) => `${path || "(file)"}: ${code} ${message}`,
    );
    super(`The setup file has ${counted(faults.length, "fault")}:\n  ${lines.join("\n  ")}`);
  }
}

export interface Applied {
  /** Entities written; 0 when the file changes nothing. */
  readonly written: number;
  readonly generated: readonly GeneratedSecret[];
  /** Closed couriers, companies and channels that the file names: nothing of them is changed. */
  readonly passedOver: readonly string[];
  /** Hosts of new or changed webhooks whose addresses could not be checked now; every send checks them. */
  readonly unresolvedHosts: readonly string[];
}

/** What of the installation's own configuration a file must agree with. */
export interface SetupWorld {
  /** Default: the generic carrier alone. */
  readonly isLabelCarrier?: LabelCarriers;
  /** Private networks that webhooks may reach all the same. */
  readonly webhookAllowedCidrs?: readonly Cidr[];
  readonly resolve?: Resolve;
  readonly keep?: KeepSecrets;
}

/** A call of the panel: an application of a file of one entity. */
export interface SetupCall {
  readonly file: unknown;
  readonly cleared?: Cleared;
  /** Called under the lock before anything is checked; may throw to refuse the call. */
  readonly guard: (stored: Stored) => void;
}

/** @throws {SetupFaults} with every fault of the file; nothing has been changed then */
export async function applySetup(
  redis: Redis,
  vault: Vault,
  given: unknown,
  nowMs: number,
  world: SetupWorld = {},
): Promise<Applied> {
  const file = withoutOrderNulls(given);
  // Processes that start together apply the same file one after the other.
  const apply = async () => {
    const stored = await readStored(redis);
    const rules = { by: "file" as const, vault, nowMs };
    const { faults, unresolvedHosts } = await check(file, stored, rules, world);
    if (faults.length > 0) throw new SetupFaults(faults);
    const writer = createSetupWriter(redis, vault, stored, nowMs, world);
    await write(writer, file as SetupFile);
    const { written, generated, passedOver } = writer;
    return { written, generated, passedOver, unresolvedHosts };
  };
  return changingAs(SETUP_FILE, () => underSetupLock(redis, apply));
}

/**
 * The same for a call of the panel, whose author is its caller. Everything that it says counts, and what files have said stays as it
 * is: the next application of a file undoes nothing of it unless the file itself has changed.
 * @throws {SetupFaults} and what `guard` throws
 */
export function applyCall(
  redis: Redis,
  vault: Vault,
  { file: given, cleared, guard }: SetupCall,
  nowMs: number,
  world: SetupWorld,
): Promise<Applied> {
  const file = withoutOrderNulls(given);
  return underSetupLock(redis, async () => {
    const stored = await readStored(redis);
    guard(stored);
    const rules = { by: "panel" as const, vault, nowMs };
    const { faults, unresolvedHosts } = await check(file, asUnsaid(stored), rules, world);
    if (faults.length > 0) throw new SetupFaults(faults);
    const writer = createSetupWriter(redis, vault, stored, nowMs, {
      ...world,
      cleared,
      by: "panel",
    });
    await write(writer, file as SetupFile);
    const { written, generated, passedOver } = writer;
    return { written, generated, passedOver, unresolvedHosts };
  });
}

/** As if no file had said anything. */
function asUnsaid(stored: Stored): Stored {
  const channels = [...stored.channels].map(
    ([code, channel]) => [code, { ...channel, setupSaid: {} }] as const,
  );
  return { ...stored, channels: new Map(channels), deletedWebhooks: new Map() };
}

async function check(
  file: unknown,
  stored: Stored,
  rules: Pick<WebhookRules, "by" | "vault" | "nowMs">,
  { isLabelCarrier, keep: _, ...networks }: SetupWorld,
): Promise<WebhookChecks> {
  const faults = checkSetup(file);
  const wellFormed = wellFormedPart(file, faults);
  if (!wellFormed) return { faults, unresolvedHosts: [] };
  const webhooks = await checkWebhooks(wellFormed, stored, { ...rules, ...networks });
  const unknown = checkReferences(wellFormed, stored, isLabelCarrier);
  return { ...webhooks, faults: [...faults, ...unknown, ...webhooks.faults] };
}

async function write(writer: SetupWriter, file: SetupFile): Promise<void> {
  const { redis, remaps } = writer;
  await writeRegistry(writer, file);
  for (const courier of file.couriers ?? []) await writeCourier(writer, courier);
  for (const company of file.companies ?? []) await writeCompany(writer, company);
  for (const receiver of file.alarmReceivers ?? []) await writeReceiver(writer, receiver);
  if (writer.written === 0 && !writer.hasSaved) return;
  const version = await bumpVersion(redis);
  for (const id of remaps) await activateRemap(redis, id, version);
}

async function writeRegistry({ stored, save }: SetupWriter, file: SetupFile): Promise<void> {
  await save("registry", "all", stored.registry, {
    platforms: mergedPlatforms(file, stored.registry),
    statusDetails: mergedDetails(file, stored.registry),
  });
}
