/** What a row and each column of the tables and views is, with its unit: as `DESCRIBE` shows it, here and in any client of ClickHouse. */

interface Words {
  readonly row: string;
  readonly columns: Readonly<Record<string, string>>;
}

const OWNER = {
  shipment_id: "id of the shipment",
  company: "keyed hash of the company, the same in every table",
  channel: "keyed hash of the channel, the same in every table",
};
const COURIER = "code of the courier";
const CAP = "postal code (CAP) of the destination, 5 digits";
const AREA = "NORD, CENTRO or SUD";
const BANDS =
  "kg: 0-1, 1-3, 3-5, 5-10, 10-20, 20-30, 30-50, 50+; a weight on a bound is in the lower band";
const MONTH = "first day of the month of delivery (Europe/Rome)";
const EARLIER = "the earlier name of";
const LOWER =
  "lower end of the 95 % confidence interval of the median, calendar days; NULL under 6 deliveries";
const UPPER =
  "upper end of the 95 % confidence interval of the median, calendar days; NULL under 6 deliveries";

export const COMMENTS: Readonly<Record<string, Words>> = {
  deliveries: {
    row: "a delivered shipment; read it with FINAL: the highest version counts",
    columns: {
      ...OWNER,
      courier: COURIER,
      dest_cap: CAP,
      origin_cap: "postal code (CAP) of the origin; empty: not known",
      origin_area: `area of the origin: ${AREA}; empty: not known`,
      weight_kg: "kg; NULL: not known",
      weight_band: `${BANDS}; empty: not known`,
      ship_date: "day on which the merchant shipped it",
      delivered_on: "day of delivery in Europe/Rome",
      lead_days: "calendar days from ship_date to the delivery",
      transit_days: "calendar days from the first DEPARTED event to the delivery; NULL without one",
      attempts: "delivery attempts, the successful one included",
      exceptions: "events of status EXCEPTION",
      is_return: "a return: not part of any benchmark",
      is_evidence:
        "false if it was delivered before its ship date, or more than a year after it: benchmarks ignore it",
      planned_on:
        "day that the merchant planned (planning.deliveryDate); NULL: none, or shipped before this was kept",
      version: "version of the shipment: the highest one counts",
      removed: "1: a later fact says that it was not delivered; FINAL leaves it out",
    },
  },
  events: {
    row: "a fact that was applied to a shipment; read it with FINAL: the highest version counts",
    columns: {
      ...OWNER,
      fact_key: "identity of the fact within the shipment",
      courier: COURIER,
      code: "status code, the courier's own",
      reason_code: "reason code, the courier's own; empty: none",
      occurred_at: "when it happened, UTC, milliseconds",
      received_at: "when it was received, UTC, milliseconds",
      place: "position in its message, from 0",
      status: "mapped status; empty: not mapped",
      status_detail: "id of the status detail; 0: none",
      terminal: "the code ends the journey",
      out_of_order: "a fact that was received earlier happened later",
      is_return: "the event belongs to a return",
      dest_cap: `${CAP}; empty: not known or not Italian`,
      origin_cap: "postal code (CAP) of the origin; empty: not known",
      weight_kg: "kg; NULL: not known",
      ship_date: "day on which the merchant shipped it",
      estimated_on:
        "day of delivery that the event estimates, in Europe/Rome; of a window its end; NULL: none, or received before this was kept",
      version: "version of the shipment: the highest one counts",
      message_id:
        "message that brought it, as the courier named it; empty: it was parked, or received before this was kept",
    },
  },
  event_outcomes: {
    row: "events of a courier in an hour with the same outcome; read it with FINAL",
    columns: {
      hour: "when the message was received: start of the hour, UTC",
      courier: COURIER,
      outcome:
        "ACCEPTED, DUPLICATE, UNKNOWN_TRACKING, INVALID; RULE: a rule that invalid events broke, not to be added to the others",
      rule: "error code and member, such as REQUIRED status; empty unless the outcome is RULE",
      events: "number of events",
    },
  },
  attempts: {
    row: "a webhook attempt; read it with FINAL",
    columns: {
      endpoint_id: "id of the endpoint; v1_ begins the v1 webhook of a channel",
      channel: "keyed hash of the channel, the same in every table",
      delivery_id: "id of the delivery",
      event_id: "id of the event, the same for all endpoints of a channel",
      generation: "1, and one more with each replay",
      attempt: "from 1 in each generation",
      at: "when it began, UTC, milliseconds",
      http_status: "HTTP status of the answer; 0: none",
      error:
        "timeout, connection, tls, dns, address, acknowledgement, other; empty: see http_status",
      latency_ms: "milliseconds from the DNS look-up to the last byte that is read",
      outcome: "DELIVERED, WAITING (another attempt follows), FAILED",
    },
  },
  lanes: {
    row: "a cell of the benchmarks: deliveries of a courier to a CAP over the last 12 months at one grain; a delivery is in up to six cells",
    columns: {
      courier: COURIER,
      dest_cap: CAP,
      grain:
        "what the deliveries of the cell share beside dest_cap, finest first: origin_cap_dest_weight (origin CAP and weight band), origin_cap_dest (origin CAP), area_cap_weight (origin area and weight band), cap_weight (weight band), area_cap (origin area), cap (nothing else)",
      origin: "CAP or area of the origin, as the grain says; empty where it has none",
      weight_band: `${BANDS}; empty where the grain has none`,
      deliveries: "number of deliveries",
      suppressed: "1: fewer than 20 deliveries, which merchants are not shown",
      lead_median: `calendar days; ${EARLIER} lead_median_days`,
      lead_mean: `calendar days; ${EARLIER} lead_mean_days`,
      lead_p90: `calendar days; ${EARLIER} lead_p90_days`,
      transit_deliveries: "deliveries with transit days",
      transit_median: `calendar days; ${EARLIER} transit_median_days`,
      transit_mean: `calendar days; ${EARLIER} transit_mean_days`,
      attempts_mean: "attempts per delivery",
      trouble_share: "share of deliveries with a second attempt or an exception, 0 to 1",
      companies: "number of companies",
      top_company_share: "share of the deliveries that the largest company has, 0 to 1",
      dominated: "1: one company has more than 60 % of the deliveries",
      lead_median_days: "median of the lead, calendar days",
      lead_median_low_days: LOWER,
      lead_median_high_days: UPPER,
      lead_mean_days: "mean of the lead, calendar days, one decimal",
      lead_p90_days: "90th percentile of the lead, calendar days",
      transit_median_days: "median of the transit, calendar days; NULL without transit days",
      transit_median_low_days: LOWER,
      transit_median_high_days: UPPER,
      transit_mean_days:
        "mean of the transit, calendar days, one decimal; NULL without transit days",
    },
  },
  courier_performance: {
    row: "a courier in a month of delivery",
    columns: {
      courier: COURIER,
      month: MONTH,
      deliveries: "deliveries that the figures stand on: neither returns nor left out",
      returns: "number of returns",
      left_out: "deliveries before their ship date, or more than a year after it",
      lead_median: `calendar days; ${EARLIER} lead_median_days`,
      lead_mean: `calendar days; ${EARLIER} lead_mean_days`,
      lead_p90: `calendar days; ${EARLIER} lead_p90_days`,
      transit_mean: `calendar days; ${EARLIER} transit_mean_days`,
      first_attempt_share:
        "share of deliveries at the first attempt, 0 to 1; NULL without deliveries",
      exception_share: "share of deliveries with an exception, 0 to 1; NULL without deliveries",
      dest_caps: "number of destination CAPs; 0 without deliveries",
      lead_median_days: "median of the lead, calendar days; NULL without deliveries",
      lead_mean_days: "mean of the lead, calendar days, one decimal; NULL without deliveries",
      lead_p90_days: "90th percentile of the lead, calendar days; NULL without deliveries",
      transit_mean_days:
        "mean of the transit, calendar days, one decimal; NULL without transit days",
    },
  },
  event_quality: {
    row: "a courier on a day of reception",
    columns: {
      courier: COURIER,
      day: "day of reception (Europe/Rome)",
      facts: "events that were applied, once for each shipment",
      delay_p50: `seconds; ${EARLIER} delay_p50_seconds`,
      delay_p95: `seconds; ${EARLIER} delay_p95_seconds`,
      out_of_order_share: "share of the facts that came after a later one, 0 to 1",
      unmapped_share: "share of the facts whose code is not mapped, 0 to 1",
      received: "events received",
      duplicate: "events received that were DUPLICATE",
      invalid: "events received that were INVALID",
      unknown_tracking: "events received that were UNKNOWN_TRACKING",
      duplicate_share: "share of the events received, 0 to 1",
      invalid_share: "share of the events received, 0 to 1",
      unknown_tracking_share: "share of the events received, 0 to 1",
      delay_p50_seconds: "median of the time from occurredAt to reception, seconds",
      delay_p95_seconds: "95th percentile of the time from occurredAt to reception, seconds",
    },
  },
  sla: {
    row: "a courier in a month of delivery between two areas",
    columns: {
      courier: COURIER,
      month: MONTH,
      origin_area: `${AREA}; empty: not known`,
      dest_area: AREA,
      delivered: "number of deliveries, returns excluded",
      within_1_day: "share within 1 calendar day of the ship date, 0 to 1",
      within_2_days: "share within 2 calendar days of the ship date, 0 to 1",
      within_3_days: "share within 3 calendar days of the ship date, 0 to 1",
      within_5_days: "share within 5 calendar days of the ship date, 0 to 1",
      first_attempt_share: "share of deliveries at the first attempt, 0 to 1",
    },
  },
  on_time: {
    row: "a courier in a month of delivery between two areas: deliveries on or before the day that was promised",
    columns: {
      courier: COURIER,
      month: MONTH,
      origin_area: `${AREA}; empty: not known`,
      dest_area: AREA,
      delivered: "number of deliveries, returns excluded",
      first_estimate_deliveries:
        "deliveries for which the courier sent an estimate before it delivered",
      first_estimate_share:
        "share of those on or before the courier's first estimate, 0 to 1; NULL without any",
      last_estimate_deliveries: "as first_estimate_deliveries",
      last_estimate_share:
        "share of those on or before the courier's last estimate, 0 to 1; NULL without any",
      planned_deliveries:
        "deliveries with a date that the merchant planned (planning.deliveryDate)",
      planned_share: "share of those on or before the planned date, 0 to 1; NULL without any",
    },
  },
  endpoint_health: {
    row: "a webhook endpoint in an hour",
    columns: {
      endpoint_id: "id of the endpoint; v1_ begins the v1 webhook of a channel",
      channel: "keyed hash of the channel, the same in every table",
      hour: "start of the hour of the attempts, UTC",
      attempts: "number of attempts",
      delivered: "attempts that delivered",
      waiting: "attempts that another one follows",
      failed: "attempts that were the last one and failed",
      success_share: "delivered per attempt, 0 to 1",
      first_attempt_share: "share of first attempts that delivered, 0 to 1",
      status_3xx: "attempts that were answered 300 to 399",
      status_4xx: "attempts that were answered 400 to 499",
      status_5xx: "attempts that were answered 500 or more",
      timeouts: "attempts without an answer in time",
      unreachable: "attempts that failed to connect (connection, TLS, DNS)",
      latency_p50_ms: "median of the latency, milliseconds, unanswered attempts included",
      latency_p95_ms: "95th percentile of the latency, milliseconds, unanswered attempts included",
    },
  },
};

const quoted = (text: string) => `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;

/** Tables may exist already, and a view is made without comments. */
export const COMMENT_STATEMENTS = Object.entries(COMMENTS).map(([name, { row, columns }]) => {
  const changes = Object.entries(columns).map(
    ([column, words]) => `COMMENT COLUMN ${column} ${quoted(words)}`,
  );
  return `ALTER TABLE ${name} ${[...changes, `MODIFY COMMENT ${quoted(row)}`].join(", ")}`;
});
