/** `waybill archive` asks the running product about its archive, and what of it is to come back. */

import { askProduct } from "#cli/ask-product.ts";
import { readStoreConfig } from "#cli/store-config.ts";
import type { Config } from "#core/platform/environment/config.ts";
import { command, JSON_OPTION, WrongUsage } from "#core/platform/process/command-line.ts";
import { counted } from "#core/platform/schema/counted.ts";
import { Refused } from "#core/runtime/runtime.ts";
import type { ArchiveView, HeldChannelView } from "#panel/server/operations/archive.ts";
import { isNoticeDue, waitingLine } from "./waiting.ts";

/** docs/operations/redis.md, "Memory". */
const BYTES_PER_SHIPMENT = 2_560;
const LOOK_EVERY_MS = 1_000;
/** Its shard of the cluster does not answer. */
const UNKNOWN = "unknown";

async function readArchive(config: Config): Promise<ArchiveView> {
  const answer = await askProduct(config, { method: "GET", path: "/archive" });
  return (await answer.json()) as ArchiveView;
}

const shipments = (count: number) => counted(count, "shipment");

function statusText(archive: ArchiveView): string {
  const { afterDays, retentionMonths, backlog, behindSeconds, lastBatch, bytes, missing } = archive;
  const total = archive.companies.reduce((sum, { archived }) => sum + (archived ?? 0), 0);
  const isWhole = archive.companies.every(({ archived }) => archived !== null);
  const size = bytes === null ? "ClickHouse does not answer" : `${bytes} bytes`;
  const none = backlog === null ? UNKNOWN : "none yet";
  const lag = behindSeconds === null ? none : `ended ${Math.round(behindSeconds)} s ago`;
  const batch = lastBatch ? `${shipments(lastBatch.shipments)}, ${lastBatch.at}` : none;
  return [
    afterDays === 0
      ? "Nothing is archived: ARCHIVE_AFTER_DAYS is 0."
      : `Archived after ${afterDays} days.`,
    `In the archive: ${isWhole ? "" : "at least "}${shipments(total)}, ${size}`,
    ...archive.companies.map(
      ({ companyCode, archived }) => `  ${companyCode}: ${archived ?? UNKNOWN}`,
    ),
    `Backlog: ${backlog === null ? UNKNOWN : shipments(backlog)}`,
    `Latest complete round: ${lag}`,
    `Latest batch: ${batch}`,
    ...archive.heldChannels.map((held) => `Held in Redis: ${lineOf(held)}, since ${held.since}`),
    ...archive.damagedRows.map(
      ({ companyCode, shipmentId, since }) =>
        `Damaged row: ${companyCode}, shipment ${shipmentId}, found ${since}`,
    ),
    ...(retentionMonths === null
      ? []
      : [`Removed after ${retentionMonths} months in the archive.`]),
    ...archive.removals.map(
      ({ at, companyCode, shipments: count, archivedBefore }) =>
        `Removed ${at}: ${companyCode}, ${shipments(count)} archived before ${archivedBefore}`,
    ),
    ...(missing.length === 0
      ? []
      : [`A shard of the cluster does not answer. Left out: ${missing.join(", ")}`]),
  ].join("\n");
}

function lineOf({ companyCode, channelCode, archived, restored, isDone }: HeldChannelView): string {
  const left = isDone ? "all" : `${archived ?? UNKNOWN} to come`;
  return `${companyCode}/${channelCode}, ${shipments(restored)} back, ${left}`;
}

/** Waits until all of the channel is back. @throws {Refused} where the product does not answer, or knows no such channel */
async function bringBack(
  config: Config,
  channelCode: string,
  say: (line: string) => void,
): Promise<HeldChannelView> {
  const answer = await askProduct(config, { method: "PUT", path: holdOf(channelCode) });
  const begun = (await answer.json()) as HeldChannelView;
  say(memoryLine(begun.archived));
  say(`Nothing of ${channelCode} is archived until \`waybill archive --let-go ${channelCode}\`.`);
  let shown = -1;
  let [progressMs, notices] = [performance.now(), 0];
  for (; ; await Bun.sleep(LOOK_EVERY_MS)) {
    const archive = await readArchive(config);
    const held = archive.heldChannels.find((one) => one.channelCode === channelCode);
    // The shard that knows may not answer.
    if (!held && archive.missing.length > 0) continue;
    if (!held) throw new Refused(`${channelCode} has been let go meanwhile.`);
    if (held.isDone) return held;
    if (held.restored !== shown) {
      say(lineOf(held));
      [progressMs, notices] = [performance.now(), 0];
    }
    shown = held.restored;
    const quietMs = performance.now() - progressMs;
    if (!isNoticeDue(quietMs, notices)) continue;
    say(waitingLine(quietMs, archive));
    notices += 1;
  }
}

function memoryLine(archived: number | null): string {
  if (archived === null) return "Its shard does not answer: how much memory it takes is unknown.";
  const megabytes = Math.ceil((archived * BYTES_PER_SHIPMENT) / 1e6);
  return `${shipments(archived)} will take about ${megabytes} MB of Redis.`;
}

const holdOf = (channelCode: string) => `/channels/${encodeURIComponent(channelCode)}/archive-hold`;

export const archive = command({
  name: "waybill archive",
  forms: ["--status [--json]", "--bring-back CHANNEL [--json]", "--let-go CHANNEL [--json]"],
  about:
    "Shows the archive of the running product, which it finds by PUBLIC_URL, or HOST and PANEL_PORT, and brings channels back.",
  options: {
    status: {
      type: "boolean",
      about:
        "prints what is archived, the progress of the archiver, what was removed, and which channels are held in Redis;\nexit status 1: a shard of the cluster does not answer, and its figures are missing",
    },
    "bring-back": {
      type: "string",
      value: "CHANNEL",
      about:
        "brings all archived shipments of a channel back to Redis, and holds the channel there until --let-go;\ncontinues without this command, and after a crash",
    },
    "let-go": {
      type: "string",
      value: "CHANNEL",
      about: "lets the channel's old shipments move to the archive again",
    },
    json: JSON_OPTION,
  },
  async run({ values, env, say, report }) {
    const [[verb, value] = [], ...others] = Object.entries(values).filter(([at]) => at !== "json");
    const channel = String(value ?? "");
    if (verb === undefined || channel === "" || others.length > 0) {
      throw new WrongUsage("One of --status, --bring-back CHANNEL and --let-go CHANNEL is needed.");
    }
    const config = await readStoreConfig(env);
    if (verb === "status") {
      const view = await readArchive(config);
      report(view, statusText(view));
      return view.missing.length === 0 ? 0 : 1;
    }
    if (verb === "bring-back") {
      const held = await bringBack(config, channel, say);
      report(held, lineOf(held));
    } else {
      await askProduct(config, { method: "DELETE", path: holdOf(channel) });
      report({ channelCode: channel }, `${channel} may be archived again.`);
    }
    return 0;
  },
});
