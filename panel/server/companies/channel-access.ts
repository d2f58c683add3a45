/** API keys, settings and activation of channels, written under the setup lock, so that writers at the same time lose nothing. */

import type { ChannelEntity } from "#core/configuration/rules/entities.ts";
import {
  allEntities,
  bumpVersion,
  nextId,
  readEntity,
  saveEntity,
} from "#core/configuration/store/entities.ts";
import { type ChannelChange, changeChannel } from "#core/configuration/store/merchant-settings.ts";
import { underSetupLock } from "#core/configuration/store/setup-lock.ts";
import { newShadow, testCodeOf } from "#core/configuration/store/test-channels.ts";
import { Problem } from "#core/platform/errors/problem.ts";
import type { Fault } from "#core/platform/schema/fault.ts";
import { hashToken, newToken } from "#core/platform/secrets/secrets.ts";
import type { Runtime } from "#core/runtime/runtime.ts";
import type { Scope } from "#core/setup/rules/setup.ts";
import { notFound } from "#panel/server/not-found.ts";
import { refuseFaults, settingsChannelOf } from "#panel/server/webhooks/webhook-access.ts";

type Deps = Pick<Runtime, "redis" | "live">;

interface KeyRights {
  readonly companyWideRead: boolean;
  readonly scopes: readonly Scope[];
}

export interface NewApiKey extends KeyRights {
  readonly code: string | null;
  /** test: for the channel's shadow, which is made with its first key. Null = that of the channel. */
  readonly mode: "live" | "test" | null;
}

export interface IssuedApiKey extends KeyRights {
  readonly id: number;
  readonly code: string;
  readonly mode: "live" | "test";
  /** Kept nowhere: shown this once. */
  readonly key: string;
}

const LIVE_KEY_OF_SHADOW: Fault = {
  path: "mode",
  code: "NOT_ALLOWED",
  message: "A channel of test mode has test keys only.",
};
/** Keys of a channel, revoked ones included. */
const KEYS_PER_CHANNEL = 1_000;

/** @throws {Problem} 404 no such channel, 409 the code is in use or there are too many keys, 422 a live key for a shadow */
export async function issueApiKey(
  { redis, live }: Deps,
  channelCode: string,
  wanted: NewApiKey,
): Promise<IssuedApiKey> {
  const issued = await underSetupLock(redis, async () => {
    const named = await findChannel({ redis }, channelCode);
    if (named.testOf && wanted.mode === "live") refuseFaults([LIVE_KEY_OF_SHADOW]);
    const isNew = wanted.mode === "test" && !named.testOf;
    const channel = isNew ? await shadowOf({ redis }, named) : named;
    const all = await allEntities(redis, "apiKey");
    const own = all.filter(({ channelId }) => channelId === channel.id);
    if (own.length >= KEYS_PER_CHANNEL) {
      throw new Problem(409, "TOO_MANY_API_KEYS", `At most ${KEYS_PER_CHANNEL} keys a channel.`);
    }
    const id = await nextId(redis, "apiKey");
    const code = wanted.code ?? `panel-${id}`;
    if (own.some((one) => one.code === code)) {
      throw new Problem(409, "API_KEY_CODE_IN_USE", "The channel has a key of this code.");
    }
    const mode = channel.testOf ? ("test" as const) : ("live" as const);
    const key = newToken(mode === "test" ? "key_test_" : "key_");
    const { companyWideRead, scopes } = wanted;
    await saveEntity(redis, "apiKey", String(id), {
      id,
      channelId: channel.id,
      code,
      hash: hashToken(key),
      active: true,
      companyWideRead,
      scopes,
      revokedHash: "",
      fileEntry: "",
    });
    await bumpVersion(redis);
    return { id, code, mode, key, companyWideRead, scopes };
  });
  await live.refresh();
  return issued;
}

/**
 * The key stops working at once, on every process.
 * @returns what it was
 * @throws {Problem} 404
 */
export async function revokeApiKey(
  { redis, live }: Deps,
  id: string,
): Promise<{ readonly code: string; readonly companyWideRead: boolean }> {
  const revoked = await underSetupLock(redis, async () => {
    const entity = await readEntity(redis, "apiKey", id);
    if (!entity || entity.revokedHash === entity.hash) {
      throw notFound("apiKey");
    }
    await saveEntity(redis, "apiKey", id, { ...entity, revokedHash: entity.hash });
    await bumpVersion(redis);
    return { code: entity.code, companyWideRead: entity.companyWideRead };
  });
  await live.refresh();
  return revoked;
}

/** @throws {Problem} 404 */
export async function activateChannel(
  { redis, live }: Deps,
  channelCode: string,
  active: boolean,
): Promise<void> {
  await underSetupLock(redis, async () => {
    const channel = await findChannel({ redis }, channelCode);
    if (channel.active === active) return;
    await saveEntity(redis, "channel", String(channel.id), { ...channel, active });
    await bumpVersion(redis);
  });
  await live.refresh();
}

/**
 * Changes settings of a channel, at once on every process.
 * @throws {Problem} 404, and what `changeOf` throws
 */
export async function changeSettings(
  { redis, live }: Deps,
  channelCode: string,
  changeOf: (before: ChannelEntity) => ChannelChange,
): Promise<{ readonly before: ChannelEntity; readonly after: ChannelEntity }> {
  const { id } = settingsChannelOf(await live.refresh(), channelCode);
  const changed = await changeChannel(redis, id, changeOf);
  if (!changed) throw notFound("channel");
  await live.refresh();
  return changed;
}

/** Found, or made. Under the setup lock. */
async function shadowOf(
  { redis }: Pick<Deps, "redis">,
  live: ChannelEntity,
): Promise<ChannelEntity> {
  const code = testCodeOf(live.code);
  const known = (await allEntities(redis, "channel")).find((one) => one.code === code);
  if (known) return known;
  const shadow = await newShadow(redis, live);
  await saveEntity(redis, "channel", String(shadow.id), shadow);
  return shadow;
}

async function findChannel({ redis }: Pick<Deps, "redis">, code: string): Promise<ChannelEntity> {
  const channel = (await allEntities(redis, "channel")).find((one) => one.code === code);
  if (channel) return channel;
  throw notFound("channel");
}
