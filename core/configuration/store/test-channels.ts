/**
 * Test mode: a channel's shadow. It is a channel with keys, endpoints and shipments of its own, and with the settings of the
 * channel that it is the shadow of, as they are now.
 */

import type { ChannelEntity } from "#core/configuration/rules/entities.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import { nextId } from "./entities.ts";

/** No channel of a setup file has such a code. */
export const testCodeOf = (code: string) => `${code}:test`;

/** The shadow as it is stored: everything else is read off the live channel. */
export async function newShadow(redis: Redis, live: ChannelEntity): Promise<ChannelEntity> {
  const id = await nextId(redis, "channel");
  return { ...live, id, code: testCodeOf(live.code), testOf: live.id };
}

/** Every shadow with the settings of its channel; a shadow without one is left out. */
export function withShadows<Channel extends ChannelEntity>(
  entities: readonly Channel[],
): Channel[] {
  const byId = new Map(entities.map((entity) => [entity.id, entity]));
  return entities.flatMap((entity) => {
    if (!entity.testOf) return [entity];
    const live = byId.get(entity.testOf);
    if (!live) return [];
    const { id, testOf } = entity;
    const name = `${live.name} (test)`;
    return [{ ...live, id, testOf, code: testCodeOf(live.code), name, webhookV1: null }];
  });
}
