/** `docs/scale.md` is what its formulas make of the measured figures, and the formulas hold. */
import { describe, expect, test } from "bun:test";
import { LIMITS } from "#processors/webhooks/deliver-limits.ts";
import {
  CHECK_FACTOR,
  type ClusterCosts,
  COSTS_FILE,
  companyLimit,
  DISK_PER_MEMORY,
  fillOf,
  type Inputs,
  installationLimit,
  limitOf,
  MASTER_CPU_SHARE,
  MASTER_MEMORY_SHARE,
  mastersFor,
  needsOf,
  PARTITIONS,
  planFor,
  WEBHOOKS_IN_FLIGHT,
} from "#tools/scale/formulas.ts";
import { inputsOf, PAGE, pageWith, planText } from "#tools/scale/plan.ts";

const page = await Bun.file(PAGE).text();
const costs = (await Bun.file(COSTS_FILE).json()) as ClusterCosts;
const input = inputsOf(page, costs);
/** With nothing but memory to bound it, or nothing but CPU. */
const free = {
  ...input,
  costs: {
    ...costs,
    messages: {
      1: { ...costs.messages[1], masterForIngest: 0, masterForWork: 0 },
      20: { ...costs.messages[20], masterForIngest: 0, masterForWork: 0 },
      500: { ...costs.messages[500], masterForIngest: 0, masterForWork: 0 },
    },
  },
} satisfies Inputs;

test("docs/scale.md is what the generator makes of the recorded figures", () => {
  expect(page).toBe(pageWith(page, planText(input)));
});

test("the disk has the factor of the operations guide, and webhooks the limit of the processors", async () => {
  const guide = await Bun.file("docs/operations/redis.md").text();
  expect(guide).toContain("The disk must hold five times the rewritten file.");
  expect(DISK_PER_MEMORY).toBe(5);
  expect(WEBHOOKS_IN_FLIGHT).toBe(LIMITS.inFlight);
});

test("a line that was measured again on a cluster of six nodes is within the stated factor of what the table says", () => {
  const { predicted, measured, messageSize } = costs.check;
  const line = costs.messages[messageSize];
  const sum = Object.values(line).reduce((total, us) => total + us, 0);
  expect(predicted).toBe(sum);
  expect(measured).toBeGreaterThan(predicted / CHECK_FACTOR);
  expect(measured).toBeLessThan(predicted * CHECK_FACTOR);
});

describe("masters hold whole partitions", () => {
  test("a partition that just fits has a master for itself, and one event a second more than that fits into none", () => {
    const most = installationLimit(input);
    expect(mastersFor(input, most * 0.999_999)).not.toBeNull();
    expect(mastersFor(input, most * 1.000_001)).toBeNull();
  });

  test("two of the largest share a master up to the rate at which both fit, and not from there on", () => {
    const alone = {
      ...free,
      archiveMonths: 0,
      daysUnderWay: 0,
      archiveAfterDays: 0,
      readsPerEvent: 0,
    };
    const onlyEvents = { ...alone, webhooksPerEvent: 0, masterForArchiving: 0 };
    const most = limitOf(onlyEvents, "e", PARTITIONS).memory;
    expect(mastersFor(onlyEvents, (most / 2) * 0.999_999)).toBe(PARTITIONS / 2);
    expect(mastersFor(onlyEvents, (most / 2) * 1.000_001)).toBe(PARTITIONS);
  });

  test("at 10,000 events/s masters of 64 GB would be 32 if they were used to the last byte, `{e}` and `{k}` together and `{t}` alone, and are 48 with room on each", () => {
    const example = {
      eventIdBytes: 9,
      eventIdDays: 230,
      shipmentBytes: 2_160,
      referenceBytes: 22,
      logBytes: 780,
      backlogMinutes: 10,
      peakOverMean: 3,
      eventsPerShipment: 8,
      daysUnderWay: 4,
      archiveAfterDays: 1,
      referencesPerShipment: 2,
      archiveMonths: 12,
    };
    const full = { ...free, ...example, masterGb: 64 / MASTER_MEMORY_SHARE };
    const none = { ...full, webhooksPerEvent: 0, readsPerEvent: 0, masterForArchiving: 0 };
    expect(mastersFor(none, 10_000)).toBe(32);
    expect(mastersFor({ ...none, masterGb: 64 }, 10_000)).toBe(48);
  });

  test("no master is planned for more than its share of core and memory", () => {
    for (const rate of [100, 1_000, 5_000, installationLimit(input)]) {
      const masters = mastersFor(input, rate * 0.999) ?? 0;
      const needs = Object.values(needsOf(input, rate * 0.999));
      const sum = (of: "cpu" | "bytes") =>
        PARTITIONS * needs.reduce((total, need) => total + need[of], 0);
      expect(sum("cpu")).toBeLessThanOrEqual(masters * MASTER_CPU_SHARE);
      expect(sum("bytes")).toBeLessThanOrEqual(
        masters * input.masterGb * 1e9 * MASTER_MEMORY_SHARE,
      );
      expect(masters).toBeLessThanOrEqual(3 * PARTITIONS);
    }
  });
});

describe("what a company can have", () => {
  test("is the smaller of what CPU and memory allow, and shipments that stay longer make it less", () => {
    const { cpu, memory } = limitOf(input, "k", 1);
    expect(companyLimit(input)).toBe(Math.min(cpu, memory));
    const days = [1, 7, 30].map((archiveAfterDays) => companyLimit({ ...input, archiveAfterDays }));
    expect(days.toSorted((a, b) => b - a)).toEqual(days);
  });

  test("by memory alone is a master's memory over the shipments of a second's events", () => {
    // 86,400 s / 3 / 8 events * 5 days * 2,160 bytes = 38.88 MB for each event a second.
    const given = { ...input, peakOverMean: 3, eventsPerShipment: 8, daysUnderWay: 4 };
    const one = { ...given, archiveAfterDays: 1, shipmentBytes: 2_160, masterGb: 64 };
    expect(limitOf(one, "k", 1).memory).toBeCloseTo((64e9 * MASTER_MEMORY_SHARE) / 38.88e6, 6);
    const thirty = { ...one, archiveAfterDays: 30 };
    expect(limitOf(thirty, "k", 1).memory).toBeCloseTo(limitOf(one, "k", 1).memory * (5 / 34), 6);
  });

  test("fills its master at the limit", () => {
    const { cpu, bytes } = needsOf(input, companyLimit(input)).k;
    expect(fillOf(input, { cpu: PARTITIONS * cpu, bytes: PARTITIONS * bytes })).toBeCloseTo(1, 9);
  });
});

describe("a plan", () => {
  test("is one installation up to its limit, and cells of half of that beyond", () => {
    const most = installationLimit(input);
    expect(planFor(input, most * 0.999).installations).toBe(1);
    expect(planFor(input, most * 1.001).installations).toBe(3);
    expect(planFor(input, most * 10).installations).toBe(20);
  });

  test("counts a replica for each master, and the connections that webhooks hold open", () => {
    const one = planFor(input, 1_000);
    const processes = one.ingest + one.processors + one.analytics + one.api;
    expect(one.cores).toBe(processes + 2 * one.masters);
    expect(one.connections).toBe(Math.ceil(1_000 * input.webhooksPerEvent * input.receiverSeconds));
    const slow = planFor({ ...input, receiverSeconds: 30 }, 1_000);
    expect(slow.processors).toBeGreaterThanOrEqual(slow.connections / WEBHOOKS_IN_FLIGHT);
  });

  test("costs more with small messages, more webhooks and more reads", () => {
    const base = planFor(input, 5_000).cores;
    expect(planFor({ ...input, messageSize: 1 }, 5_000).cores).toBeGreaterThan(base);
    expect(planFor({ ...input, webhooksPerEvent: 5 }, 5_000).cores).toBeGreaterThan(base);
    expect(planFor({ ...input, readsPerEvent: 5 }, 5_000).cores).toBeGreaterThan(base);
  });
});
