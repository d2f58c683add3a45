/** The overview: rates, lag, queue depths, error counts, freshness of each store, alarms. */
import { type Static, Type } from "@sinclair/typebox";

const Lag = Type.Object({
  log: Type.String(),
  group: Type.String(),
  entries: Type.Integer({ description: "entries not yet acknowledged" }),
  seconds: Type.Number({ description: "age of the oldest of them" }),
  perSecond: Type.Number({ description: "entries done, mean over the last minute" }),
});

const Alarm = Type.Object({
  code: Type.String(),
  severity: Type.Union([Type.Literal("warning"), Type.Literal("critical")]),
  text: Type.String(),
  since: Type.String({ description: "when this panel noticed it, ISO 8601" }),
  docs: Type.String({ description: "page and section of the documents" }),
  page: Type.String({ description: "of the panel, where the thing is" }),
});

const outcomes = {
  received: Type.Integer(),
  accepted: Type.Integer(),
  duplicate: Type.Integer(),
  unknown: Type.Integer({ description: "answered UNKNOWN_TRACKING" }),
  invalid: Type.Integer(),
};

export const Overview = Type.Object({
  at: Type.String({ description: "service clock, ISO 8601" }),
  rates: Type.Object(
    {
      acceptedPerSecond: Type.Number(),
      appliedPerSecond: Type.Number(),
      overSeconds: Type.Number(),
    },
    { description: "means over the last minute" },
  ),
  ledger: Type.Object(
    {
      ...outcomes,
      routed: Type.Integer({
        description: "accepted events, once for each shipment that they go to",
      }),
      applied: Type.Integer({ description: "routed events that are part of their shipment" }),
      waiting: Type.Integer({ description: "routed events on their way, dead letters included" }),
      discarded: Type.Integer({ description: "dead letters among them that were discarded" }),
      released: Type.Integer({
        description: "parked events that are part of their shipment, once for each shipment",
      }),
      sent: Type.Integer({ description: "webhook decisions to send" }),
      notSent: Type.Record(Type.String(), Type.Integer(), { description: "by reason" }),
      delivered: Type.Integer(),
      failed: Type.Integer(),
      pending: Type.Integer({ description: "deliveries on their way" }),
      difference: Type.Union(
        [
          Type.Object({
            received: Type.Integer(),
            applied: Type.Integer(),
            webhooks: Type.Integer(),
          }),
          Type.Null(),
        ],
        { description: "what does not add up: 0 at rest; null = something is missing" },
      ),
      couriers: Type.Array(Type.Object({ courier: Type.String(), ...outcomes })),
    },
    {
      description:
        "received = accepted + duplicate + unknown + invalid; routed = applied + waiting + discarded; " +
        "sent = delivered + failed + pending",
    },
  ),
  lag: Type.Array(Lag),
  queues: Type.Object({
    eventLog: Type.Integer(),
    changeLog: Type.Integer(),
    deadLetters: Type.Integer(),
  }),
  webhooks: Type.Object({
    succeededPerMinute: Type.Number({ description: "deliveries, mean over the last minute" }),
    failedPerMinute: Type.Number({ description: "deliveries that were given up, likewise" }),
    oldestWaitingSeconds: Type.Number({
      description: "age of the oldest first attempt that waits, or lateness of a retry",
    }),
    failingEndpoints: Type.Integer({ description: "endpoints without success since a failure" }),
  }),
  alarms: Type.Array(Alarm, { description: "what somebody should look at, the gravest first" }),
  silentCouriers: Type.Array(Type.String(), {
    description: "codes of couriers that send far less than in the same hours of the weeks before",
  }),
  numberConflicts: Type.Union([Type.Integer(), Type.Null()], {
    description: "listed by GET /panel/api/number-conflicts; null = missing",
  }),
  missing: Type.Array(Type.String(), {
    description:
      "partitions, and keys, whose shard of a Redis Cluster is unavailable: the other figures are of what is there",
  }),
  stores: Type.Object({
    redis: Type.Object({
      ready: Type.Boolean(),
      away: Type.Array(Type.String(), { description: "masters that do not answer, as host:port" }),
      replicasMissing: Type.Array(
        Type.Object({ node: Type.String(), replicas: Type.Integer(), wanted: Type.Integer() }),
        { description: "masters with fewer replicas than REDIS_WAIT_REPLICAS asks for" },
      ),
    }),
    clickhouse: Type.Object({
      ready: Type.Boolean(),
      behindSeconds: Type.Number({ description: "age of the oldest change not yet written" }),
    }),
    archive: Type.Union(
      [
        Type.Object({
          shipments: Type.Integer({ description: "in the archive" }),
          quiet: Type.Integer({
            description:
              "in Redis without a new status for ARCHIVE_AFTER_DAYS: not ended, or something is kept for them",
          }),
          behindSeconds: Type.Number({ description: "since the latest complete round ended" }),
          backlog: Type.Integer({
            description: "shipments that the round under way has yet to look at, at most",
          }),
        }),
        Type.Null(),
      ],
      {
        description:
          "as of the archiver's latest complete round; null = there was none, or it is missing",
      },
    ),
  }),
});
export type Overview = Static<typeof Overview>;
