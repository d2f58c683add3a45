/** `POST /panel/api/couriers/{code}/comparison`: the first-day comparison with another tracking of the same parcels (document 2). */

import { type Static, Type } from "@sinclair/typebox";
import { noteComparison } from "#core/configuration/store/comparisons.ts";
import { COMPARISON_RESULTS } from "#core/events/rules/compare-tracking.ts";
import { route } from "#core/platform/http/access.ts";
import type { Caller, PanelDeps } from "#panel/server/caller.ts";
import { CSV_FAULTS_LISTED, csvBody, faultsOfFile } from "#panel/server/http/csv-file.ts";
import { noteChange, noteNoChange, panelRoutes } from "#panel/server/panel-routes.ts";
import { compareFirstDay, type FirstDay, FURTHER_LISTED } from "./compare-first-day.ts";
import { courierOf } from "./courier-of.ts";
import { COMPARISON_FAULTS, COMPARISON_FILE_LINES, readTracking } from "./first-day-csv.ts";

const RESULTS = [...COMPARISON_RESULTS, "unknownNumber"] as const;
type Result = (typeof RESULTS)[number];

const Received = Type.Object({
  eventId: Type.String(),
  code: Type.String(),
  occurredAt: Type.String({ description: "UTC" }),
});

const Sums = Type.Object({
  lines: Type.Integer(),
  same: Type.Integer(),
  otherTime: Type.Integer(),
  otherCode: Type.Integer(),
  notReceived: Type.Integer(),
  unknownNumber: Type.Integer(),
  further: Type.Integer({
    description: "events received within the time of the file that no line says",
  }),
});

const ComparisonAnswer = Type.Object({
  errors: faultsOfFile(
    COMPARISON_FAULTS,
    `the first ${CSV_FAULTS_LISTED}; while there are any, nothing is compared`,
  ),
  sums: Type.Union([Sums, Type.Null()], { description: "null while there are errors" }),
  lines: Type.Array(
    Type.Object({
      line: Type.Integer(),
      trackingNumber: Type.String(),
      code: Type.String(),
      occurredAt: Type.String({ description: "UTC" }),
      result: Type.Unsafe<Result>(
        Type.Union(
          RESULTS.map((name) => Type.Literal(name)),
          {
            description:
              "same: code and time, to the minute; otherTime: the code, less than a day off; otherCode: the time; unknownNumber: no shipment of this courier has the number",
          },
        ),
      ),
      received: Type.Union([Received, Type.Null()], {
        description: "the event that stands for it",
      }),
    }),
    { description: "in the order of the file" },
  ),
  further: Type.Array(Type.Object({ trackingNumber: Type.String(), ...Received.properties }), {
    description: `the first ${FURTHER_LISTED}`,
  }),
});
type ComparisonAnswer = Static<typeof ComparisonAnswer>;

const EXAMPLE =
  "trackingNumber,code,occurredAt\nTN0001,DLV,2026-11-20T09:58:12+01:00\nTN0002,TRN,2026-11-20 08:15\n";

export function firstDayRoute(deps: PanelDeps) {
  return panelRoutes(deps, "first-day").post(
    "/panel/api/couriers/:code/comparison",
    async ({ params, body, request, caller }): Promise<ComparisonAnswer> => {
      const { code } = courierOf(await deps.live.refresh(), params.code);
      const { lines, errors } = await readTracking(body);
      if (errors.length > 0) {
        noteNoChange(request);
        return { errors: [...errors], sums: null, lines: [], further: [] };
      }
      const answer = answerOf(await compareFirstDay(deps, code, lines));
      await note(deps, request, caller, code, answer.sums);
      return answer;
    },
    route({
      access: { can: "events:read", of: "courier" },
      reads: true,
      response: ComparisonAnswer,
      summary: "First-day comparison: another tracking's events beside those received",
      description: `Columns: trackingNumber, code (the courier's own) and occurredAt (with an offset, or local in Rome); others are passed over. At most ${(COMPARISON_FILE_LINES - 1).toLocaleString("en")} lines below the head. That it was done is noted for the onboarding, unless by somebody who only reads.`,
      errors: ["COURIER_NOT_FOUND", "MALFORMED_BODY", "ARCHIVE_UNAVAILABLE"],
      body: csvBody(EXAMPLE),
    }),
  );
}

/** For the onboarding. Who only reads changes nothing. */
async function note(
  { redis, live }: PanelDeps,
  request: Request,
  { capabilities }: Caller,
  courier: string,
  { lines, same }: Static<typeof Sums>,
): Promise<void> {
  if (!capabilities.includes("courier-access:write")) {
    noteNoChange(request);
    return;
  }
  await noteComparison(redis, courier, { atMs: live.now(), lines, same });
  noteChange(request, null, { compared: lines, same });
}

function answerOf({ lines, further }: FirstDay) {
  const counts = { same: 0, otherTime: 0, otherCode: 0, notReceived: 0, unknownNumber: 0 };
  for (const { result } of lines) counts[result] += 1;
  return {
    errors: [],
    sums: { lines: lines.length, ...counts, further: further.length },
    lines: lines.map(({ occurredAtMs, received, ...line }) => ({
      ...line,
      occurredAt: isoOf(occurredAtMs),
      received: received && withTime(received),
    })),
    further: further.slice(0, FURTHER_LISTED).map(withTime),
  };
}

function withTime<T extends { readonly occurredAtMs: number }>({ occurredAtMs, ...one }: T) {
  return { ...one, occurredAt: isoOf(occurredAtMs) };
}

function isoOf(ms: number): string {
  return new Date(ms).toISOString();
}
