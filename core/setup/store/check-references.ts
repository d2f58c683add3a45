/** What a setup file names must exist, in the file or from before, and belong to nobody else. */

import type { ChannelEntity } from "#core/configuration/rules/entities.ts";
import { listedTokens } from "#core/configuration/store/courier-access.ts";
import { RECEIVERS_PER_OWNER, receiverName } from "#core/configuration/store/receiver-entity.ts";
import { testCodeOf } from "#core/configuration/store/test-channels.ts";
import { isGeneric, type LabelCarriers } from "#core/merchants/rules/label-carrier.ts";
import { parseCidr } from "#core/platform/network/cidr.ts";
import type { Fault } from "#core/platform/schema/fault.ts";
import { hashToken } from "#core/platform/secrets/secrets.ts";
import {
  mergeChannelCouriers,
  ownersOfTranscodings,
  TRANSCODING_TAKEN,
} from "#core/setup/rules/merge-said.ts";
import {
  ownerOfReceiver,
  type Remaining,
  type SetupCatalogueEntry,
  type SetupChannel,
  type SetupCompany,
  type SetupCourier,
  type SetupFile,
  tokensGiven,
} from "#core/setup/rules/setup.ts";
import { isTestCourier } from "#core/shipments/rules/test-parcel.ts";
import { detailsOf, mergedPlatforms, type Stored } from "./stored-setup.ts";

const NO_NETWORK = "An address or a network such as 10.0.0.0/8 or fd00::/8.";

/** What exists, and who has what nobody else may have. */
interface Known {
  readonly couriers: ReadonlySet<string>;
  readonly platforms: ReadonlySet<string>;
  readonly statusDetails: ReadonlySet<number>;
  readonly isLabelCarrier: LabelCarriers;
  /** Courier codes by the hash of a token. */
  readonly tokens: ReadonlyMap<string, string>;
  /** Courier codes by client id. */
  readonly clients: ReadonlyMap<string | undefined, string>;
  /** `channelId:code` by the hash of an API key. */
  readonly apiKeys: ReadonlyMap<string, string>;
}

/** @param isLabelCarrier default: the generic carrier alone */
export function checkReferences(
  file: Remaining<SetupFile>,
  stored: Stored,
  isLabelCarrier: LabelCarriers = isGeneric,
): Fault[] {
  const known = knownWith(file, stored, isLabelCarrier);
  const inCouriers = (file.couriers ?? []).flatMap((courier, at) =>
    courierFaults(courier, known, `couriers[${at}]`),
  );
  const inChannels = (file.companies ?? []).flatMap((company, at) =>
    (company.channels ?? []).flatMap((channel, position) => {
      const path = `companies[${at}].channels[${position}]`;
      const owner = channel.code === undefined ? undefined : stored.channels.get(channel.code);
      return [
        ...ownerFaults(company, owner, stored, path),
        ...channelFaults(channel, owner, stored, known, path),
      ];
    }),
  );
  const inReceivers = receiverFaults(file, stored, known.couriers);
  return [...inCouriers, ...inChannels, ...inReceivers];
}

function receiverFaults(
  { alarmReceivers = [], companies = [] }: Remaining<SetupFile>,
  stored: Stored,
  couriers: ReadonlySet<string>,
): Fault[] {
  const known = new Set([
    ...stored.companies.keys(),
    ...companies.flatMap(({ code = [] }) => code),
  ]);
  const owners = [
    ...[...stored.alarmReceivers.values()].map(({ owner, code }) => ({ owner, code })),
    ...alarmReceivers.map((one) => ({ owner: ownerOfReceiver(one), code: one.code })),
  ];
  return alarmReceivers.flatMap((one, at): Fault[] => {
    const { company, courier, code = "", email = "", url } = one;
    const path = `alarmReceivers[${at}]`;
    const owner = ownerOfReceiver(one);
    const own = owners.filter((other) => other.owner === owner).map((other) => other.code);
    const before = stored.alarmReceivers.get(receiverName({ owner, code }));
    const hasPlace = email !== "" || url !== undefined || Boolean(before?.email || before?.url);
    return [
      ...(company !== undefined && !known.has(company)
        ? [notAllowed(`${path}.company`, `No company ${company}.`)]
        : []),
      ...(courier !== undefined && !couriers.has(courier)
        ? [notAllowed(`${path}.courier`, `No courier ${courier}.`)]
        : []),
      ...(hasPlace ? [] : [notAllowed(path, "It needs an e-mail address or a URL.")]),
      ...(new Set(own).size > RECEIVERS_PER_OWNER
        ? [notAllowed(path, `At most ${RECEIVERS_PER_OWNER} receivers of the same alarms.`)]
        : []),
    ];
  });
}

function knownWith(
  file: Remaining<SetupFile>,
  stored: Stored,
  isLabelCarrier: LabelCarriers,
): Known {
  const couriers = [...stored.couriers.values()];
  return {
    couriers: new Set([
      ...stored.couriers.keys(),
      ...(file.couriers ?? []).flatMap(({ code = [] }) => code),
    ]),
    platforms: new Set(mergedPlatforms(file, stored.registry)),
    statusDetails: new Set(
      [...detailsOf(stored.registry), ...(file.statusDetails ?? [])].flatMap(({ id = [] }) => id),
    ),
    isLabelCarrier,
    tokens: new Map(
      couriers.flatMap((courier) =>
        listedTokens(courier).map((hash) => [hash, courier.code] as const),
      ),
    ),
    clients: new Map(couriers.map((courier) => [courier.oauth?.clientId, courier.code] as const)),
    apiKeys: new Map([...stored.apiKeys].map(([owner, key]) => [key.hash, owner])),
  };
}

function courierFaults(courier: Remaining<SetupCourier>, known: Known, path: string): Fault[] {
  return [
    ...(isTestCourier(courier.code ?? "")
      ? [notAllowed(`${path}.code`, "The code is the test couriers'.")]
      : []),
    ...tokensGiven(courier).flatMap((token, index) => {
      const owner = known.tokens.get(hashToken(token));
      return owner === undefined || owner === courier.code
        ? []
        : [notAllowed(`${path}.tokens[${index}]`, "The token is another courier's.")];
    }),
    ...(courier.allowedIps ?? []).flatMap((text, index): Fault[] =>
      parseCidr(text)
        ? []
        : [{ path: `${path}.allowedIps[${index}]`, code: "BAD_FORMAT", message: NO_NETWORK }],
    ),
    ...clientFaults(courier, known.clients, `${path}.oauth.clientId`),
    ...(courier.catalogue ?? []).flatMap((entry, index) =>
      detailFaults(entry, known.statusDetails, `${path}.catalogue[${index}]`),
    ),
  ];
}

function ownerFaults(
  { code }: Remaining<SetupCompany>,
  owner: ChannelEntity | undefined,
  stored: Stored,
  path: string,
): Fault[] {
  const ownerId = code && stored.companies.get(code)?.id;
  return owner && code && ownerId !== owner.companyId
    ? [notAllowed(`${path}.code`, "The channel is another company's.")]
    : [];
}

function channelFaults(
  channel: Remaining<SetupChannel>,
  owner: ChannelEntity | undefined,
  stored: Stored,
  { couriers, platforms, apiKeys, isLabelCarrier }: Known,
  path: string,
): Fault[] {
  const shadow = owner && stored.channels.get(testCodeOf(owner.code));
  return [
    ...transcodingFaults(channel, owner, path),
    ...(channel.couriers ?? []).flatMap(({ code }, index) =>
      code === undefined || couriers.has(code) || isLabelCarrier(code)
        ? []
        : [notAllowed(`${path}.couriers[${index}].code`, `No courier ${code}.`)],
    ),
    ...(channel.orders ?? []).flatMap((order, index) => [
      ...(order.source === undefined || platforms.has(order.source)
        ? []
        : [notAllowed(`${path}.orders[${index}].source`, `No platform ${order.source}.`)]),
      ...(order.courier === undefined || couriers.has(order.courier)
        ? []
        : [notAllowed(`${path}.orders[${index}].courier`, `No courier ${order.courier}.`)]),
    ]),
    ...(channel.apiKeys ?? []).flatMap(({ code, mode, key }, index) => {
      const known = key === undefined ? undefined : apiKeys.get(hashToken(key));
      const ownerId = mode === "test" ? shadow?.id : owner?.id;
      return known === undefined || known === `${ownerId}:${code}`
        ? []
        : [notAllowed(`${path}.apiKeys[${index}].key`, "The key is in use elsewhere.")];
    }),
  ];
}

/** A transcoding that is new in the file and stands already with a courier that the file does not name: the panel's, say. */
function transcodingFaults(
  channel: Remaining<SetupChannel>,
  owner: ChannelEntity | undefined,
  path: string,
): Fault[] {
  if (!owner) return [];
  const merged = mergeChannelCouriers(owner.couriers, owner.setupSaid.couriers, channel.couriers);
  const owners = ownersOfTranscodings(merged);
  const named = new Set(
    channel.couriers?.flatMap(({ code, transcodings }) => (transcodings && code ? [code] : [])),
  );
  return (channel.couriers ?? []).flatMap(({ code, transcodings = [] }, at) =>
    transcodings.flatMap((text, index) => {
      const others = owners.get(text.toLowerCase()) ?? [];
      return others.includes(code ?? "") && others.some((one) => one !== code && !named.has(one))
        ? [notAllowed(`${path}.couriers[${at}].transcodings[${index}]`, TRANSCODING_TAKEN)]
        : [];
    }),
  );
}

/** Details that an entry or one of its rules names and the registry does not have. */
export function detailFaults(
  entry: Remaining<Pick<SetupCatalogueEntry, "statusDetail" | "rules">>,
  details: ReadonlySet<number>,
  path: string,
): Fault[] {
  // A rule that was cut out leaves a hole, which flatMap passes over.
  const named = [
    { statusDetail: entry.statusDetail ?? 0, at: path },
    ...(entry.rules ?? []).flatMap(({ statusDetail = 0 }, index) => ({
      statusDetail,
      at: `${path}.rules[${index}]`,
    })),
  ];
  return named.flatMap(({ statusDetail, at }) =>
    statusDetail === 0 || details.has(statusDetail)
      ? []
      : [notAllowed(`${at}.statusDetail`, `No status detail ${statusDetail}.`)],
  );
}

function clientFaults(
  { code, oauth }: Remaining<SetupCourier>,
  owners: ReadonlyMap<string | undefined, string>,
  path: string,
): Fault[] {
  const owner = oauth?.clientId === undefined ? undefined : owners.get(oauth.clientId);
  return owner === undefined || owner === code
    ? []
    : [notAllowed(path, "The client id is another courier's.")];
}

function notAllowed(path: string, message: string): Fault {
  return { path, code: "NOT_ALLOWED", message };
}
