/** What the webhooks of a setup file must agree with beyond their schema (document 3, "Endpoint configuration", "Limits"). */
import { createHash } from "node:crypto";
import type {
  AlarmReceiverEntity,
  ChannelEntity,
  EndpointEntity,
} from "#core/configuration/rules/entities.ts";
import { hasPreviousSecret } from "#core/configuration/store/endpoint-entity.ts";
import { receiverName } from "#core/configuration/store/receiver-entity.ts";
import { testCodeOf } from "#core/configuration/store/test-channels.ts";
import type { Cidr } from "#core/platform/network/cidr.ts";
import type { Resolve } from "#core/platform/network/resolve-name.ts";
import { hostOf, isPrivateByItself, vetHosts } from "#core/platform/network/vetted-address.ts";
import type { Fault } from "#core/platform/schema/fault.ts";
import { hashToken, type Vault } from "#core/platform/secrets/secrets.ts";
import {
  ENDPOINTS_PER_CHANNEL,
  ownerOfReceiver,
  type Remaining,
  type SetupChannel,
  type SetupFile,
  type SetupWebhook,
} from "#core/setup/rules/setup.ts";

import type { SetupAuthor } from "./setup-writer.ts";

interface StoredWebhooks {
  /** By code. */
  readonly channels: ReadonlyMap<string, ChannelEntity>;
  /** By `channelId:code`. */
  readonly endpoints: ReadonlyMap<string, EndpointEntity>;
  /** Endpoints that the panel deleted: fingerprint of the file's entry, which does not bring them back. */
  readonly deletedWebhooks: ReadonlyMap<string, string>;
  /** By owner and code. */
  readonly alarmReceivers: ReadonlyMap<string, AlarmReceiverEntity>;
}

export interface WebhookRules {
  readonly by: SetupAuthor;
  readonly vault: Vault;
  readonly nowMs: number;
  readonly webhookAllowedCidrs?: readonly Cidr[];
  readonly resolve?: Resolve;
}

export interface WebhookChecks {
  readonly faults: readonly Fault[];
  /** Hosts that no name server has resolved in time: they are let pass, and judged on every send. */
  readonly unresolvedHosts: readonly string[];
}

/** Something of the file with a URL that webhooks are sent to. */
interface Target {
  readonly path: string;
  readonly url: string;
  /** It is saved now: its host is resolved. What stays as it is must not stop a start because of its owner's name server. */
  readonly isNew: boolean;
}

/** Resolves the hosts of what is new or has changed, for a few seconds at most. */
export async function checkWebhooks(
  file: Remaining<SetupFile>,
  stored: StoredWebhooks,
  rules: WebhookRules,
): Promise<WebhookChecks> {
  const { webhookAllowedCidrs = [], resolve } = rules;
  const channels = (file.companies ?? []).flatMap((company, at) =>
    (company.channels ?? []).map((channel, index) => ({
      channel,
      owner: channel.code === undefined ? undefined : stored.channels.get(channel.code),
      test: channel.code === undefined ? undefined : stored.channels.get(testCodeOf(channel.code)),
      path: `companies[${at}].channels[${index}]`,
    })),
  );
  const faults = channels.flatMap(({ channel, owner, test, path }) => [
    ...checkCount(channel, { live: owner?.id, test: test?.id }, stored, path),
    ...checkSecrets(channel, { live: owner?.id, test: test?.id }, stored, path, rules),
  ]);
  const targets = [
    ...channels.flatMap(({ channel, owner, test, path }) =>
      targetsOf(channel, owner, { live: owner?.id, test: test?.id }, stored, path),
    ),
    ...receiverTargets(file, stored),
  ];
  const hosts = targets.flatMap(({ url, isNew }) => (isNew ? [hostOf(new URL(url))] : []));
  const { refused, unresolved } = await vetHosts(hosts, webhookAllowedCidrs, resolve);
  const isRefused = ({ url, isNew }: Target) =>
    isPrivateByItself(url, webhookAllowedCidrs) || (isNew && refused.has(hostOf(new URL(url))));
  const message = "The host must resolve only to public addresses.";
  const notPublic = targets.flatMap((target): Fault[] =>
    isRefused(target) ? [{ path: target.path, code: "NOT_ALLOWED", message }] : [],
  );
  return { faults: [...faults, ...notPublic], unresolvedHosts: [...unresolved] };
}

function targetsOf(
  { webhooks = [], webhookV1 }: Remaining<SetupChannel>,
  owner: ChannelEntity | undefined,
  ids: OwnerIds,
  stored: StoredWebhooks,
  path: string,
): Target[] {
  // What is no URL is a fault already.
  const target = (name: string, url: string | undefined, isSaved: boolean): Target[] =>
    url !== undefined && URL.canParse(url)
      ? [{ path: `${path}.${name}.url`, url, isNew: isSaved }]
      : [];
  return [
    ...webhooks.flatMap((webhook, at) =>
      target(`webhooks[${at}]`, webhook.url, isNew(webhook, ids[webhook.mode ?? "live"], stored)),
    ),
    ...target(
      "webhookV1",
      webhookV1?.url,
      JSON.stringify(webhookV1) !== JSON.stringify(owner?.setupSaid.own?.webhookV1),
    ),
  ];
}

/** Webhooks that receive alarms. */
function receiverTargets(
  { alarmReceivers = [] }: Remaining<SetupFile>,
  stored: StoredWebhooks,
): Target[] {
  return alarmReceivers.flatMap((receiver, at): Target[] => {
    const { url, code = "" } = receiver;
    if (url === undefined || !URL.canParse(url)) return [];
    const name = receiverName({ owner: ownerOfReceiver(receiver), code });
    const isNewUrl = stored.alarmReceivers.get(name)?.fileEntry !== fingerprintOf(receiver);
    return [{ path: `alarmReceivers[${at}].url`, url, isNew: isNewUrl }];
  });
}

function isNew(
  webhook: Remaining<SetupWebhook>,
  channelId: number | undefined,
  { endpoints, deletedWebhooks }: StoredWebhooks,
): boolean {
  const key = `${channelId}:${webhook.code}`;
  const applied = endpoints.get(key)?.fileEntry || deletedWebhooks.get(key);
  return applied !== fingerprintOf(webhook);
}

/** Of the channel and of its shadow; undefined while there is none. */
interface OwnerIds {
  readonly live: number | undefined;
  readonly test: number | undefined;
}

/** Document 3, "Limits": endpoints per channel, those the file does not name included. */
function checkCount(
  { webhooks = [] }: Remaining<SetupChannel>,
  ids: OwnerIds,
  { endpoints, deletedWebhooks }: StoredWebhooks,
  path: string,
): Fault[] {
  const isTooMany = (["live", "test"] as const).some((mode) => {
    const channelId = ids[mode];
    const own = [...endpoints.values()].filter((endpoint) => endpoint.channelId === channelId);
    const wanted = webhooks.filter(
      (webhook) =>
        (webhook.mode ?? "live") === mode &&
        deletedWebhooks.get(`${channelId}:${webhook.code}`) !== fingerprintOf(webhook),
    );
    return new Set([...own, ...wanted].map(({ code }) => code)).size > ENDPOINTS_PER_CHANNEL;
  });
  return !isTooMany
    ? []
    : [{ path: `${path}.webhooks`, code: "TOO_MANY", message: "At most 5 endpoints a channel." }];
}

/**
 * A rotation while an older secret still signs is refused, as in the panel: receivers may know no other. Going back to that
 * older secret ends none.
 */
function checkSecrets(
  { webhooks = [] }: Remaining<SetupChannel>,
  ids: OwnerIds,
  { endpoints }: StoredWebhooks,
  path: string,
  { by, vault, nowMs }: WebhookRules,
): Fault[] {
  return webhooks.flatMap(
    ({ code, mode = "live", secret, revokePrevious = false }, at): Fault[] => {
      const before = endpoints.get(`${ids[mode]}:${code}`);
      if (!before || secret === undefined || revokePrevious) return [];
      const { previousSecret, previousUntilMs } = before;
      const endsOne =
        isRotation(by, secret, before, vault) &&
        previousSecret !== null &&
        hasPreviousSecret(before, nowMs) &&
        vault.open(previousSecret) !== secret;
      if (!endsOne) return [];
      const until = new Date(previousUntilMs).toISOString();
      const message = `The secret of an earlier rotation signs until ${until}. Wait, or end it by "revokePrevious": true.`;
      return [{ path: `${path}.webhooks[${at}].secret`, code: "NOT_ALLOWED", message }];
    },
  );
}

/** Whether a file names another secret than the last time, or a call any, which is not the one in force. */
export function isRotation(
  by: SetupAuthor,
  secret: string,
  before: EndpointEntity,
  vault: Vault,
): boolean {
  const isNew = by === "panel" || before.fileSecretHash !== hashToken(secret);
  return isNew && vault.open(before.secret) !== secret;
}

/** Tells whether an entry of the file has changed since it was applied. */
export function fingerprintOf(entry: object): string {
  return createHash("sha256").update(JSON.stringify(entry)).digest("base64url");
}
