/** Applies a setup file. Twice changes nothing the second time; a faulty file changes nothing at all. */
import { type Cidr, parseCidr } from "#core/cidr.ts";
import { isGeneric, type LabelCarriers } from "#core/domain/labels/label-carrier.ts";
import type { DateSupport } from "#core/domain/labels/stock-release.ts";
import type { Fault } from "#core/domain/schema/fault.ts";
import {
  checkSetup,
  type Remaining,
  SCOPES,
  type SetupApiKey,
  type SetupCatalogueEntry,
  type SetupChannel,
  type SetupCompany,
  type SetupCourier,
  type SetupFile,
  type SetupStatusDetail,
  type SetupWebhook,
  wellFormedPart,
  withoutOrderNulls,
} from "#core/domain/setup/setup.ts";
import { type CatalogueEntry, sameMapping } from "#core/domain/statuses/map-status.ts";
import { mergeCatalogue } from "#core/domain/statuses/merge-catalogue.ts";
import { DEFAULT_STATUS_DETAILS } from "#core/domain/statuses/status-details.ts";
import type { Redis } from "#core/redis/client/client.ts";
import { DELETED_WEBHOOKS_KEY } from "#core/redis/client/keys.ts";
import {
  clientIdOf,
  courierAccess,
  listedTokens,
  textOf,
} from "#core/redis/config/courier-access.ts";
import {
  earlierTargetsAfter,
  newEndpointId,
  newWebhookSecret,
  rotatedSecret,
} from "#core/redis/config/endpoint-entity.ts";
import {
  type ApiKeyEntity,
  allEntities,
  type BoxEntity,
  bumpVersion,
  type ChannelEntity,
  type CompanyEntity,
  type CourierEntity,
  type EndpointEntity,
  type EntityKind,
  nextId,
  type RegistryEntity,
  saveEntity,
  type TemplateEntity,
} from "#core/redis/config/entities.ts";
import { underSetupLock } from "#core/redis/config/setup-lock.ts";
import { putOrders } from "#core/redis/merchant/orders.ts";
import { putSandbox } from "#core/redis/merchant/sandbox.ts";
import { activateRemap, announceRemap, catalogueOf } from "#core/redis/shipments/remaps.ts";
import type { Resolve } from "#core/resolve-name.ts";
import { hashToken, newToken, type Vault } from "#core/secrets.ts";
import { checkWebhooks, fingerprintOf, isRotation, type WebhookChecks } from "./setup-webhooks.ts";

export class SetupFaults extends Error {
  constructor(readonly faults: readonly Fault[]) {
    const lines = faults.map(
      ({ path, code, message }) => `${path || "(file)"}: ${code} ${message}`,
    );
    super(`The setup file has ${faults.length} fault(s):\n  ${lines.join("\n  ")}`);
  }
}

/** A secret the file left out: generated now and shown this once. */
export interface GeneratedSecret {
  /** For example `channel acme-it, API key main`. */
  readonly owner: string;
  readonly secret: string;
}

export interface Applied {
  /** Entities written; 0 when the file changes nothing. */
  readonly written: number;
  readonly generated: readonly GeneratedSecret[];
  /** Hosts of new or changed webhooks whose addresses could not be checked now; every send checks them. */
  readonly unresolvedHosts: readonly string[];
}

/**
 * @throws {SetupFaults} with every fault of the file; nothing has been changed then
 */
export async function applySetup(
  redis: Redis,
  vault: Vault,
  given: unknown,
  nowMs: number,
  world: SetupWorld = {},
): Promise<Applied> {
  const file = withoutOrderNulls(given);
  const faults = checkSetup(file);
  const wellFormed = wellFormedPart(file, faults);
  // Processes that start together apply the same file one after the other.
  return underSetupLock(redis, async () => {
    const stored = await readStored(redis);
    const webhooks = wellFormed
      ? await checkWebhooks(wellFormed, stored, { vault, nowMs, ...world })
      : NOTHING_CHECKED;
    const unknown = wellFormed ? checkReferences(wellFormed, stored, world) : [];
    const all = [...faults, ...unknown, ...webhooks.faults];
    if (all.length > 0) throw new SetupFaults(all);
    const application = createApplication(redis, vault, stored, nowMs);
    await application.apply(file as SetupFile);
    return { ...application.result(), unresolvedHosts: webhooks.unresolvedHosts };
  });
}

const NOTHING_CHECKED: WebhookChecks = { faults: [], unresolvedHosts: [] };

/** What of the installation's own configuration a file must agree with. */
export interface SetupWorld {
  /** Default: the generic carrier alone. */
  readonly isLabelCarrier?: LabelCarriers;
  /** Private networks that webhooks may reach all the same. */
  readonly webhookAllowedCidrs?: readonly Cidr[];
  readonly resolve?: Resolve;
}

const NO_NETWORK = "An address or a network such as 10.0.0.0/8 or fd00::/8.";

interface Stored {
  readonly couriers: ReadonlyMap<string, CourierEntity>;
  readonly companies: ReadonlyMap<string, CompanyEntity>;
  readonly boxes: ReadonlyMap<string, BoxEntity>;
  readonly channels: ReadonlyMap<string, ChannelEntity>;
  readonly apiKeys: ReadonlyMap<string, ApiKeyEntity>;
  readonly endpoints: ReadonlyMap<string, EndpointEntity>;
  readonly templates: ReadonlyMap<string, TemplateEntity>;
  readonly registry: RegistryEntity | undefined;
  /** Endpoints that the panel deleted: fingerprint of the file's entry, which does not bring them back. */
  readonly deletedWebhooks: ReadonlyMap<string, string>;
}

async function readStored(redis: Redis): Promise<Stored> {
  const [couriers, companies, boxes, channels, apiKeys, endpoints, templates, [registry], deleted] =
    await Promise.all([
      allEntities(redis, "courier"),
      allEntities(redis, "company"),
      allEntities(redis, "box"),
      allEntities(redis, "channel"),
      allEntities(redis, "apiKey"),
      allEntities(redis, "endpoint"),
      allEntities(redis, "template"),
      allEntities(redis, "registry"),
      redis.hGetAll(DELETED_WEBHOOKS_KEY),
    ]);
  return {
    couriers: new Map(couriers.map((one) => [one.code, one])),
    companies: new Map(companies.map((one) => [one.code, one])),
    boxes: new Map(boxes.map((one) => [`${one.companyId}:${one.code}`, one])),
    channels: new Map(channels.map((one) => [one.code, one])),
    apiKeys: new Map(apiKeys.map((one) => [`${one.channelId}:${one.code}`, one])),
    endpoints: new Map(endpoints.map((one) => [`${one.channelId}:${one.code}`, one])),
    templates: new Map(templates.map((one) => [templateId(one), one])),
    registry,
    deletedWebhooks: new Map(Object.entries(deleted)),
  };
}

function templateId({ channelId, event, language }: TemplateEntity): string {
  return `${channelId}:${event}:${language}`;
}

/** What the file names must exist, in the file or from before. */
function checkReferences(
  file: Remaining<SetupFile>,
  stored: Stored,
  { isLabelCarrier = isGeneric }: SetupWorld,
): Fault[] {
  const couriers = new Set([
    ...stored.couriers.keys(),
    ...(file.couriers ?? []).flatMap(({ code = [] }) => code),
  ]);
  const platforms = new Set(mergedPlatforms(file, stored.registry));
  const details = new Set(
    [...detailsOf(stored.registry), ...(file.statusDetails ?? [])].flatMap(({ id = [] }) => id),
  );
  const tokens = new Map(
    [...stored.couriers.values()].flatMap((courier) =>
      listedTokens(courier).map((hash) => [hash, courier.code] as const),
    ),
  );
  const clients = new Map(
    [...stored.couriers.values()].map((courier) => [clientIdOf(courier), courier.code] as const),
  );
  const keys = new Map([...stored.apiKeys].map(([owner, key]) => [key.hash, owner]));
  const inCouriers = (file.couriers ?? []).flatMap((courier, at) => [
    ...(courier.tokens ?? []).flatMap((token, index) => {
      const owner = tokens.get(hashToken(token));
      return owner === undefined || owner === courier.code
        ? []
        : [notAllowed(`couriers[${at}].tokens[${index}]`, "The token is another courier's.")];
    }),
    ...(courier.allowedIps ?? []).flatMap((text, index): Fault[] =>
      parseCidr(text)
        ? []
        : [
            {
              ...notAllowed(`couriers[${at}].allowedIps[${index}]`, NO_NETWORK),
              code: "BAD_FORMAT",
            },
          ],
    ),
    ...clientFaults(courier, clients, `couriers[${at}].oauth.clientId`),
    ...(courier.catalogue ?? []).flatMap((entry, index) =>
      detailFaults(entry, details, `couriers[${at}].catalogue[${index}]`),
    ),
  ]);
  const inChannels = (file.companies ?? []).flatMap((company, at) =>
    (company.channels ?? []).flatMap((channel, position) => {
      const path = `companies[${at}].channels[${position}]`;
      const owner = channel.code === undefined ? undefined : stored.channels.get(channel.code);
      const ownerId = company.code && stored.companies.get(company.code)?.id;
      const foreign = owner && company.code && ownerId !== owner.companyId;
      return [
        ...(foreign ? [notAllowed(`${path}.code`, "The channel is another company's.")] : []),
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
        ...(channel.apiKeys ?? []).flatMap(({ code, key }, index) => {
          const known = key === undefined ? undefined : keys.get(hashToken(key));
          return known === undefined || known === `${owner?.id}:${code}`
            ? []
            : [notAllowed(`${path}.apiKeys[${index}].key`, "The key is in use elsewhere.")];
        }),
      ];
    }),
  );
  return [...inCouriers, ...inChannels];
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
  owners: ReadonlyMap<string | null, string>,
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

function mergedPlatforms(
  file: Remaining<SetupFile>,
  registry: RegistryEntity | undefined,
): string[] {
  const before = registry ? parse<string[]>(registry.platforms) : [];
  return [...new Set([...before, ...(file.platforms ?? [])])];
}

function mergedDetails(file: SetupFile, registry: RegistryEntity | undefined): SetupStatusDetail[] {
  return mergeBy(detailsOf(registry), file.statusDetails ?? [], ({ id }) => String(id));
}

function detailsOf(registry: RegistryEntity | undefined): readonly SetupStatusDetail[] {
  return registry ? parse<SetupStatusDetail[]>(registry.statusDetails) : DEFAULT_STATUS_DETAILS;
}

/** Entries of `after` replace what they name in `before`, member by member; the others stay. */
function mergeBy<T extends object>(
  before: readonly T[],
  after: readonly T[],
  key: (item: T) => string,
): T[] {
  const merged = new Map(before.map((item) => [key(item), item]));
  // A faulty item leaves a hole in its list, which is passed over.
  after.forEach((item) => void merged.set(key(item), { ...merged.get(key(item)), ...item }));
  return [...merged.values()];
}

function parse<T>(text: string): T {
  return JSON.parse(text);
}

function dateSupportOf(courier: SetupCourier): DateSupport | undefined {
  return courier.stockReleaseDate ?? (courier.stockReleaseNeedsDate ? "required" : undefined);
}

function createApplication(redis: Redis, vault: Vault, stored: Stored, nowMs: number) {
  const generated: GeneratedSecret[] = [];
  const remaps: string[] = [];
  let written = 0;

  async function save<T extends object>(
    kind: EntityKind,
    id: string,
    before: T | undefined,
    after: T,
  ): Promise<void> {
    if (before && sameFields(before, after)) return;
    await saveEntity(redis, kind, id, after as never);
    written += 1;
  }

  async function applyCourier(courier: SetupCourier): Promise<void> {
    const before = stored.couriers.get(courier.code);
    const entries = before ? catalogueOf(before) : [];
    const said = before?.setupCatalogue ? parse<SetupCatalogueEntry[]>(before.setupCatalogue) : [];
    const catalogue = mergeCatalogue({ entries, said }, courier.catalogue ?? []);
    if (before) await announceRemapped(courier.code, entries, catalogue.entries);
    await save("courier", courier.code, before, {
      number: before?.number ?? (await nextId(redis, "courier")),
      code: courier.code,
      name: courier.name ?? before?.name ?? courier.code,
      environment: courier.environment ?? before?.environment ?? "production",
      ...courierAccess(courier, before, sealList(courier.signingSecrets, before?.signingSecrets)),
      signatureRequired: courier.signatureRequired ?? before?.signatureRequired ?? false,
      allowedIps: listOf(courier.allowedIps, before?.allowedIps),
      perSecond: courier.rateLimit?.perSecond ?? before?.perSecond ?? 20,
      burst: courier.rateLimit?.burst ?? before?.burst ?? 100,
      stockRelease: courier.stockRelease ?? before?.stockRelease ?? "none",
      stockReleaseDate: dateSupportOf(courier) ?? before?.stockReleaseDate ?? "optional",
      stockReleaseUrl: courier.stockReleaseUrl ?? before?.stockReleaseUrl ?? "",
      catalogue: JSON.stringify(catalogue.entries),
      setupCatalogue: textOf(catalogue.said),
    } satisfies CourierEntity);
  }

  /** Codes that the file maps otherwise than before: their shipments are refolded, as after a panel call. */
  async function announceRemapped(
    courier: string,
    before: readonly CatalogueEntry[],
    after: readonly CatalogueEntry[],
  ): Promise<void> {
    const known = new Map(before.map((entry) => [entry.code, entry]));
    const entries = after.flatMap((entry) => {
      const old = known.get(entry.code) ?? null;
      return sameMapping(old, entry) ? [] : [{ code: entry.code, before: old, after: entry }];
    });
    if (entries.length === 0) return;
    const order = { courier, by: "setup file", entries, reverts: null };
    remaps.push(await announceRemap(redis, order, nowMs));
  }

  /** Sealing is never the same twice: secrets that have not changed keep their sealed text. */
  function sealList(secrets: readonly string[] | undefined, before = "[]"): string {
    if (secrets === undefined) return before;
    const known = new Map(parse<string[]>(before).map((sealed) => [vault.open(sealed), sealed]));
    return JSON.stringify(secrets.map((secret) => known.get(secret) ?? vault.seal(secret)));
  }

  async function applyRegistry(file: SetupFile): Promise<void> {
    await save("registry", "all", stored.registry, {
      platforms: JSON.stringify(mergedPlatforms(file, stored.registry)),
      statusDetails: JSON.stringify(mergedDetails(file, stored.registry)),
    } satisfies RegistryEntity);
  }

  async function applyCompany(company: SetupCompany): Promise<void> {
    const before = stored.companies.get(company.code);
    const id = before?.id ?? (await nextId(redis, "company"));
    await save("company", String(id), before, {
      id,
      code: company.code,
      name: company.name ?? before?.name ?? company.code,
      language: company.language ?? before?.language ?? "it",
      seatPostcode: company.seatPostcode ?? before?.seatPostcode ?? "",
      products: listOf(company.products, before?.products),
    } satisfies CompanyEntity);
    for (const box of company.boxes ?? []) {
      const boxId = `${id}:${box.code}`;
      await save("box", boxId, stored.boxes.get(boxId), { companyId: id, ...box });
    }
    for (const channel of company.channels ?? []) await applyChannel(channel, id);
  }

  async function applyChannel(channel: SetupChannel, companyId: number): Promise<void> {
    const before = stored.channels.get(channel.code);
    const id = before?.id ?? (await nextId(redis, "channel"));
    const couriers = mergeBy(
      before ? parse<object[]>(before.couriers) : [],
      (channel.couriers ?? []).map((courier) => courier as object),
      (courier) => (courier as { code: string }).code,
    );
    const { templates = [], ...emails } = channel.emails ?? {};
    await save("channel", String(id), before, {
      id,
      companyId,
      code: channel.code,
      name: channel.name ?? before?.name ?? channel.code,
      ...activation(channel.active, before),
      language: channel.language ?? before?.language ?? "it",
      bucketSize: channel.rateLimit?.bucketSize ?? before?.bucketSize ?? 300,
      refillRate: channel.rateLimit?.refillRate ?? before?.refillRate ?? 150,
      trackingPage: channel.trackingPage ?? before?.trackingPage ?? false,
      addressCheck: channel.addressCheck ?? before?.addressCheck ?? false,
      couriers: JSON.stringify(couriers.map(withCourierDefaults)),
      sender: channel.sender ? JSON.stringify(channel.sender) : (before?.sender ?? ""),
      emails: channel.emails
        ? JSON.stringify({ ...(before?.emails ? parse<object>(before.emails) : {}), ...emails })
        : (before?.emails ?? ""),
      webhookV1: channel.webhookV1 ? JSON.stringify(channel.webhookV1) : (before?.webhookV1 ?? ""),
    } satisfies ChannelEntity);
    for (const key of channel.apiKeys ?? []) await applyApiKey(key, id, channel.code);
    for (const webhook of channel.webhooks ?? []) await applyWebhook(webhook, id, channel.code);
    for (const template of templates) {
      const entity: TemplateEntity = { channelId: id, ...template };
      const templateKey = templateId(entity);
      await save("template", templateKey, stored.templates.get(templateKey), entity);
    }
    const owner = { companyId, channelId: id };
    const orders = await putOrders(redis, owner, channel.orders ?? [], nowMs);
    written += orders.filter(({ outcome }) => outcome !== "unchanged").length;
    for (const row of channel.sandbox ?? []) {
      if (await putSandbox(redis, owner, row, fingerprintOf(row), nowMs)) written += 1;
    }
  }

  async function applyApiKey(key: SetupApiKey, channelId: number, channel: string): Promise<void> {
    const before = stored.apiKeys.get(`${channelId}:${key.code}`);
    const id = before?.id ?? (await nextId(redis, "apiKey"));
    await save("apiKey", String(id), before, {
      id,
      channelId,
      code: key.code,
      hash: key.key ? hashToken(key.key) : (before?.hash ?? newKeyHash(channel, key.code)),
      active: key.active ?? before?.active ?? true,
      companyWideRead: key.companyWideRead ?? before?.companyWideRead ?? false,
      scopes: listOf(key.scopes, before?.scopes ?? JSON.stringify(SCOPES)),
      revokedHash: before?.revokedHash ?? "",
    } satisfies ApiKeyEntity);
  }

  function newKeyHash(channel: string, code: string): string {
    const secret = newToken("key_");
    generated.push({ owner: `channel ${channel}, API key ${code}`, secret });
    return hashToken(secret);
  }

  async function applyWebhook(
    webhook: SetupWebhook,
    channelId: number,
    channel: string,
  ): Promise<void> {
    const place = `${channelId}:${webhook.code}`;
    const before = stored.endpoints.get(place);
    const fileEntry = fingerprintOf(webhook);
    // What the panel has changed or deleted since stays so until the file's entry itself changes.
    if (before?.fileEntry === fileEntry) return;
    if (!before && stored.deletedWebhooks.get(place) === fileEntry) return;
    const id = before?.id ?? newEndpointId();
    const standardWebhooks = webhook.standardWebhooks ?? before?.standardWebhooks ?? false;
    const target = { url: webhook.url, standardWebhooks };
    await save("endpoint", id, before, {
      id,
      channelId,
      code: webhook.code,
      ...target,
      earlierTargets: before ? earlierTargetsAfter(before, target) : "",
      trigger: webhook.trigger ?? before?.trigger ?? "status_change",
      statuses: listOf(webhook.statuses, before?.statuses),
      include: listOf(webhook.include, before?.include),
      alertEmail: webhook.alertEmail,
      active: before?.active ?? true,
      disabled: before?.disabled ?? "",
      createdAtMs: before?.createdAtMs ?? nowMs,
      fileEntry,
      ...webhookSecret(webhook, before, channel),
    } satisfies EndpointEntity);
    await redis.hDel(DELETED_WEBHOOKS_KEY, place);
  }

  /** The old secret signs for 24 hours more. */
  function webhookSecret(
    { code, secret }: SetupWebhook,
    before: EndpointEntity | undefined,
    channel: string,
  ): Pick<EndpointEntity, "secret" | "previousSecret" | "previousUntilMs" | "fileSecretHash"> {
    const fileSecretHash = secret === undefined ? "" : hashToken(secret);
    if (before) {
      const { secret: sealed, previousSecret = "", previousUntilMs } = before;
      return secret !== undefined && isRotation(secret, before, vault)
        ? { ...rotatedSecret(sealed, vault.seal(secret), nowMs), fileSecretHash }
        : { secret: sealed, previousSecret, previousUntilMs, fileSecretHash };
    }
    const value = secret ?? newWebhookSecret();
    if (secret === undefined) {
      generated.push({ owner: `channel ${channel}, webhook ${code}`, secret: value });
    }
    return { secret: vault.seal(value), previousSecret: "", previousUntilMs: 0, fileSecretHash };
  }

  return {
    async apply(file: SetupFile): Promise<void> {
      await applyRegistry(file);
      for (const courier of file.couriers ?? []) await applyCourier(courier);
      for (const company of file.companies ?? []) await applyCompany(company);
      if (written === 0) return;
      const version = await bumpVersion(redis);
      for (const id of remaps) await activateRemap(redis, id, version);
    },
    result: () => ({ written, generated }),
  };
}

/** The panel's word stands until a file says something else than the file before it. */
function activation(given: boolean | undefined, before: ChannelEntity | undefined) {
  const last = before?.setupActive ?? "";
  const current = before?.active ?? true;
  if (given === undefined) return { active: current, setupActive: last };
  return { active: last === String(given) ? current : given, setupActive: String(given) };
}

function withCourierDefaults(courier: object): object {
  const defaults = { transcodings: [], senderAccounts: [], shippingEnabled: true };
  return { ...defaults, labelFormat: "PDF", errorLabel: false, ...courier };
}

function listOf(given: readonly unknown[] | undefined, before: string | undefined): string {
  return given === undefined ? (before ?? "[]") : JSON.stringify(given);
}

/** redis-om drops empty texts on the way, so an absent field equals an empty one. */
function sameFields(before: object, after: object): boolean {
  const stored = before as Record<string, unknown>;
  return Object.entries(after).every(([field, value]) => (stored[field] ?? "") === value);
}
