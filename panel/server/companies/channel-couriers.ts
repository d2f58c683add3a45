/** The couriers of a channel: which ones it ships with, what the merchant calls them, and its accounts with them. */

import { type Static, Type } from "@sinclair/typebox";
import type { Configuration } from "#core/configuration/store/configuration.ts";
import { labelCarriers } from "#core/merchants/rules/label-carrier.ts";
import type { Config } from "#core/platform/environment/config.ts";
import { Problem } from "#core/platform/errors/problem.ts";
import { route } from "#core/platform/http/access.ts";
import type { Fault } from "#core/platform/schema/fault.ts";
import type { Runtime } from "#core/runtime/runtime.ts";
import {
  ownersOfTranscodings,
  type StoredChannelCourier,
  TRANSCODING_TAKEN,
  withCourierDefaults,
} from "#core/setup/rules/merge-said.ts";
import { COURIERS_PER_CHANNEL, SetupChannelCourier } from "#core/setup/rules/setup.ts";
import { isTestCourier } from "#core/shipments/rules/test-parcel.ts";
import { jsonBody } from "#panel/server/http/checked-body.ts";
import { notFound } from "#panel/server/not-found.ts";
import { noteChange, panelRoutes } from "#panel/server/panel-routes.ts";
import { refuseFaults } from "#panel/server/webhooks/webhook-access.ts";
import { changeSettings } from "./channel-access.ts";
import { ChannelCourierView, channelCourierView } from "./companies.ts";

const strict = { additionalProperties: false } as const;

const { senderAccounts, code: _, ...merchants } = SetupChannelCourier.properties;
/** What the merchant decides. A sender account decides whose a parcel is, so it is the operators' (document 2). */
export const ChannelCourierInput = Type.Object(merchants, {
  ...strict,
  description: "absent = unchanged",
});

export const SenderAccountsInput = Type.Required(Type.Object({ senderAccounts }, strict));

type Couriers = readonly StoredChannelCourier[];

export function channelCourierRoutes(runtime: Runtime) {
  const { live, config } = runtime;
  return panelRoutes(runtime, "channel-couriers")
    .post(
      "/panel/api/channels/:channelCode/couriers",
      async ({ params, body: wanted, request, set }) => {
        const { code } = wanted;
        refuseFaults(faultsOfNew(code, await live.refresh(), config));
        const path = { ...params, courierCode: code };
        const added = await change(runtime, request, path, (all) => {
          refuseOneMore(all, code);
          const merged = [...all, withCourierDefaults(wanted)];
          refuseSharedNames(merged, code, wanted.transcodings ?? []);
          return merged;
        });
        set.status = 201;
        return viewOr404(added);
      },
      route({
        access: { can: "channels:write", of: "channel" },
        response: { 201: ChannelCourierView },
        summary: "Let the channel ship with one more courier",
        errors: [
          "COURIER_NOT_FOUND",
          "COURIER_IN_CHANNEL",
          "TOO_MANY_COURIERS",
          "CONFIGURATION_BUSY",
        ],
        body: jsonBody(SetupChannelCourier, { code: "BRT_ITA", transcodings: ["BRT"] }),
      }),
    )
    .put(
      "/panel/api/channels/:channelCode/couriers/:courierCode",
      ({ params, body, request }) => merge(runtime, request, params, body),
      route({
        access: { can: "shipping:write", of: "channel" },
        response: ChannelCourierView,
        summary: "Enable or disable a courier, name it, choose its labels",
        errors: ["COURIER_NOT_FOUND", "CONFIGURATION_BUSY"],
        body: jsonBody(ChannelCourierInput, { labelFormat: "ZPL" }),
      }),
    )
    .put(
      "/panel/api/channels/:channelCode/couriers/:courierCode/sender-accounts",
      ({ params, body, request }) => merge(runtime, request, params, body),
      route({
        access: { can: "channels:write", of: "channel" },
        response: ChannelCourierView,
        summary:
          "The channel's accounts with a courier, for shipments that are created from now on",
        body: jsonBody(SenderAccountsInput, { senderAccounts: ["ACC-1"] }),
        errors: ["COURIER_NOT_FOUND", "CONFIGURATION_BUSY"],
      }),
    )
    .delete(
      "/panel/api/channels/:channelCode/couriers/:courierCode",
      async ({ params, request, set }) => {
        await change(runtime, request, params, (all) => {
          const others = all.filter(({ code }) => code !== params.courierCode);
          if (others.length === all.length) throw notFound("courier");
          return others;
        });
        set.status = 204;
      },
      route({
        access: { can: "channels:write", of: "channel" },
        summary: "Let the channel create no more shipments with a courier",
        answers: { 204: { description: "removed" } },
        errors: ["COURIER_NOT_FOUND", "CONFIGURATION_BUSY"],
      }),
    );
}

/** @throws {Problem} 404, 409, 422 */
async function change(
  runtime: Runtime,
  request: Request,
  { channelCode, courierCode }: Names,
  changeOf: (all: Couriers) => Couriers,
) {
  const { before, after } = await changeSettings(runtime, channelCode, ({ couriers }) => ({
    couriers: changeOf(couriers),
  }));
  const [old, now] = [before, after].map(({ couriers }) => {
    const found = couriers.find(({ code }) => code === courierCode);
    return found ? channelCourierView(found) : null;
  });
  noteChange(request, old, now);
  return now ?? null;
}

async function merge(
  runtime: Runtime,
  request: Request,
  path: Names,
  news: Partial<SetupChannelCourier>,
): Promise<View> {
  const { courierCode } = path;
  const changed = await change(runtime, request, path, (all) => {
    if (!all.some(({ code }) => code === courierCode)) throw notFound("courier");
    const merged = all.map((one) => (one.code === courierCode ? { ...one, ...news } : one));
    refuseSharedNames(merged, courierCode, news.transcodings ?? []);
    return merged;
  });
  return viewOr404(changed);
}

/** The test couriers are those of every shadow. */
function faultsOfNew(code: string, { couriers }: Configuration, config: Config): Fault[] {
  const isCourier = couriers.has(code) && !isTestCourier(code);
  if (isCourier || labelCarriers(config.nationalCarrier)(code)) return [];
  return [{ path: "code", code: "NOT_ALLOWED", message: `No courier ${code}.` }];
}

interface Names {
  readonly channelCode: string;
  readonly courierCode: string;
}

type View = Static<typeof ChannelCourierView>;

function viewOr404(view: View | null): View {
  if (!view) throw notFound("courier");
  return view;
}

/** @throws {Problem} 409 */
function refuseOneMore(all: Couriers, code: string): void {
  if (all.some((one) => one.code === code)) {
    throw new Problem(409, "COURIER_IN_CHANNEL", "The channel has this courier already.");
  }
  if (all.length < COURIERS_PER_CHANNEL) return;
  const detail = `At most ${COURIERS_PER_CHANNEL} couriers a channel.`;
  throw new Problem(409, "TOO_MANY_COURIERS", detail);
}

/** @throws {Problem} 422 for each given transcoding that names another courier too, or stands twice */
function refuseSharedNames(all: Couriers, code: string, given: readonly string[]): void {
  const owners = ownersOfTranscodings(all);
  const shared = given.flatMap((text, at) =>
    (owners.get(text.toLowerCase()) ?? [code]).length > 1
      ? [{ path: `transcodings[${at}]`, code: "NOT_ALLOWED" as const, message: TRANSCODING_TAKEN }]
      : [],
  );
  refuseFaults(shared);
}
