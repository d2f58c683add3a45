/** `bun run archive …` asks the running product about its archive, and what of it is to come back. */
import { parseArgs } from "node:util";
import { operatorToken } from "#analytics/sql/ask.ts";
import { type Config, readConfig } from "#core/platform/environment/config.ts";
import { counted } from "#core/platform/schema/counted.ts";
import { guarded, Refused } from "#core/runtime/runtime.ts";
import type { ArchiveView, HeldChannelView } from "#panel/server/operations/archive.ts";
import { isNoticeDue, waitingLine } from "./waiting.ts";

const USAGE = `usage: bun run archive --status
       bun run archive --bring-back CHANNEL
       bun run archive --let-go CHANNEL

--status       what is archived, how far the archiver is, what was removed, and which channels are held in Redis
--bring-back   brings what a channel has in the archive back to Redis, and holds the channel there until it is let go; it goes on
               without this command, and after a crash
--let-go       lets the channel's shipments move to the archive again when they are over

Asks the running product, which it finds by PUBLIC_URL, or HOST and PANEL_PORT.`;
/** docs/operations.md, "Memory". */
const BYTES_PER_SHIPMENT = 2_560;
const LOOK_EVERY_MS = 1_000;

interface Task {
  readonly verb: "status" | "bring-back" | "let-go";
  /** Code of a channel; empty for the status. */
  readonly channel: string;
}

/** @throws {Refused} */
function taskOf(args: string[]): Task {
  const text = { type: "string" } as const;
  const options = { status: { type: "boolean" }, "bring-back": text, "let-go": text } as const;
  try {
    const { values } = parseArgs({ args, options });
    const [[verb, value] = [], ...others] = Object.entries(values);
    if (others.length === 0) {
      if (verb === "status") return { verb, channel: "" };
      const channel = String(value ?? "");
      if (channel && (verb === "bring-back" || verb === "let-go")) return { verb, channel };
    }
  } catch {
    // What is unknown is refused like what is missing.
  }
  throw new Refused(USAGE);
}

/** @throws {Refused} when the product does not answer, or refuses */
async function ask<T = null>(config: Config, method: string, path: string): Promise<T> {
  const headers = { authorization: `Bearer ${await operatorToken(config)}` };
  const answer = await fetch(`${config.publicUrl}${path}`, { method, headers }).catch(
    (error: Error) => {
      throw new Refused(`the product does not answer on ${config.publicUrl}: ${error.message}`);
    },
  );
  if (answer.status === 204) return null as T;
  const body = (await answer.json().catch(() => ({}))) as T & { readonly detail?: string };
  if (!answer.ok) throw new Refused(body.detail ?? `the product answered ${answer.status}`);
  return body;
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

const shipments = (count: number) => counted(count, "shipment");

function printStatus(archive: ArchiveView): void {
  const { afterDays, retentionMonths, backlog, behindSeconds, lastBatch, bytes } = archive;
  const total = archive.companies.reduce((sum, { archived }) => sum + archived, 0);
  print(
    afterDays === 0
      ? "Nothing is archived: ARCHIVE_AFTER_DAYS is 0."
      : `Archived after ${afterDays} days.`,
  );
  print(
    `In the archive: ${shipments(total)}, ${bytes === null ? "ClickHouse does not answer" : `${bytes} bytes`}`,
  );
  for (const { companyCode, archived } of archive.companies) print(`  ${companyCode}: ${archived}`);
  print(`Backlog: ${shipments(backlog)}`);
  const lag = behindSeconds === null ? "none yet" : `ended ${Math.round(behindSeconds)} s ago`;
  print(`Latest complete round: ${lag}`);
  print(
    `Latest batch: ${lastBatch ? `${shipments(lastBatch.shipments)}, ${lastBatch.at}` : "none yet"}`,
  );
  for (const held of archive.heldChannels)
    print(`Held in Redis: ${lineOf(held)}, since ${held.since}`);
  for (const { companyCode, shipmentId, since } of archive.damagedRows) {
    print(`Damaged row: ${companyCode}, shipment ${shipmentId}, found ${since}`);
  }
  if (retentionMonths !== null) print(`Removed after ${retentionMonths} months in the archive.`);
  for (const { at, companyCode, shipments: count, archivedBefore } of archive.removals) {
    print(`Removed ${at}: ${companyCode}, ${shipments(count)} archived before ${archivedBefore}`);
  }
}

function lineOf({ companyCode, channelCode, archived, restored, isDone }: HeldChannelView): string {
  const left = isDone ? "all" : `${archived} to come`;
  return `${companyCode}/${channelCode}, ${shipments(restored)} back, ${left}`;
}

/** @throws {Refused} where the product does not answer, or knows no such channel */
async function bringBack(config: Config, channelCode: string): Promise<void> {
  const begun = await ask<HeldChannelView>(config, "PUT", holdOf(channelCode));
  const megabytes = Math.ceil((begun.archived * BYTES_PER_SHIPMENT) / 1e6);
  print(`${shipments(begun.archived)} will take some ${megabytes} MB of Redis.`);
  print(`Nothing of ${channelCode} is archived until \`bun run archive --let-go ${channelCode}\`.`);
  let shown = -1;
  let [progressMs, notices] = [performance.now(), 0];
  for (; ; await Bun.sleep(LOOK_EVERY_MS)) {
    const archive = await ask<ArchiveView>(config, "GET", "/panel/api/archive");
    const held = archive.heldChannels.find((one) => one.channelCode === channelCode);
    if (!held) throw new Refused(`${channelCode} has been let go meanwhile.`);
    if (held.restored !== shown || held.isDone) {
      print(lineOf(held));
      [progressMs, notices] = [performance.now(), 0];
    }
    shown = held.restored;
    if (held.isDone) return;
    const quietMs = performance.now() - progressMs;
    if (!isNoticeDue(quietMs, notices)) continue;
    print(waitingLine(quietMs, archive));
    notices += 1;
  }
}

const holdOf = (channelCode: string) =>
  `/panel/api/channels/${encodeURIComponent(channelCode)}/archive-hold`;

await guarded(async () => {
  const { verb, channel } = taskOf(process.argv.slice(2));
  const config = readConfig(process.env);
  if (verb === "status") printStatus(await ask<ArchiveView>(config, "GET", "/panel/api/archive"));
  else if (verb === "bring-back") await bringBack(config, channel);
  else {
    await ask(config, "DELETE", holdOf(channel));
    print(`${channel} may be archived again.`);
  }
});
