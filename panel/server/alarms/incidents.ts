/** Incidents: what is wrong at the moment, what was, and who has seen it. */
import { type Static, Type } from "@sinclair/typebox";
import { ALARMS, alarmText, codeOf } from "#core/alarms/rules/alarm.ts";
import type { Incident } from "#core/alarms/rules/incident.ts";
import {
  type Acknowledgement,
  acknowledge,
  findIncident,
  INCIDENTS_KEPT,
  isOpened,
  readAcknowledgements,
  readOpen,
  readPast,
} from "#core/alarms/store/incidents.ts";
import { route } from "#core/platform/http/access.ts";
import type { Runtime } from "#core/runtime/runtime.ts";
import { tenantOf } from "#panel/server/caller.ts";
import { notFound } from "#panel/server/not-found.ts";
import { noteChange, panelRoutes } from "#panel/server/panel-routes.ts";

const instant = Type.String({ description: "ISO 8601, UTC" });

export const IncidentView = Type.Object({
  id: Type.String(),
  code: Type.String({ description: "of the alarm, with what it is about" }),
  severity: Type.Union([Type.Literal("warning"), Type.Literal("critical")]),
  text: Type.Object({ en: Type.String(), it: Type.String() }),
  page: Type.String({ description: "of the panel, where the thing is" }),
  docs: Type.String({ description: "page and section of the documents" }),
  since: Type.String({ description: "when it was first found, ISO 8601" }),
  openedAt: instant,
  overAt: Type.Union([instant, Type.Null()], { description: "null = it is open" }),
  acknowledged: Type.Union([Type.Object({ by: Type.String(), at: instant }), Type.Null()], {
    description: "null = nobody has",
  }),
});
type IncidentView = Static<typeof IncidentView>;

const Incidents = Type.Object({
  open: Type.Array(IncidentView, { description: "the gravest first" }),
  past: Type.Array(IncidentView, {
    description: `those that are over, newest first, at most ${INCIDENTS_KEPT}`,
  }),
});

export function incidentRoutes(runtime: Runtime) {
  const { redis, live } = runtime;
  return panelRoutes(runtime, "incidents")
    .get(
      "/panel/api/incidents",
      async ({ caller }) => {
        const owner = tenantOf(caller);
        const [all, past] = await Promise.all([readOpen(redis), readPast(redis, owner)]);
        const open = all.filter((one) => one.owner === owner && isOpened(one));
        const ids = [...open, ...past].map(({ id }) => id);
        const acknowledgements = await readAcknowledgements(redis, ids);
        const views = [...open, ...past].map((one, at) =>
          incidentView(one, acknowledgements[at] ?? null),
        );
        return {
          open: views.slice(0, open.length).toSorted(byGravity),
          past: views.slice(open.length),
        };
      },
      route({
        access: { can: "alarms:read", of: "caller" },
        response: Incidents,
        summary: "Incidents of the caller: of the operators, a company or a courier",
      }),
    )
    .post(
      "/panel/api/incidents/:id/acknowledge",
      async ({ params, caller, request }) => {
        const incident = await findIncident(redis, tenantOf(caller), params.id);
        if (!incident) throw notFound("incident");
        const [before = null] = await readAcknowledgements(redis, [incident.id]);
        await acknowledge(redis, incident.id, { by: caller.actor, atMs: live.now() });
        const [after = null] = await readAcknowledgements(redis, [incident.id]);
        const view = incidentView(incident, after);
        noteChange(request, before && view, view);
        return view;
      },
      route({
        access: { can: "alarms:write", of: "incident" },
        response: IncidentView,
        summary: "Say that somebody is looking at it; the first one to say so is kept",
      }),
    );
}

function incidentView(incident: Incident, acknowledged: Acknowledgement | null): IncidentView {
  const { id, kind, severity, page, firstSeenMs, openedAtMs, overAtMs } = incident;
  return {
    id,
    code: codeOf(incident),
    severity,
    text: { en: alarmText(incident, "en"), it: alarmText(incident, "it") },
    page,
    docs: ALARMS[kind].docs,
    since: isoOf(firstSeenMs),
    openedAt: isoOf(openedAtMs ?? firstSeenMs),
    overAt: overAtMs === null ? null : isoOf(overAtMs),
    acknowledged: acknowledged && { by: acknowledged.by, at: isoOf(acknowledged.atMs) },
  };
}

function isoOf(ms: number): string {
  return new Date(ms).toISOString();
}

function byGravity(one: IncidentView, other: IncidentView): number {
  const rank = ({ severity }: IncidentView) => (severity === "critical" ? 0 : 1);
  return rank(one) - rank(other) || other.openedAt.localeCompare(one.openedAt);
}
