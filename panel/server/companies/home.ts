/** `GET /panel/api/companies/{code}/home`: what a merchant should look at today. */
import { Type } from "@sinclair/typebox";
import type { CompanyCourier, Insights } from "#analytics/insights.ts";
import { route } from "#core/platform/http/access.ts";
import { limit } from "#core/platform/schema/limit.ts";
import { daysBetween, romeDate } from "#core/platform/time/rome-time.ts";
import type { Runtime } from "#core/runtime/runtime.ts";
import { capOf } from "#core/shipments/rules/new-shipment.ts";
import { STATUSES, type Status } from "#core/statuses/rules/status.ts";
import type { PanelDeps } from "#panel/server/caller.ts";
import { notFound } from "#panel/server/not-found.ts";
import { panelRoutes } from "#panel/server/panel-routes.ts";
import { type ListAsk, listShipments } from "#panel/server/shipments/list-shipments.ts";

const COMPARED = limit(
  500,
  "shipments under way that the merchant's home compares with their lanes",
  "those with the earliest ship dates",
);
const LATE_SHOWN = 20;
/** Days without news from which on each group begins. */
const AGES = [0, 1, 3, 7] as const;
const UNDER_WAY = STATUSES.filter((status) => status !== "DELIVERED" && status !== "RETURNED");

export const Home = Type.Object({
  ages: Type.Array(
    Type.Object({
      status: Type.String(),
      counts: Type.Array(Type.Integer(), {
        description: `shipments without news for ${AGES.join(", ")} days and more, less those of the next group`,
      }),
    }),
    { description: "of shipments under way" },
  ),
  compared: Type.Integer({ description: "shipments under way whose lane has a figure" }),
  lateTotal: Type.Integer({ description: "those among them that are late" }),
  late: Type.Array(
    Type.Object({
      id: Type.Integer(),
      trackingNumber: Type.String(),
      courier: Type.String(),
      status: Type.String(),
      statusDetail: Type.Integer(),
      days: Type.Integer({ description: "since its ship date" }),
      p90: Type.Integer({ description: "days in which nine of ten arrive on its lane" }),
      sample: Type.Integer({ description: "deliveries that p90 stands on" }),
    }),
    { description: "longer under way than nine of ten on their lane, the latest first" },
  ),
  couriers: Type.Unsafe<readonly CompanyCourier[]>(
    Type.Array(
      Type.Object({
        courier: Type.String(),
        deliveries: Type.Integer(),
        leadMedian: Type.Number(),
        leadMedianInterval: Type.Union([
          Type.Object({ low: Type.Number(), high: Type.Number() }),
          Type.Null(),
        ]),
        leadMean: Type.Number(),
        leadP90: Type.Number(),
        troubleShare: Type.Number(),
      }),
      { description: "the company's own deliveries of the last 30 days" },
    ),
  ),
});

type Deps = PanelDeps & Pick<Runtime, "secrets">;

export function homeRoute(deps: Deps, insights: Insights) {
  return panelRoutes(deps, "home").get(
    "/panel/api/companies/:code/home",
    async ({ params }) => {
      const configuration = await deps.live.refresh();
      const company = [...configuration.companies.values()].find(
        ({ code }) => code === params.code,
      );
      if (!company) throw notFound("company");
      const channels = company.channelIds.flatMap((id) => configuration.channels.get(id) ?? []);
      const ask = { configuration, channels, text: "", courier: "", shipFrom: null, shipTo: null };
      const [ages, lateness, couriers] = await Promise.all([
        agesOf(deps, ask),
        lateOf(deps, insights, ask),
        insights.companyCouriers(deps.secrets.vault.mac(`company ${company.id}`), deps.live.now()),
      ]);
      return { ages, ...lateness, couriers };
    },
    route({
      access: { can: "shipments:read", of: "company" },
      response: Home,
      summary: "What a merchant should look at: parcels by status and age, late ones, its couriers",
      errors: ["ANALYTICS_UNAVAILABLE", "ARCHIVE_UNAVAILABLE"],
    }),
  );
}

type Asked = Pick<
  ListAsk,
  "configuration" | "channels" | "text" | "courier" | "shipFrom" | "shipTo"
>;

const UPDATED_FIRST = { by: "upd", descending: true } as const;

async function agesOf(deps: Deps, asked: Asked) {
  const count = async (status: Status, quietDays: number | null) => {
    const page = { statuses: [status], quietDays, order: UPDATED_FIRST, offset: 0, limit: 1 };
    return (await listShipments(deps, undefined, { ...asked, ...page })).total;
  };
  const all = await Promise.all(
    UNDER_WAY.map(async (status) => {
      const total = await count(status, null);
      if (total === 0) return [];
      const quiet = await Promise.all(AGES.slice(1).map((days) => count(status, days)));
      const least = [total, ...quiet];
      return [{ status, counts: least.map((one, at) => Math.max(0, one - (least[at + 1] ?? 0))) }];
    }),
  );
  return all.flat();
}

async function lateOf(deps: Deps, insights: Insights, asked: Asked) {
  const earliest = { by: "ship", descending: false } as const;
  const page = { statuses: UNDER_WAY, quietDays: null, order: earliest, offset: 0 };
  const { shipments } = await listShipments(deps, undefined, {
    ...asked,
    ...page,
    limit: COMPARED,
  });
  const nowMs = deps.live.now();
  const today = romeDate(nowMs);
  const known = shipments.flatMap((one) => {
    const destCap = capOf(one.record.consignee);
    return destCap === null ? [] : [{ ...one, destCap }];
  });
  const caps = [...new Set(known.map(({ destCap }) => destCap))];
  const lanes = caps.length === 0 ? [] : await insights.lanesP90(caps, nowMs);
  const laneOf = new Map(lanes.map((lane) => [`${lane.courier} ${lane.destCap}`, lane]));
  const compared = known.flatMap(({ record, state, destCap }) => {
    const lane = laneOf.get(`${record.courier} ${destCap}`);
    if (!lane) return [];
    const { id, trackingNumber, courier, shipDate } = record;
    const { status, detail } = state.pair;
    const { p90, deliveries: sample } = lane;
    const days = daysBetween(shipDate, today);
    return [{ id, trackingNumber, courier, status, statusDetail: detail, days, p90, sample }];
  });
  const late = compared
    .filter(({ days, p90 }) => days > p90)
    .sort((one, other) => other.days - other.p90 - (one.days - one.p90));
  return { compared: compared.length, lateTotal: late.length, late: late.slice(0, LATE_SHOWN) };
}
