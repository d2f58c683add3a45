/** The store's side of ingest: messages that come together share their round trips (`group-commit.ts`). */
import { groupCommit } from "#core/group-commit.ts";
import type { Redis } from "#core/redis/client/client.ts";
import type { Reference } from "#core/redis/client/keys.ts";
import type { Configuration } from "#core/redis/config/configuration.ts";
import type { Live } from "#core/redis/config/live.ts";
import {
  type RateAsk,
  type RateVerdict,
  takeCourierRates,
} from "#core/redis/intake/courier-rate.ts";
import { type Candidates, resolveReferences } from "#core/redis/intake/references.ts";
import { type Claim, type ClaimOutcome, claimEvents } from "#core/redis/log/event-log.ts";
import type { SeenLayout } from "#core/redis/log/seen.ts";

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

export interface Intake {
  /** Takes a request from a rate and brings the configuration up to date. */
  readonly admit: (ask: RateAsk) => Promise<Admission>;
  /** Candidates of references, by key; shared with other messages and not to be changed. */
  readonly resolve: (references: readonly Reference[]) => Promise<Candidates>;
  /** Outcomes in the order of the claims. */
  readonly claim: (message: MessageClaims) => Promise<ClaimOutcome[]>;
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
  waiting: 2_000,
  callMs: 5_000,
} as const;

export function openIntake(redis: Redis, live: Live, highWater: number): Intake {
  const claims = (callsUnderWay: number) =>
    groupCommit(
      (messages: readonly MessageClaims[]) => claimAll(redis, messages, highWater),
      { ...LIMITS, callsUnderWay },
      ({ claims }) => claims.length,
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
  return {
    async admit(ask) {
      const { configuration, rate } = await admitTogether(ask);
      // Of this courier alone: those that asked together with it are served.
      if ("error" in rate) throw rate.error;
      return { configuration, rate };
    },
    resolve: groupCommit(
      async (asks: readonly (readonly Reference[])[]) => {
        const candidates = await resolveReferences(redis, asks.flat());
        return asks.map(() => candidates);
      },
      LIMITS,
      ({ length }) => length,
    ),
    claim: (message) => (message.claims.length < LARGE ? claimSmall(message) : claimLarge(message)),
  };
}

/** One claim for each courier and layout: a call of a script counts for one courier. */
async function claimAll(
  redis: Redis,
  messages: readonly MessageClaims[],
  highWater: number,
): Promise<ClaimOutcome[][]> {
  const outcomes: ClaimOutcome[][] = messages.map(() => []);
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
      const all = await claimEvents(redis, { ...first, highWater }, claims);
      let from = 0;
      for (const at of indices) {
        const end = from + (messages[at]?.claims.length ?? 0);
        outcomes[at] = all.slice(from, end);
        from = end;
      }
    }),
  );
  return outcomes;
}
