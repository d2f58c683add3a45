/**
 * Features that can meet on one shipment, one account or one installation, and what covers each pair. `test/unit/house/pairs.test.ts`
 * checks that every pair is decided and that every test named here exists. A new feature gets a row.
 */

/** Each with all features above it. */
export const FEATURES = [
  "archive",
  "test mode",
  "erasure",
  "remap",
  "number change",
  "correction",
  "import",
  "label",
  "stock release",
  "notification",
  "replay",
  "catch-up",
  "endpoint off",
  "role change",
  "restore",
  "two analytics processes",
  "cluster",
  "our downtime",
  "slot move",
  "drain",
  "merchant's correction",
  "alarm",
  "as-of read",
  "closing",
] as const;
export type Feature = (typeof FEATURES)[number];

/** Tests as `<file without .test.ts>: <part of the test's name>`, or why the two cannot meet. */
export type Pair = { readonly by: readonly string[] } | { readonly apart: string };

const by = (...tests: string[]): Pair => ({ by: tests });
const apart = (why: string): Pair => ({ apart: why });

const RIGHTS = apart("rights are read at each request and stored with nothing else");
const NO_SHIPMENT = apart("a label is made before there is a shipment, and refers to none");
const NOT_ANALYSED = apart("the analytics never see test mode");
const REDIS_ONLY = apart("it stands in Redis alone, which the analytics do not write");
const VERSIONED = apart("each compares the version that it read, and reads again");
const ONE_FOLD = apart("both are facts of one fold, whose order does not matter");
const KILLED = "fault/operation/kill-everything: kills in a stream of events lose nothing";
const WHOLE_STORE = by(
  "fault/operation/backup: it has every event that was accepted before, in both stores, once",
);
const RESTORED = "flow/house/pairs: a restored backup has the shipments of both sides";
/** Each step's keys lie in one slot, and a step whose slot moves is refused before it writes. */
const SLOTS = by(
  "contract/redis/script-slots: a call of which one key has moved is refused before it changes anything",
);
const WEBHOOK_SLOTS = by(
  "contract/webhooks/webhooks-half-moved: a call refused there has changed nothing and can be retried",
);
const AS_OF_LATER = by(
  "contract/panel/trace: it answers what it answered then, whatever was received, mapped and erased",
);
const AS_OF_ARCHIVED = by(
  "flow/house/pairs: has set-aside events from their release on and numbers from their announcement",
);
const READS_ONLY = apart("it reads what the trace reads, and writes nothing");
const WORKS_ON = apart("until its ports close, a process that drains works as ever; then it ends");
const ANSWERED =
  "contract/operation/drain: answers a request that was accepted, however long ClickHouse takes";
const ANY_STORE = (test: string) =>
  by(test, "fault/operation/kill-roles: kills of any role's processes");

const NO_PARCEL = apart(
  "an alarm is about the service, an endpoint or a courier, not about a parcel",
);
/** Of an endpoint that fails, of one in test mode, of a company that is closed, and while no processors run. */
const TOLD = by(
  "contract/alarms/alarms: is told of its own endpoint after 15 minutes in which webhooks were sent",
);

const KEPT = apart("what is closed keeps its shipments, which go on as those of what is open");
const CLOSED = by(
  "contract/setup/panel-entries: a company with its channels: keys stop working, endpoints are inactive",
);
const BUSY = by(
  "contract/setup/panel-entries: not while webhooks are undelivered or an import is running",
);

export const PAIRS: Readonly<Record<Feature, Partial<Readonly<Record<Feature, Pair>>>>> = {
  archive: {},
  "test mode": {
    archive: by(
      "contract/archive/archive-meets: goes on after the first shipments of a channel's shadow",
    ),
  },
  erasure: {
    archive: by(
      "contract/archive/archive: the recipient of an archived shipment is erased, there too",
    ),
    "test mode": by("flow/house/pairs: of a test parcel stays erased while its life goes on"),
  },
  remap: {
    archive: by("contract/archive/archive: comes back when they are mapped"),
    "test mode": by("flow/house/pairs: is none of test mode: its couriers' codes cannot be mapped"),
    erasure: by("flow/house/pairs: does not come back when a code is mapped"),
  },
  "number change": {
    archive: by("flow/house/pairs: is found by an event under a number that its courier announced"),
    "test mode": by("flow/merchants/test-mode: every scenario ends as its name says"),
    erasure: by("flow/house/pairs: and in none of a number that changed"),
    remap: by("flow/house/pairs: counts for events under every number"),
  },
  correction: {
    archive: by("contract/archive/archive: is ACCEPTED, brings it back, and counts once"),
    "test mode": by("flow/merchants/test-mode: every scenario ends as its name says"),
    erasure: by("contract/shipments/erase-personal-data: a later courier event is folded without"),
    remap: ONE_FOLD,
    "number change": ONE_FOLD,
  },
  import: {
    archive: by("flow/house/pairs: is a duplicate in an import of its number"),
    "test mode": by("flow/house/pairs: that an import has made lives its life"),
    erasure: by("contract/shipments/erase-personal-data: leaves nothing of the recipient"),
    remap: apart("an import creates shipments without events, a remap folds events"),
    "number change": by(
      "flow/house/pairs: a number that a courier announced is taken on its channel",
    ),
    correction: by("contract/events/parked: together with what was parked under a number"),
  },
  label: {
    archive: NO_SHIPMENT,
    "test mode": by("flow/merchants/test-mode: labels are made, refused and unavailable"),
    erasure: by("contract/shipments/erase-personal-data: leaves nothing of the recipient"),
    remap: NO_SHIPMENT,
    "number change": NO_SHIPMENT,
    correction: NO_SHIPMENT,
    import: NO_SHIPMENT,
  },
  "stock release": {
    archive: by("contract/archive/archive: what was asked of an archived shipment"),
    "test mode": by(
      "flow/merchants/test-mode: goes on as its release says, refusals and outages included",
    ),
    erasure: by("contract/shipments/erase-personal-data: leaves nothing of the recipient"),
    remap: apart("a release asks for the current status, whatever made it that"),
    "number change": apart("a release names the number that the merchant registered"),
    correction: by("contract/merchants/api-stock-release: and so may a parcel that is held again"),
    import: apart("a shipment is released by its state, however it was created"),
    label: NO_SHIPMENT,
  },
  notification: {
    archive: by(
      "contract/archive/archive: what was asked of an archived shipment and told its recipient",
    ),
    "test mode": by("flow/merchants/test-mode: notifications go into the outbox and to nobody"),
    erasure: by("flow/house/pairs: gets no mail that was waiting for another attempt"),
    remap: by("contract/shipments/notify-status: a change that is read twice is reported once"),
    "number change": apart("a message shows the number that the merchant registered"),
    correction: by(
      "contract/shipments/notify-status: news that a later change has overtaken is not sent",
    ),
    import: apart("a recipient is told of changes, and an import makes none"),
    label: NO_SHIPMENT,
    "stock release": apart("a release sends no message; the event that follows it may"),
  },
  replay: {
    archive: by("contract/archive/archive: a delivery of an archived shipment is shown"),
    "test mode": by("flow/house/pairs: its deliveries are replayed to its own endpoint"),
    erasure: by("flow/house/pairs: is in no replay of a delivery that had named them"),
    remap: by("flow/house/pairs: leaves the id of a replay as it was"),
    "number change": apart("a replay is of an endpoint and an event id, which keep their number"),
    correction: by("contract/webhooks/webhooks-delivery: document 3, Delivery: replay"),
    import: apart("a replay repeats deliveries; the creation of a shipment is none"),
    label: NO_SHIPMENT,
    "stock release": apart("a release is no delivery"),
    notification: apart("a message is no delivery"),
  },
  "catch-up": {
    archive: by("fault/archive/kill-archive: kills while shipments are archived and come back"),
    "test mode": by("flow/house/pairs: is caught up with"),
    erasure: by("contract/shipments/erase-personal-data: detail, trace, search and tracking page"),
    remap: by("flow/house/pairs: is found by a catch-up"),
    "number change": apart("a number that changes sets no statusUpdatedAt"),
    correction: by(
      "contract/search/api-search: misses nothing while some change once and others again",
    ),
    import: by("contract/search/api-search: a shipment never updated is excluded"),
    label: NO_SHIPMENT,
    "stock release": apart("a release sets no statusUpdatedAt"),
    notification: apart("a message sets no statusUpdatedAt"),
    replay: apart("a replay sets no statusUpdatedAt"),
  },
  "endpoint off": {
    archive: by(
      "flow/house/pairs: that a late event brings back sends nothing to a disabled endpoint",
    ),
    "test mode": by("flow/house/pairs: is told of by no disabled endpoint of test mode"),
    erasure: apart("an erasure sends nothing"),
    remap: by("flow/house/pairs: sends nothing to an endpoint that was disabled meanwhile"),
    "number change": apart("decisions are of facts, whatever number they came under"),
    correction: by("contract/webhooks/webhooks-health: no events are generated while disabled"),
    import: by("contract/shipments/api-import: a channel without endpoints has no secret"),
    label: NO_SHIPMENT,
    "stock release": apart("a release sends no webhook"),
    notification: apart("messages to recipients need no endpoint"),
    replay: by("contract/webhooks/webhooks-log: it stops when its endpoint is switched off"),
    "catch-up": apart("a catch-up reads shipments, not deliveries"),
  },
  "role change": {
    archive: RIGHTS,
    "test mode": RIGHTS,
    erasure: by("contract/shipments/erase-personal-data: nobody without the capability may"),
    remap: RIGHTS,
    "number change": RIGHTS,
    correction: RIGHTS,
    import: RIGHTS,
    label: RIGHTS,
    "stock release": RIGHTS,
    notification: RIGHTS,
    replay: RIGHTS,
    "catch-up": RIGHTS,
    "endpoint off": RIGHTS,
  },
  restore: {
    archive: by(RESTORED),
    "test mode": by(RESTORED),
    erasure: by(RESTORED),
    remap: WHOLE_STORE,
    "number change": WHOLE_STORE,
    correction: WHOLE_STORE,
    import: WHOLE_STORE,
    label: WHOLE_STORE,
    "stock release": WHOLE_STORE,
    notification: WHOLE_STORE,
    replay: WHOLE_STORE,
    "catch-up": WHOLE_STORE,
    "endpoint off": WHOLE_STORE,
    "role change": WHOLE_STORE,
  },
  "two analytics processes": {
    archive: by("fault/archive/kill-archive-roles: kills of any role's processes while shipments"),
    "test mode": NOT_ANALYSED,
    erasure: apart("an archived shipment is back in Redis before it is erased"),
    remap: apart("an archived shipment is back in Redis before it is folded again"),
    "number change": REDIS_ONLY,
    correction: by("fault/operation/kill-roles: kills of any role's processes and of Redis"),
    import: REDIS_ONLY,
    label: REDIS_ONLY,
    "stock release": REDIS_ONLY,
    notification: REDIS_ONLY,
    replay: REDIS_ONLY,
    "catch-up": by(
      "fault/archive/kill-archive-roles: kills of any role's processes while shipments",
    ),
    "endpoint off": REDIS_ONLY,
    "role change": RIGHTS,
    restore: apart("a restore needs an empty folder that no process has open"),
  },
  cluster: {
    archive: ANY_STORE(
      "fault/archive/kill-archive: kills while shipments are archived and come back",
    ),
    "test mode": ANY_STORE("flow/merchants/test-mode: exactly once although the product is killed"),
    erasure: SLOTS,
    remap: ANY_STORE("fault/statuses/kill-remap: kill -9 in the middle of a remap"),
    "number change": ANY_STORE("contract/events/matching: a tracking number change"),
    correction: by(KILLED),
    import: ANY_STORE("fault/merchants/kill-import: an import killed again and again"),
    label: SLOTS,
    "stock release": SLOTS,
    notification: ANY_STORE(
      "fault/merchants/kill-notifications: every accepted notification is mailed",
    ),
    replay: ANY_STORE("fault/webhooks/kill-webhooks: kills during deliveries lose none"),
    "catch-up": by("fault/archive/kill-archive: kills while shipments are archived and come back"),
    "endpoint off": by("fault/webhooks/kill-webhooks: an endpoint switched off hears nothing more"),
    "role change": RIGHTS,
    restore: by("fault/operation/backup: servers are left to their own means"),
    "two analytics processes": by("fault/operation/kill-roles: kills of any role's processes"),
  },
  "our downtime": {
    archive: by("fault/archive/kill-archive-roles: kills of any role's processes while shipments"),
    "test mode": by("flow/merchants/test-mode: exactly once although the product is killed"),
    erasure: by("contract/shipments/erase-personal-data: is erased by a repetition a minute later"),
    remap: by("contract/statuses/mapping: one that was cut short goes on where it stood"),
    "number change": by(KILLED),
    correction: by(KILLED),
    import: by("fault/merchants/kill-import: an import killed again and again"),
    label: by("fault/merchants/kill-confirm: the retry opens one transmission, at the carrier too"),
    "stock release": by(
      "fault/merchants/kill-idempotency: every request creates once and keeps its answer",
    ),
    notification: by("fault/merchants/kill-notifications: every accepted notification is mailed"),
    replay: by("fault/webhooks/kill-webhooks: kills during deliveries lose none"),
    "catch-up": by("fault/archive/kill-archive: kills while shipments are archived and come back"),
    "endpoint off": by("contract/webhooks/webhooks-downtime: after four days without processors"),
    "role change": RIGHTS,
    restore: by("fault/operation/backup: is taken while nothing runs too"),
    "two analytics processes": by("fault/operation/kill-roles: kills of any role's processes"),
    cluster: by(KILLED),
  },
  "slot move": {
    archive: SLOTS,
    "test mode": SLOTS,
    erasure: SLOTS,
    remap: SLOTS,
    "number change": SLOTS,
    correction: by(
      "fault/redis/slot-migration: slots that move away and back lose no event and no webhook",
    ),
    import: SLOTS,
    label: SLOTS,
    "stock release": SLOTS,
    notification: SLOTS,
    replay: WEBHOOK_SLOTS,
    "catch-up": SLOTS,
    "endpoint off": WEBHOOK_SLOTS,
    "role change": RIGHTS,
    restore: apart("a restore is of one server, which has all slots"),
    "two analytics processes": apart("a log is one key, whose consumer group moves with it"),
    cluster: by("fault/redis/placement: slots move under load, the command killed and run again"),
    "our downtime": by(
      "fault/redis/placement: slots move under load, the command killed and run again",
    ),
  },
  drain: {
    archive: by("fault/archive/kill-archive-roles: kills of any role's processes while shipments"),
    "test mode": WORKS_ON,
    erasure: WORKS_ON,
    remap: WORKS_ON,
    "number change": WORKS_ON,
    correction: by("fault/operation/rolling-restarts: rolling restarts of every role refuse"),
    import: by(
      "contract/operation/drain: refuses a body that goes on arriving, so that it is sent again",
    ),
    label: by("unit/platform/stop-limits: a confirmation of labels", ANSWERED),
    "stock release": WORKS_ON,
    notification: WORKS_ON,
    replay: WORKS_ON,
    "catch-up": by("contract/operation/drain: is no longer ready on any port, serves on all"),
    "endpoint off": WORKS_ON,
    "role change": RIGHTS,
    restore: apart("a store is restored while nothing runs"),
    "two analytics processes": by(
      "fault/operation/rolling-restarts: rolling restarts of every role refuse",
    ),
    cluster: apart("a drain concerns processes, whatever store they have"),
    "our downtime": apart("processors work until the drain is over"),
    "slot move": apart("a drain concerns processes, a move the store"),
  },
  "merchant's correction": {
    archive: by(
      "contract/archive/archive-meets: is still found by every order reference it has had",
    ),
    "test mode": apart("a shadow has shipments like any other channel"),
    erasure: by("contract/shipments/api-correct: an erased recipient does not come back"),
    remap: VERSIONED,
    "number change": VERSIONED,
    correction: VERSIONED,
    import: apart("a shipment is corrected however it was created"),
    label: NO_SHIPMENT,
    "stock release": apart("a release has an address of its own"),
    notification: apart("a message takes the recipient whom the shipment has when it is sent"),
    replay: apart("a replay sends the shipment as it is now, whoever changed it"),
    "catch-up": by(
      "contract/shipments/api-correct: members that are given change, the others stay",
    ),
    "endpoint off": apart("no webhook is sent for it"),
    "role change": RIGHTS,
    restore: WHOLE_STORE,
    "two analytics processes": REDIS_ONLY,
    cluster: SLOTS,
    "our downtime": apart("it needs no processors"),
    "slot move": SLOTS,
    drain: by(ANSWERED),
  },
  alarm: {
    archive: NO_PARCEL,
    "test mode": TOLD,
    erasure: apart("a message names no recipient"),
    remap: NO_PARCEL,
    "number change": NO_PARCEL,
    correction: NO_PARCEL,
    import: NO_PARCEL,
    label: NO_PARCEL,
    "stock release": NO_PARCEL,
    notification: apart("recipients and receivers of alarms are told by parts that share nothing"),
    replay: apart("a replay that succeeds ends the failing of its endpoint, like any delivery"),
    "catch-up": NO_PARCEL,
    "endpoint off": TOLD,
    "role change": RIGHTS,
    restore: apart("incidents are restored as they were, and the next look goes on from there"),
    "two analytics processes": apart("one panel looks, and asks whichever ClickHouse answers"),
    cluster: apart("all of it stands in one slot; a shard that is unavailable ends no incident"),
    "our downtime": TOLD,
    "slot move": SLOTS,
    drain: WORKS_ON,
    "merchant's correction": NO_PARCEL,
  },
  "as-of read": {
    archive: AS_OF_ARCHIVED,
    "test mode": apart("a shadow has shipments like any other channel"),
    erasure: AS_OF_LATER,
    remap: AS_OF_LATER,
    "number change": AS_OF_ARCHIVED,
    correction: AS_OF_LATER,
    import: apart("a shipment has events however it was created"),
    label: NO_SHIPMENT,
    "stock release": apart("a trace has no releases"),
    notification: apart("a trace has no messages to the recipient"),
    replay: by("contract/panel/trace: an attempt that was made later is not there"),
    "catch-up": apart("it lists nothing that catch-up reads"),
    "endpoint off": apart("what a decision said is read as it was recorded"),
    "role change": RIGHTS,
    restore: READS_ONLY,
    "two analytics processes": READS_ONLY,
    cluster: READS_ONLY,
    "our downtime": apart("it goes by the time of receipt, not by that of processing"),
    "slot move": READS_ONLY,
    drain: by(ANSWERED),
    "merchant's correction": apart("a trace shows nothing that a merchant can correct"),
    alarm: apart("a trace shows no alarms"),
  },
  closing: {
    archive: KEPT,
    "test mode": CLOSED,
    erasure: KEPT,
    remap: KEPT,
    "number change": KEPT,
    correction: KEPT,
    import: BUSY,
    label: apart("a label is asked for with a key, which does not work"),
    "stock release": apart("a release is asked for with a key, which does not work"),
    notification: CLOSED,
    replay: apart("the endpoints of what is closed are inactive, which ends a replay"),
    "catch-up": apart("it is asked for with a key, which does not work"),
    "endpoint off": BUSY,
    "role change": CLOSED,
    restore: WHOLE_STORE,
    "two analytics processes": KEPT,
    cluster: SLOTS,
    "our downtime": apart(
      "it takes effect with the configuration, which every process reads first",
    ),
    "slot move": SLOTS,
    drain: WORKS_ON,
    "merchant's correction": apart("a shipment is corrected with a key, which does not work"),
    alarm: TOLD,
    "as-of read": apart(
      "what is closed keeps its shipments, which are read as those of what is open",
    ),
  },
};
