/** What the analytics' calls answer. */
import { Type } from "@sinclair/typebox";
import type { CourierQuality } from "#analytics/insights.ts";
import type { DayCounts } from "#core/benchmarks/rules/day-counts.ts";
import type { Grain, WeightBand } from "#core/benchmarks/rules/lane.ts";
import { nullableNumber } from "#core/platform/schema/nullable.ts";

const days = (description: string) =>
  Type.Union([Type.Number(), Type.Null()], { description: `${description}, in calendar days` });
const count = (description: string) => Type.Integer({ description });
const share = Type.Union([Type.Number(), Type.Null()], { description: "0 to 1" });

const interval = Type.Union(
  [Type.Object({ low: Type.Number(), high: Type.Number() }), Type.Null()],
  { description: "95 % confidence interval of the median; null under 6 deliveries" },
);
const score = Type.Number({ description: "0 to 100; 50 is as good as all couriers together" });

/** Of a sample, which is their number. */
const times = {
  deliveries: count("the sample"),
  leadMedian: Type.Number({ description: "calendar days" }),
  leadMedianInterval: interval,
  leadMean: Type.Number({ description: "calendar days" }),
};

export const LaneView = Type.Object({
  courier: Type.String(),
  grain: Type.Unsafe<Grain>(
    Type.String({ description: "how much of the question its deliveries have in common" }),
  ),
  leads: Type.Unsafe<DayCounts>(
    Type.Array(Type.Array(Type.Integer(), { minItems: 2, maxItems: 2 }), {
      description:
        "pairs of lead days and deliveries; empty for members of a company, since few of them may make up a day",
    }),
  ),
  deliveries: count("the sample"),
  isPublic: Type.Boolean({ description: "a sample of 20 or more: merchants see it" }),
  leadMedian: days("median from the ship date to the delivery"),
  leadMedianInterval: interval,
  leadMean: days("mean"),
  leadP90: days("nine of ten deliveries take at most so many"),
  transitMedian: days("median from the departure to the delivery"),
  transitDeliveries: count("the sample of transitMedian"),
  troubleShare: Type.Number({ description: "with a second attempt or an exception, 0 to 1" }),
  efficiency: Type.Union(
    [
      Type.Object({
        index: score,
        speed: score,
        consistency: score,
        reliability: score,
        basis: Type.Union([Type.Literal("transit"), Type.Literal("lead")]),
      }),
      Type.Null(),
    ],
    { description: "as POST /v2/couriers/efficiency-index; null under 20 deliveries" },
  ),
});

export const ProvinceView = Type.Object({
  prefix: Type.String({ description: "first two digits of the destination CAP" }),
  provinces: Type.String(),
  ...times,
  troubleShare: Type.Number(),
});

export const TrendView = Type.Object({
  courier: Type.String(),
  month: Type.String({ description: "its first day" }),
  ...times,
  isComplete: Type.Boolean({
    description: "false: the running month, or the one of which the last 12 months hold a part",
  }),
});

export const WeightView = Type.Object({
  courier: Type.String(),
  weightBand: Type.Unsafe<WeightBand>(Type.String({ description: "kg" })),
  ...times,
});

export const QualityView = Type.Object({
  courier: Type.String(),
  facts: count("events that were applied"),
  delayP50: nullableNumber,
  delayP95: Type.Union([Type.Number(), Type.Null()], {
    description: "seconds from what happened to its receipt, 95th percentile",
  }),
  outOfOrderShare: share,
  unmappedShare: share,
  aheadShare: Type.Union([Type.Number(), Type.Null()], {
    description:
      "accepted events that are dated after we received them, of those that were applied",
  }),
  inFuture: count("events that were INVALID because they are dated more than 24 hours ahead"),
  aheadEvents: Type.Unsafe<CourierQuality["aheadEvents"]>(
    Type.Array(
      Type.Object({
        messageId: Type.String({ description: "empty: the event was parked" }),
        messageIndex: Type.Integer(),
        code: Type.String({ description: "the courier's own" }),
        occurredAtMs: Type.Integer({ description: "UTC milliseconds" }),
        receivedAtMs: Type.Integer({ description: "UTC milliseconds" }),
      }),
      { description: "the latest received of the accepted ones that are ahead, at most 5" },
    ),
  ),
  received: count("events of every outcome"),
  duplicateShare: share,
  invalidShare: share,
  unknownTrackingShare: share,
  brokenRules: Type.Unsafe<CourierQuality["brokenRules"]>(
    Type.Array(Type.Object({ rule: Type.String(), events: Type.Integer() })),
  ),
});

export const SilenceView = Type.Object({
  courier: Type.String(),
  seen: count("events in the last full hours"),
  expected: Type.Number({ description: "what the same hours of the week brought on average" }),
  weeks: count("weeks that the average is made of; 0 = nothing is expected yet"),
  silent: Type.Boolean(),
  lastHour: Type.String({ description: "begin of the last hour with events, ISO 8601" }),
});
