/** Applies a setup file. Twice changes nothing the second time; a faulty file changes nothing at all. */
import { createHash } from "node:crypto";
import type { Fault } from "#core/domain/fault.ts";
import type { CatalogueEntry } from "#core/domain/map-status.ts";
import {
  checkSetup,
  ENDPOINTS_PER_CHANNEL,
  SCOPES,
  type SetupApiKey,
  type SetupChannel,
  type SetupCompany,
  type SetupCourier,
  type SetupFile,
  type SetupStatusDetail,
  type SetupWebhook,
} from "#core/domain/setup.ts";
import { hashToken, newToken, type Vault } from "#core/secrets.ts";
import type { Redis } from "./client.ts";
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
} from "./entities.ts";
import { companyKeys, companyPartition, SETUP_LOCK_KEY } from "./keys.ts";

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
}

/** Document 3, "Limits": the old secret signs for 24 hours more after a rotation. */
export const SECRET_OVERLAP_MS = 86_400_000;
const LOCK_MS = 60_000;
const LOCK_RETRY_MS = 100;

/** The built-in list of status details; a setup file adds to it and replaces by id. Id 0 = none. */
const DEFAULT_STATUS_DETAILS: readonly SetupStatusDetail[] = [
  detail(1, "EXCEPTION", "Indirizzo errato o incompleto", "Wrong or incomplete address"),
  detail(2, "FAILED_ATTEMPT", "Destinatario assente", "Recipient absent"),
  detail(3, "EXCEPTION", "Rifiutata dal destinatario", "Refused by the recipient"),
  { ...detail(4, "EXCEPTION", "In giacenza", "Held in depot"), heldInDepot: true },
  detail(5, "EXCEPTION", "Danneggiata", "Damaged"),
  detail(6, "EXCEPTION", "Smarrita", "Lost"),
  detail(7, "DELAY", "Ritardo del corriere", "Carrier delay"),
  detail(8, "EXCEPTION", "Ferma in dogana", "Held at customs"),
];

function detail(
  id: number,
  status: NonNullable<SetupStatusDetail["status"]>,
  it: string,
  en: string,
): SetupStatusDetail {
  return { id, status, heldInDepot: false, description: { it, en } };
}

/**
 * @throws {SetupFaults} with every fault of the file; nothing has been changed then
 */
export async function applySetup(
  redis: Redis,
  vault: Vault,
  file: unknown,
  nowMs: number,
): Promise<Applied> {
  const faults = checkSetup(file);
  if (faults.length > 0) throw new SetupFaults(faults);
  const lock = await takeLock(redis);
  try {
    const stored = await readStored(redis);
    const unknown = checkReferences(file as SetupFile, stored);
    if (unknown.length > 0) throw new SetupFaults(unknown);
    const application = createApplication(redis, vault, stored, nowMs);
    await application.apply(file as SetupFile);
    return application.result();
  } finally {
    if ((await redis.get(SETUP_LOCK_KEY)) === lock) await redis.del(SETUP_LOCK_KEY);
  }
}

/** Processes that start together apply the same file one after the other. */
async function takeLock(redis: Redis): Promise<string> {
  const owner = newToken("");
  while ((await redis.set(SETUP_LOCK_KEY, owner, { NX: true, PX: LOCK_MS })) === null) {
    await Bun.sleep(LOCK_RETRY_MS);
  }
  return owner;
}

interface Stored {
  readonly couriers: ReadonlyMap<string, CourierEntity>;
  readonly companies: ReadonlyMap<string, CompanyEntity>;
  readonly boxes: ReadonlyMap<string, BoxEntity>;
  readonly channels: ReadonlyMap<string, ChannelEntity>;
  readonly apiKeys: ReadonlyMap<string, ApiKeyEntity>;
  readonly endpoints: ReadonlyMap<string, EndpointEntity>;
  readonly templates: ReadonlyMap<string, TemplateEntity>;
  readonly registry: RegistryEntity | undefined;
}

async function readStored(redis: Redis): Promise<Stored> {
  const [couriers, companies, boxes, channels, apiKeys, endpoints, templates, [registry]] =
    await Promise.all([
      allEntities(redis, "courier"),
      allEntities(redis, "company"),
      allEntities(redis, "box"),
      allEntities(redis, "channel"),
      allEntities(redis, "apiKey"),
      allEntities(redis, "endpoint"),
      allEntities(redis, "template"),
      allEntities(redis, "registry"),
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
  };
}

function templateId({ channelId, event, language }: TemplateEntity): string {
  return `${channelId}:${event}:${language}`;
}

/** What the file names must exist, in the file or from before. */
function checkReferences(file: SetupFile, stored: Stored): Fault[] {
  const couriers = new Set([
    ...stored.couriers.keys(),
    ...(file.couriers ?? []).map(({ code }) => code),
  ]);
  const details = new Set(mergedDetails(file, stored.registry).map(({ id }) => id));
  const tokens = new Map(
    [...stored.couriers.values()].flatMap((courier) =>
      parse<string[]>(courier.tokenHashes).map((hash) => [hash, courier.code] as const),
    ),
  );
  const keys = new Map([...stored.apiKeys].map(([owner, key]) => [key.hash, owner]));
  const inCouriers = (file.couriers ?? []).flatMap((courier, at) => [
    ...courier.tokens.flatMap((token, index) => {
      const owner = tokens.get(hashToken(token));
      return owner === undefined || owner === courier.code
        ? []
        : [notAllowed(`couriers[${at}].tokens[${index}]`, "The token is another courier's.")];
    }),
    ...(courier.catalogue ?? []).flatMap(({ statusDetail = 0 }, index) =>
      statusDetail === 0 || details.has(statusDetail)
        ? []
        : [
            notAllowed(
              `couriers[${at}].catalogue[${index}].statusDetail`,
              `No status detail ${statusDetail}.`,
            ),
          ],
    ),
  ]);
  const inChannels = (file.companies ?? []).flatMap((company, at) =>
    (company.channels ?? []).flatMap((channel, position) => {
      const path = `companies[${at}].channels[${position}]`;
      const owner = stored.channels.get(channel.code);
      const foreign = owner && stored.companies.get(company.code)?.id !== owner.companyId;
      return [
        ...(foreign ? [notAllowed(`${path}.code`, "The channel is another company's.")] : []),
        ...checkEndpointCount(channel, owner?.id, stored.endpoints, path),
        ...(channel.couriers ?? []).flatMap(({ code }, index) =>
          couriers.has(code)
            ? []
            : [notAllowed(`${path}.couriers[${index}].code`, `No courier ${code}.`)],
        ),
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

/** Document 3, "Limits": endpoints per channel, those the file does not name included. */
function checkEndpointCount(
  { webhooks = [] }: SetupChannel,
  channelId: number | undefined,
  stored: Stored["endpoints"],
  path: string,
): Fault[] {
  const own = [...stored.values()].filter((endpoint) => endpoint.channelId === channelId);
  const codes = new Set([...own, ...webhooks].map(({ code }) => code));
  return codes.size <= ENDPOINTS_PER_CHANNEL
    ? []
    : [{ path: `${path}.webhooks`, code: "TOO_MANY", message: "At most 5 endpoints a channel." }];
}

function notAllowed(path: string, message: string): Fault {
  return { path, code: "NOT_ALLOWED", message };
}

function mergedDetails(file: SetupFile, registry: RegistryEntity | undefined): SetupStatusDetail[] {
  const before = registry
    ? parse<SetupStatusDetail[]>(registry.statusDetails)
    : DEFAULT_STATUS_DETAILS;
  return mergeBy(before, file.statusDetails ?? [], ({ id }) => String(id));
}

/** Entries of `after` replace what they name in `before`, member by member; the others stay. */
function mergeBy<T extends object>(
  before: readonly T[],
  after: readonly T[],
  key: (item: T) => string,
): T[] {
  const merged = new Map(before.map((item) => [key(item), item]));
  for (const item of after) merged.set(key(item), { ...merged.get(key(item)), ...item });
  return [...merged.values()];
}

function parse<T>(text: string): T {
  return JSON.parse(text);
}

function createApplication(redis: Redis, vault: Vault, stored: Stored, nowMs: number) {
  const generated: GeneratedSecret[] = [];
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
    const catalogue = mergeBy<CatalogueEntry>(
      before ? parse(before.catalogue) : [],
      (courier.catalogue ?? []) as CatalogueEntry[],
      ({ code }) => code,
    );
    await save("courier", courier.code, before, {
      number: before?.number ?? (await nextId(redis, "courier")),
      code: courier.code,
      name: courier.name ?? before?.name ?? courier.code,
      environment: courier.environment ?? before?.environment ?? "production",
      acceptingEvents: courier.acceptingEvents ?? before?.acceptingEvents ?? true,
      tokenHashes: JSON.stringify(courier.tokens.map(hashToken)),
      signingSecrets: sealList(courier.signingSecrets, before?.signingSecrets),
      signatureRequired: courier.signatureRequired ?? before?.signatureRequired ?? false,
      allowedIps: listOf(courier.allowedIps, before?.allowedIps),
      perSecond: courier.rateLimit?.perSecond ?? before?.perSecond ?? 20,
      burst: courier.rateLimit?.burst ?? before?.burst ?? 100,
      stockRelease: courier.stockRelease ?? before?.stockRelease ?? "none",
      stockReleaseNeedsDate:
        courier.stockReleaseNeedsDate ?? before?.stockReleaseNeedsDate ?? false,
      catalogue: JSON.stringify(catalogue),
    } satisfies CourierEntity);
  }

  /** Sealing is never the same twice: secrets that have not changed keep their sealed text. */
  function sealList(secrets: readonly string[] | undefined, before = "[]"): string {
    if (secrets === undefined) return before;
    const known = new Map(parse<string[]>(before).map((sealed) => [vault.open(sealed), sealed]));
    return JSON.stringify(secrets.map((secret) => known.get(secret) ?? vault.seal(secret)));
  }

  async function applyRegistry(file: SetupFile): Promise<void> {
    const platforms = stored.registry ? parse<string[]>(stored.registry.platforms) : [];
    await save("registry", "all", stored.registry, {
      platforms: JSON.stringify([...new Set([...platforms, ...(file.platforms ?? [])])]),
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
      active: channel.active ?? before?.active ?? true,
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
    const keys = companyKeys(companyPartition(companyId));
    await applyRows(keys.orders(id), channel.orders, (o) => `${o.source}|${o.reference}`);
    await applyRows(keys.sandbox(id), channel.sandbox, (row) => String(row.id));
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
    const before = stored.endpoints.get(`${channelId}:${webhook.code}`);
    const id = before?.id ?? newToken("ep_").slice(0, 19);
    await save("endpoint", id, before, {
      id,
      channelId,
      code: webhook.code,
      url: webhook.url,
      trigger: webhook.trigger ?? before?.trigger ?? "status_change",
      statuses: listOf(webhook.statuses, before?.statuses),
      include: listOf(webhook.include, before?.include),
      alertEmail: webhook.alertEmail,
      active: before?.active ?? true,
      createdAtMs: before?.createdAtMs ?? nowMs,
      ...webhookSecret(webhook, before, channel),
    } satisfies EndpointEntity);
  }

  /** Another secret in the file is a rotation: the old one signs for 24 hours more. */
  function webhookSecret(
    { code, secret }: SetupWebhook,
    before: EndpointEntity | undefined,
    channel: string,
  ): Pick<EndpointEntity, "secret" | "previousSecret" | "previousUntilMs"> {
    if (before) {
      if (secret === undefined || vault.open(before.secret) === secret) {
        const { secret: sealed, previousSecret, previousUntilMs } = before;
        return { secret: sealed, previousSecret: previousSecret ?? "", previousUntilMs };
      }
      return {
        secret: vault.seal(secret),
        previousSecret: before.secret,
        previousUntilMs: nowMs + SECRET_OVERLAP_MS,
      };
    }
    const value = secret ?? newToken("whsec_");
    if (secret === undefined) {
      generated.push({ owner: `channel ${channel}, webhook ${code}`, secret: value });
    }
    return { secret: vault.seal(value), previousSecret: "", previousUntilMs: 0 };
  }

  /** Rows that the API changes afterwards: written when they are new or when the file itself has changed. */
  async function applyRows<T>(
    key: string,
    rows: readonly T[] | undefined,
    field: (row: T) => string,
  ): Promise<void> {
    for (const row of rows ?? []) {
      const text = JSON.stringify(row);
      const fingerprint = createHash("sha256").update(text).digest("base64url");
      const before = await redis.hGet(key, field(row));
      if (before && parse<{ fingerprint: string }>(before).fingerprint === fingerprint) continue;
      await redis.hSet(key, field(row), JSON.stringify({ fingerprint, createdAtMs: nowMs, row }));
      written += 1;
    }
  }

  return {
    async apply(file: SetupFile): Promise<void> {
      await applyRegistry(file);
      for (const courier of file.couriers ?? []) await applyCourier(courier);
      for (const company of file.companies ?? []) await applyCompany(company);
      if (written > 0) await bumpVersion(redis);
    },
    result: (): Applied => ({ written, generated }),
  };
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
