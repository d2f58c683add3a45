/** The archive of shipments that are over: how far it is, and which channels are held in Redis. */

import { type Static, Type } from "@sinclair/typebox";
import {
  archivedOf,
  readArchiveProgress,
  readArchiveStatus,
} from "#core/archive/store/archive-status.ts";
import {
  DAMAGED_ROWS_KEPT,
  type DamagedRow,
  readDamaged,
} from "#core/archive/store/damaged-rows.ts";
import {
  type HeldChannel,
  holdChannel,
  letChannelGo,
  readHeldChannels,
} from "#core/archive/store/held-channels.ts";
import { type Removal, readRemovals } from "#core/archive/store/retirement.ts";
import type { Configuration } from "#core/configuration/store/configuration.ts";
import { route } from "#core/platform/http/access.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import {
  ARCHIVER_STATUS_KEY,
  companyPartition,
  companyTag,
  DAMAGED_ROWS_KEY,
  HELD_CHANNELS_KEY,
  SYSTEM_KEY,
} from "#core/platform/redis/keys.ts";
import { type Missing, orMissing } from "#core/platform/redis/unavailable-shard.ts";
import { limit } from "#core/platform/schema/limit.ts";
import type { Runtime } from "#core/runtime/runtime.ts";
import { NO_ARCHIVE } from "#core/search/store/archive-search.ts";
import type { PanelDeps } from "#panel/server/caller.ts";
import { noteChange, noteNoChange, panelRoutes } from "#panel/server/panel-routes.ts";
import { channelOf } from "#panel/server/webhooks/webhook-access.ts";

export const REMOVALS_LISTED = limit(100, "removals that the panel lists", "the latest are listed");

const Held = Type.Object({
  companyCode: Type.String(),
  channelCode: Type.String(),
  since: Type.String({ description: "when it was asked for, ISO 8601" }),
  archived: Type.Union([Type.Integer(), Type.Null()], {
    description: "its shipments that are in the archive; null = its shard does not answer",
  }),
  restored: Type.Integer({ description: "shipments that have come back" }),
  isDone: Type.Boolean({ description: "all that was in the archive has come back" }),
});
export type HeldChannelView = Static<typeof Held>;

const ArchiveView = Type.Object({
  afterDays: Type.Integer({ description: "ARCHIVE_AFTER_DAYS of this process" }),
  retentionMonths: Type.Union([Type.Integer(), Type.Null()], {
    description: "SHIPMENT_RETENTION_MONTHS of this process; null = for ever",
  }),
  companies: Type.Array(
    Type.Object({
      companyCode: Type.String(),
      archived: Type.Union([Type.Integer(), Type.Null()], {
        description: "null = its shard does not answer",
      }),
    }),
    { description: "those with archived shipments" },
  ),
  missing: Type.Array(Type.String(), {
    description:
      "hash tags and keys of an unavailable shard of the cluster: what they hold is left out",
  }),
  backlog: Type.Union([Type.Integer(), Type.Null()], {
    description:
      "shipments that the round under way has yet to look at, at most; null = its shard does not answer",
  }),
  behindSeconds: Type.Union([Type.Number(), Type.Null()], {
    description: "since the latest complete round ended; null = there was none",
  }),
  lastBatch: Type.Union(
    [
      Type.Object({ at: Type.String({ description: "ISO 8601" }), shipments: Type.Integer() }),
      Type.Null(),
    ],
    { description: "what moved last; null = nothing has" },
  ),
  bytes: Type.Union([Type.Integer(), Type.Null()], {
    description: "on ClickHouse's disk; null = it does not answer",
  }),
  heldChannels: Type.Array(Held, {
    description: "held in Redis by an operator: nothing of them is archived",
  }),
  damagedRows: Type.Array(
    Type.Object({
      companyCode: Type.String(),
      shipmentId: Type.Integer(),
      since: Type.String({ description: "when somebody first found it damaged, ISO 8601" }),
    }),
    {
      description: `shipments whose rows cannot be opened, of those that were asked for, the first ${DAMAGED_ROWS_KEPT}; each round of the archiver removes those that can be opened again`,
    },
  ),
  removals: Type.Array(
    Type.Object({
      companyCode: Type.String(),
      at: Type.String({ description: "ISO 8601" }),
      archivedBefore: Type.String({ description: "YYYY-MM-DD" }),
      shipments: Type.Integer(),
    }),
    { description: `what SHIPMENT_RETENTION_MONTHS has removed, the latest ${REMOVALS_LISTED}` },
  ),
});
export type ArchiveView = Static<typeof ArchiveView>;

export function archiveRoutes(deps: Runtime & PanelDeps) {
  const { redis, live } = deps;
  return panelRoutes(deps, "archive")
    .get(
      "/panel/api/archive",
      () => readArchive(deps),
      route({
        access: { can: "overview:read", of: "installation" },
        response: ArchiveView,
        summary: "What is archived, how far the archiver is, and what was removed",
      }),
    )
    .put(
      "/panel/api/channels/:channelCode/archive-hold",
      async ({ params, request }) => {
        const configuration = await live.refresh();
        const { id } = channelOf(configuration, params.channelCode);
        const before = await heldOf(redis, configuration, id);
        await holdChannel(redis, id, live.now());
        const held = { channelId: id, sinceMs: live.now(), restored: 0, isDone: false };
        const after =
          (await heldOf(redis, configuration, id)) ?? (await viewNow(redis, configuration, held));
        // How far it has come back is in both.
        if (before) noteNoChange(request);
        else noteChange(request, null, after);
        return after;
      },
      route({
        access: { can: "channels:write", of: "channel" },
        response: Held,
        summary: "Bring what a channel has in the archive back to Redis, and keep it there",
      }),
    )
    .delete(
      "/panel/api/channels/:channelCode/archive-hold",
      async ({ params, request, set }) => {
        const configuration = await live.refresh();
        const { id } = channelOf(configuration, params.channelCode);
        noteChange(request, await heldOf(redis, configuration, id), null);
        await letChannelGo(redis, id);
        set.status = 204;
      },
      route({
        access: { can: "channels:write", of: "channel" },
        summary: "Let a channel's shipments move to the archive again",
        answers: { 204: { description: "let go" } },
      }),
    );
}

async function readArchive({
  redis,
  live,
  config,
  archive = NO_ARCHIVE,
}: PanelDeps): Promise<ArchiveView> {
  const missing: Missing = new Set();
  const or = <T>(key: string, otherwise: T) => orMissing(redis, missing, key, otherwise);
  const configuration = await live.refresh().catch(or(SYSTEM_KEY, live.configuration()));
  const companies = [...configuration.companies.values()];
  const tagOf = (companyId: number) => companyTag(companyPartition(companyId));
  const archivedIn = (companyId: number, channelId?: number) =>
    archivedOf(redis, companyId, channelId).catch(or<number | null>(tagOf(companyId), null));
  const [status, progress, held, damaged, bytes, counts, removals] = await Promise.all([
    readArchiveStatus(redis).catch(or(ARCHIVER_STATUS_KEY, null)),
    readArchiveProgress(redis).catch(or(ARCHIVER_STATUS_KEY, { backlog: null, lastBatch: null })),
    readHeldChannels(redis).catch(or<HeldChannel[]>(HELD_CHANNELS_KEY, [])),
    readDamaged(redis).catch(or<DamagedRow[]>(DAMAGED_ROWS_KEY, [])),
    archive.storedBytes().catch(() => null),
    Promise.all(companies.map(({ id }) => archivedIn(id))),
    Promise.all(
      companies.map(({ id }) => readRemovals(redis, id).catch(or<Removal[]>(tagOf(id), []))),
    ),
  ]);
  const { lastBatch, backlog } = progress;
  const heldCounts = await Promise.all(
    held.map(({ channelId }) => archivedIn(companyOf(configuration, channelId), channelId)),
  );
  return {
    afterDays: config.archiveAfterDays,
    retentionMonths: config.shipmentRetentionMonths,
    companies: companies
      .map(({ code: companyCode }, at) => ({ companyCode, archived: counts[at] ?? null }))
      .filter(({ archived }) => archived !== 0),
    backlog,
    behindSeconds: status && Math.max(0, Date.now() - status.endedAtMs) / 1_000,
    lastBatch: lastBatch && { at: isoOf(lastBatch.atMs), shipments: lastBatch.shipments },
    bytes,
    heldChannels: held.map((one, at) => viewOf(configuration, one, heldCounts[at] ?? null)),
    damagedRows: damaged.map(({ companyId, shipmentId, sinceMs }) => {
      const companyCode = configuration.companies.get(companyId)?.code ?? "";
      return { companyCode, shipmentId, since: isoOf(sinceMs) };
    }),
    removals: companies
      .flatMap(({ code: companyCode }, at) =>
        (removals[at] ?? []).map(({ atMs, ...removal }) => ({ companyCode, atMs, ...removal })),
      )
      .sort((one, other) => other.atMs - one.atMs)
      .slice(0, REMOVALS_LISTED)
      .map(({ atMs, ...removal }) => ({ ...removal, at: isoOf(atMs) })),
    missing: [...missing].toSorted(),
  };
}

function companyOf({ channels }: Configuration, channelId: number): number {
  return channels.get(channelId)?.companyId ?? 0;
}

function viewOf(
  configuration: Configuration,
  { channelId, sinceMs, restored, isDone }: HeldChannel,
  archived: number | null,
): HeldChannelView {
  const { channels, companies } = configuration;
  return {
    companyCode: companies.get(companyOf(configuration, channelId))?.code ?? "",
    channelCode: channels.get(channelId)?.code ?? "",
    since: isoOf(sinceMs),
    archived,
    restored,
    isDone,
  };
}

/** @returns null if the channel is not held */
async function heldOf(
  redis: Redis,
  configuration: Configuration,
  channelId: number,
): Promise<HeldChannelView | null> {
  const held = (await readHeldChannels(redis)).find((one) => one.channelId === channelId);
  return held ? viewNow(redis, configuration, held) : null;
}

async function viewNow(redis: Redis, configuration: Configuration, held: HeldChannel) {
  const { channelId } = held;
  const archived = await archivedOf(redis, companyOf(configuration, channelId), channelId);
  return viewOf(configuration, held, archived);
}

function isoOf(atMs: number): string {
  return new Date(atMs).toISOString();
}
