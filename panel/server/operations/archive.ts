/** The archive of shipments that are over: how far it is, and which channels are held in Redis. */

import { type Static, Type } from "@sinclair/typebox";
import {
  archivedOf,
  readArchiveProgress,
  readArchiveStatus,
} from "#core/archive/store/archive-status.ts";
import { DAMAGED_ROWS_KEPT, readDamaged } from "#core/archive/store/damaged-rows.ts";
import {
  type HeldChannel,
  holdChannel,
  letChannelGo,
  readHeldChannels,
} from "#core/archive/store/held-channels.ts";
import { readRemovals } from "#core/archive/store/retirement.ts";
import type { Configuration } from "#core/configuration/store/configuration.ts";
import { described } from "#core/platform/openapi/operation.ts";
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
  archived: Type.Integer({ description: "its shipments that are in the archive" }),
  restored: Type.Integer({ description: "shipments that have come back" }),
  isDone: Type.Boolean({ description: "all that was in the archive has come back" }),
});
export type HeldChannelView = Static<typeof Held>;

const ArchiveView = Type.Object({
  afterDays: Type.Integer({ description: "ARCHIVE_AFTER_DAYS of this process" }),
  retentionMonths: Type.Union([Type.Integer(), Type.Null()], {
    description: "SHIPMENT_RETENTION_MONTHS of this process; null = for ever",
  }),
  companies: Type.Array(Type.Object({ companyCode: Type.String(), archived: Type.Integer() }), {
    description: "those with archived shipments",
  }),
  backlog: Type.Integer({
    description: "shipments that the round under way has yet to look at, at most",
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
    .get("/panel/api/archive", () => readArchive(deps), {
      needs: { can: "overview:read", of: "installation" },
      response: ArchiveView,
      ...described({ summary: "What is archived, how far the archiver is, and what was removed" }),
    })
    .put(
      "/panel/api/channels/:channelCode/archive-hold",
      async ({ params, request }) => {
        const configuration = await live.refresh();
        const { id } = channelOf(configuration, params.channelCode);
        const before = await heldOf(deps, configuration, id);
        await holdChannel(redis, id, live.now());
        const held = { channelId: id, sinceMs: live.now(), restored: 0, isDone: false };
        const after =
          (await heldOf(deps, configuration, id)) ?? (await viewOf(deps, configuration, held));
        // How far it has come back is in both.
        if (before) noteNoChange(request);
        else noteChange(request, null, after);
        return after;
      },
      {
        needs: { can: "channels:write", of: "channel" },
        response: Held,
        ...described({
          summary: "Bring what a channel has in the archive back to Redis, and keep it there",
        }),
      },
    )
    .delete(
      "/panel/api/channels/:channelCode/archive-hold",
      async ({ params, request, set }) => {
        const configuration = await live.refresh();
        const { id } = channelOf(configuration, params.channelCode);
        noteChange(request, await heldOf(deps, configuration, id), null);
        await letChannelGo(redis, id);
        set.status = 204;
      },
      {
        needs: { can: "channels:write", of: "channel" },
        ...described({
          summary: "Let a channel's shipments move to the archive again",
          answers: { 204: { description: "let go" } },
        }),
      },
    );
}

async function readArchive({
  redis,
  live,
  config,
  archive = NO_ARCHIVE,
}: PanelDeps): Promise<ArchiveView> {
  const configuration = await live.refresh();
  const companies = [...configuration.companies.values()];
  const [status, progress, held, damaged, bytes, counts, removals] = await Promise.all([
    readArchiveStatus(redis),
    readArchiveProgress(redis),
    readHeldChannels(redis),
    readDamaged(redis),
    archive.storedBytes().catch(() => null),
    Promise.all(companies.map(({ id }) => archivedOf(redis, id))),
    Promise.all(companies.map(({ id }) => readRemovals(redis, id))),
  ]);
  const { lastBatch, backlog } = progress;
  return {
    afterDays: config.archiveAfterDays,
    retentionMonths: config.shipmentRetentionMonths,
    companies: companies
      .map(({ code: companyCode }, at) => ({ companyCode, archived: counts[at] ?? 0 }))
      .filter(({ archived }) => archived > 0),
    backlog,
    behindSeconds: status && Math.max(0, Date.now() - status.endedAtMs) / 1_000,
    lastBatch: lastBatch && { at: isoOf(lastBatch.atMs), shipments: lastBatch.shipments },
    bytes,
    heldChannels: await Promise.all(held.map((one) => viewOf({ redis }, configuration, one))),
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
  };
}

async function viewOf(
  { redis }: Pick<PanelDeps, "redis">,
  { channels, companies }: Configuration,
  { channelId, sinceMs, restored, isDone }: HeldChannel,
): Promise<HeldChannelView> {
  const channel = channels.get(channelId);
  const companyId = channel?.companyId ?? 0;
  return {
    companyCode: companies.get(companyId)?.code ?? "",
    channelCode: channel?.code ?? "",
    since: isoOf(sinceMs),
    archived: await archivedOf(redis, companyId, channelId),
    restored,
    isDone,
  };
}

/** @returns null if the channel is not held */
async function heldOf(
  deps: Pick<PanelDeps, "redis">,
  configuration: Configuration,
  channelId: number,
): Promise<HeldChannelView | null> {
  const held = (await readHeldChannels(deps.redis)).find((one) => one.channelId === channelId);
  return held ? viewOf(deps, configuration, held) : null;
}

function isoOf(atMs: number): string {
  return new Date(atMs).toISOString();
}
