import { describe, expect, test } from "bun:test";
import { decide } from "#core/webhooks/rules/trigger.ts";

describe("triggers (document 3, Trigger semantics)", () => {
  const base = { statuses: [], active: true } as const;
  const change = { status: "IN_TRANSIT", changed: false, firstOccurrence: false } as const;

  test("status_change fires when the pair changes, first_occurrence on a new pair, every_event always", () => {
    const table = [
      [false, false, "trigger_not_met", "trigger_not_met", "send"],
      [true, false, "send", "trigger_not_met", "send"],
      [true, true, "send", "send", "send"],
      [false, true, "trigger_not_met", "trigger_not_met", "send"],
    ] as const;
    for (const [changed, firstOccurrence, ...verdicts] of table) {
      const triggers = ["status_change", "first_occurrence", "every_event"] as const;
      triggers.forEach((trigger, at) => {
        const input = { ...change, changed, firstOccurrence };
        expect(decide({ ...base, trigger }, input)).toBe(verdicts[at] ?? "send");
      });
    }
  });

  test("the filter comes after the trigger; disabled and unmapped send nothing", () => {
    const subscription = { ...base, trigger: "every_event", statuses: ["DELIVERED"] } as const;
    expect(decide(subscription, change)).toBe("filtered");
    expect(decide(subscription, { ...change, status: "DELIVERED" })).toBe("send");
    expect(decide(subscription, { ...change, status: null })).toBe("unmapped");
    expect(decide({ ...subscription, active: false }, change)).toBe("disabled");
  });
});
