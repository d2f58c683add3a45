/** The store's side of ingest: messages that come together share their round trips (`group-commit.ts`). */

import type { Configuration } from "#core/configuration/store/configuration.ts";
import type { Live } from "#core/configuration/store/live.ts";
import {
  type RateAsk,
  type RateVerdict,
  takeCourierRates,
} from "#core/events/store/courier-rate.ts";
import { type Claim, type ClaimOutcome, claimEach } from "#core/events/store/event-log.ts";
import { type Candidates, resolveReferences } from "#core/events/store/references.ts";
import type { SeenLayout } from "#core/events/store/seen.ts";
import {
  type EventTerms,
  type EventToTake,
  type TakenEvent,
  takeEvent,
} from "#core/events/store/take-event.ts";
import { groupCommit } from "#core/platform/process/group-commit.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import type { Reference } from "#core/platform/redis/keys.ts";
import { isShardUnavailable } from "#core/platform/redis/unavailable-shard.ts";
import { limit } from "#core/platform/schema/limit.ts";

export interface Admission {
  /** As of the moment at which the rate was taken. */
  readonly configuration: Configuration;
  readonly rate: RateVerdict;
}

export interface MessageClaims {
  readonly courier: string;
  readonly layout: SeenLayout;
  readonly nowMs: number;
  readonly claims: readonly Claim[];
}

/** A message of one event that nobody else's shares its steps with. */
export interface SoleEvent {
  readonly terms: EventTerms;
  readonly event: EventToTake;
}

export interface Intake {
  /** Takes a request from a rate and brings the configuration up to date. */
  readonly admit: (ask: RateAsk) => Promise<Admission>;
  /** Candidates of references, by key; shared with other messages and not to be changed. */
  readonly resolve: (references: readonly Reference[]) => Promise<Candidates>;
  /** Outcomes in the order of the claims. */
  readonly claim: (message: MessageClaims) => Promise<ClaimOutcome[]>;
  /** Admits and claims it in one step; null where nothing was done. */
  readonly take: (one: SoleEvent) => Promise<TakenEvent | null>;
}

/** Requests, references or events of one call. */
const SIZE_PER_CALL = 1_000;
/** Events of a claim that is large enough to go alone: parts of one message are under way together. */
const LARGE = 50;
const LARGE_UNDER_WAY = 4;
const LIMITS = {
  callsUnderWay: 1,
  sizePerCall: SIZE_PER_CALL,
  /** Messages of 5 MiB: what they hold is bounded by the bodies that the server takes at one time. */
  waiting: limit(
    2_000,
    "messages of an ingest process that wait for a round trip",
    "503 with `Retry-After`",
  ),
  callMs: limit(5_000, "round trip of an ingest process", "503 with `Retry-After`"),
} as const;

export function openIntake(redis: Redis, live: Live, highWater: number): Intake {
  const claims = (callsUnderWay: number) =>
    groupCommit(
      (messages: readonly MessageClaims[]) => claimAll(redis, messages, highWater),
      { ...LIMITS, callsUnderWay },
      ({ claims }) => claims.length,
    );
  const resolveTogether = groupCommit(
    (asks: readonly (readonly Reference[])[]) => resolveAll(redis, asks),
    LIMITS,
    ({ length }) => length,
  );
  const claimSmall = claims(LIMITS.callsUnderWay);
  const claimLarge = claims(LARGE_UNDER_WAY);
  const admitTogether = groupCommit(async (asks: readonly RateAsk[]) => {
    const [configuration, rates] = await Promise.all([
      live.refresh(),
      takeCourierRates(redis, asks, live.now()),
    ]);
    return rates.map((rate) => ({ configuration, rate }));
  }, LIMITS);
  const take = groupCommit(
    (events: readonly SoleEvent[]) =>
      Promise.all(events.map(({ terms, event }) => takeEvent(redis, terms, event, highWater))),
    LIMITS,
  );
  return {
    take,
    async admit(ask) {
      const { configuration, rate } = await admitTogether(ask);
      // Of this courier alone: those that asked together with it are served.
      if ("error" in rate) throw rate.error;
      return { configuration, rate };
    },
    resolve: async (references) => answerOf(await resolveTogether(references)),
    claim: async (message) =>
      answerOf(await (message.claims.length < LARGE ? claimSmall(message) : claimLarge(message))),
  };
}

/** What a message was answered, or why the part of the store that it needs is unavailable. */
type Answered<T> = { readonly value: T } | { readonly error: unknown };

function answerOf<T>(answered: Answered<T>): T {
  // Of this message alone: those that asked together with it are served.
  if ("error" in answered) throw answered.error;
  return answered.value;
}

/** Where a shard is unavailable, each asks again by itself. */
async function resolveAll(
  redis: Redis,
  asks: readonly (readonly Reference[])[],
): Promise<Answered<Candidates>[]> {
  try {
    const value = await resolveReferences(redis, asks.flat());
    return asks.map(() => ({ value }));
  } catch (error) {
    if (!isShardUnavailable(error, redis) || asks.length === 1) throw error;
    const alone = asks.map((ask) => resolveReferences(redis, ask));
    return (await Promise.allSettled(alone)).map((one) =>
      one.status === "fulfilled" ? { value: one.value } : { error: one.reason },
    );
  }
}

/** One claim for each courier and layout: a call of a script counts for one courier. */
async function claimAll(
  redis: Redis,
  messages: readonly MessageClaims[],
  highWater: number,
): Promise<Answered<ClaimOutcome[]>[]> {
  const outcomes: Answered<ClaimOutcome[]>[] = messages.map(() => ({ value: [] }));
  const alike = Map.groupBy(
    messages.keys(),
    (at) => `${messages[at]?.courier} ${messages[at]?.layout.generations[0]?.number}`,
  );
  await Promise.all(
    [...alike.values()].map(async (indices) => {
      const own = indices.flatMap((at) => messages[at] ?? []);
      const [first] = own;
      if (!first) return;
      const claims = own.flatMap((message) => message.claims);
      const all = await claimEach(redis, { ...first, highWater }, claims);
      let from = 0;
      for (const at of indices) {
        const end = from + (messages[at]?.claims.length ?? 0);
        const own = all.slice(from, end);
        const refused = own.find((one) => typeof one !== "string");
        outcomes[at] = refused ?? { value: own.filter((one) => typeof one === "string") };
        from = end;
      }
    }),
  );
  return outcomes;
}
