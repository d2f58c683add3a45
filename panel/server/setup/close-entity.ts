/**
 * Closes couriers, companies and channels, and opens them again. What is closed keeps its name and its shipments; its tokens and keys
 * stop working at once on every process, and no webhook or mail is sent for it. A setup file does not open it again.
 */
import { Elysia } from "elysia";
import type { Channel, Configuration } from "#core/configuration/store/configuration.ts";
import { bumpVersion, saveEntity } from "#core/configuration/store/entities.ts";
import { underSetupLock } from "#core/configuration/store/setup-lock.ts";
import { hasOpenJobs } from "#core/merchants/store/jobs/import-jobs.ts";
import type { ErrorCode } from "#core/platform/errors/error-catalogue.ts";
import { Problem } from "#core/platform/errors/problem.ts";
import { route } from "#core/platform/http/access.ts";
import { companyPartition } from "#core/platform/redis/keys.ts";
import type { Runtime } from "#core/runtime/runtime.ts";
import { isOpen, type Named } from "#core/setup/store/export-setup.ts";
import { readStored } from "#core/setup/store/stored-setup.ts";
import { readQueueDepths } from "#core/webhooks/store/attempt-stats.ts";
import { notFound } from "#panel/server/not-found.ts";
import { noteChange, noteNoChange, panelRoutes } from "#panel/server/panel-routes.ts";
import { storedOf } from "./apply-entry.ts";

const COURIERS = { can: "couriers:write", of: "installation" } as const;
const MERCHANTS = { can: "channels:write", of: "installation" } as const;

export function closingRoutes(runtime: Runtime) {
  return new Elysia({ name: "closing" })
    .use(courierClosing(runtime))
    .use(companyClosing(runtime))
    .use(channelClosing(runtime));
}

function courierClosing(runtime: Runtime) {
  const named = (code: string): Named => ({ kind: "courier", code });
  return panelRoutes(runtime, "courier-closing")
    .delete(
      "/panel/api/couriers/:code",
      ({ params, request }) => setClosed(runtime, request, named(params.code), true),
      route({
        access: COURIERS,
        summary: "Close a courier: its tokens stop working at once",
        answers: { 204: { description: "closed" } },
        errors: ["COURIER_NOT_FOUND", "CONFIGURATION_BUSY"],
      }),
    )
    .post(
      "/panel/api/couriers/:code/reopen",
      ({ params, request }) => setClosed(runtime, request, named(params.code), false),
      reopening(COURIERS, "COURIER_NOT_FOUND"),
    );
}

function companyClosing(runtime: Runtime) {
  const named = (code: string): Named => ({ kind: "company", code });
  return panelRoutes(runtime, "company-closing")
    .delete(
      "/panel/api/companies/:code",
      ({ params, request }) => setClosed(runtime, request, named(params.code), true),
      route({
        access: MERCHANTS,
        summary: "Close a company with its channels: their keys stop working at once",
        answers: { 204: { description: "closed" } },
        errors: ["COMPANY_NOT_FOUND", "WEBHOOKS_PENDING", "IMPORTS_RUNNING", "CONFIGURATION_BUSY"],
      }),
    )
    .post(
      "/panel/api/companies/:code/reopen",
      ({ params, request }) => setClosed(runtime, request, named(params.code), false),
      reopening(MERCHANTS, "COMPANY_NOT_FOUND"),
    );
}

function channelClosing(runtime: Runtime) {
  const named = (code: string): Named => ({ kind: "channel", code });
  return panelRoutes(runtime, "channel-closing")
    .delete(
      "/panel/api/channels/:channelCode",
      ({ params, request }) => setClosed(runtime, request, named(params.channelCode), true),
      route({
        access: MERCHANTS,
        summary: "Close a channel: its keys stop working at once",
        answers: { 204: { description: "closed" } },
        errors: ["CHANNEL_NOT_FOUND", "WEBHOOKS_PENDING", "IMPORTS_RUNNING", "CONFIGURATION_BUSY"],
      }),
    )
    .post(
      "/panel/api/channels/:channelCode/reopen",
      ({ params, request }) => setClosed(runtime, request, named(params.channelCode), false),
      reopening(MERCHANTS, "CHANNEL_NOT_FOUND"),
    );
}

const reopening = (access: typeof COURIERS | typeof MERCHANTS, missing: ErrorCode) =>
  route({
    access,
    summary: "Open again what was closed, as it was",
    answers: { 204: { description: "open" } },
    errors: [missing, "CONFIGURATION_BUSY"],
  });

/** @throws {Problem} 404, 409 something of it is under way, 412 */
async function setClosed(
  { redis, live, log }: Runtime,
  request: Request,
  named: Named,
  isClosing: boolean,
): Promise<Response> {
  const { kind, code } = named;
  await underSetupLock(redis, async () => {
    const known = storedOf(await readStored(redis), named);
    // The shadow of a channel is closed with it.
    if (!known || ("testOf" in known && known.testOf !== null)) throw notFound(kind);
    if (isOpen(known) !== isClosing) return noteNoChange(request);
    if (isClosing) await refuseUnfinished({ redis, live }, named);
    const closedAtMs = isClosing ? live.now() : 0;
    const id = "id" in known ? String(known.id) : code;
    await saveEntity(redis, kind, id, { ...known, closedAtMs });
    await bumpVersion(redis);
    noteChange(request, { closed: !isClosing }, { closed: isClosing });
    log.info({ kind, code, closed: isClosing }, "closed or opened in the panel");
  });
  await live.refresh();
  return new Response(null, { status: 204 });
}

/** @throws {Problem} 409 */
async function refuseUnfinished(
  { redis, live }: Pick<Runtime, "redis" | "live">,
  { kind, code }: Named,
): Promise<void> {
  if (kind === "courier") return;
  for (const channel of channelsOf(await live.refresh(), kind, code)) {
    const partition = companyPartition(channel.companyId);
    for (const { id, active } of channel.endpoints) {
      // Those of a disabled endpoint wait for nothing.
      if (!active) continue;
      const { queued, waiting, inFlight } = await readQueueDepths(redis, partition, id);
      const count = queued + waiting + inFlight;
      if (count > 0) {
        const detail = `Channel ${channel.code} has ${count} webhooks that are not delivered yet.`;
        throw new Problem(409, "WEBHOOKS_PENDING", detail);
      }
    }
    if (await hasOpenJobs(redis, channel)) {
      throw new Problem(409, "IMPORTS_RUNNING", `An import of channel ${channel.code} is running.`);
    }
  }
}

/** With their shadows. */
function channelsOf(
  { channels, companies }: Configuration,
  kind: "company" | "channel",
  code: string,
): Channel[] {
  const all = [...channels.values()];
  if (kind === "company") return all.filter((one) => companies.get(one.companyId)?.code === code);
  const live = all.find((one) => one.code === code);
  return all.filter(({ id, testOf }) => id === live?.id || testOf === live?.id);
}
