import { beforeEach, expect, test } from "bun:test";
import type { Leased } from "#core/webhooks/store/deliveries/leases.ts";
import { LIMITS } from "#processors/webhooks/deliver-limits.ts";
import { createSendSlots, type SendSlots } from "#processors/webhooks/send-slots.ts";

const [IN_FLIGHT, EXTRA, BESIDES] = [10, 5, 30];
const [GREEDY, NEWCOMER] = [1, 2];
let slots: SendSlots;

beforeEach(() => {
  slots = createSendSlots({ ...LIMITS, inFlight: IN_FLIGHT, slowMs: 60_000 });
});

const of = (companyId: number) => ({ companyId, failing: false, silent: false }) as Leased;

function lease(companyId: number): Leased {
  const leased = of(companyId);
  slots.hold(leased);
  slots.queued(leased);
  return leased;
}

const capacity = (companyId: number) => slots.capacityOfCompany(companyId, performance.now());
const mayBegin = (companyId: number) => slots.mayBegin(of(companyId), performance.now());

function begin(companyId: number): Leased {
  const leased = lease(companyId);
  slots.begun(leased);
  return leased;
}

test("a company that is alone begins as many as there are slots, and leases half as many ahead", () => {
  for (let n = 0; n < IN_FLIGHT; n += 1) {
    expect(mayBegin(GREEDY)).toBe(true);
    begin(GREEDY);
  }
  expect(mayBegin(GREEDY)).toBe(false);
  for (let n = 0; n < EXTRA; n += 1) {
    expect(capacity(GREEDY)).toBeGreaterThan(0);
    lease(GREEDY);
  }
  expect(capacity(GREEDY)).toBe(0);
});

test("whoever comes while one company holds every slot may lease and begin at once", () => {
  for (let n = 0; n < IN_FLIGHT; n += 1) begin(GREEDY);
  for (let n = 0; n < EXTRA; n += 1) lease(GREEDY);
  expect(capacity(NEWCOMER)).toBeGreaterThan(0);
  begin(NEWCOMER);
  expect(mayBegin(NEWCOMER)).toBe(true);
  expect(mayBegin(GREEDY)).toBe(false);
});

test("slow requests of one company take half of what may be under way, and not one more", () => {
  slots = createSendSlots({ ...LIMITS, inFlight: IN_FLIGHT, slowMs: 0 });
  const inAll = IN_FLIGHT + EXTRA + BESIDES;
  let held = 0;
  while (capacity(GREEDY) > 0) {
    begin(GREEDY);
    held += 1;
  }
  expect(held).toBe(Math.ceil(inAll / 2));
  expect(capacity(NEWCOMER)).toBeGreaterThan(0);
});

test("what has ended counts no more", async () => {
  const begun = Array.from({ length: IN_FLIGHT }, () => begin(GREEDY));
  for (const leased of begun) {
    slots.answered(leased);
    slots.drop(leased);
  }
  await slots.whenEmpty();
  expect(capacity(GREEDY)).toBe(IN_FLIGHT + EXTRA);
});
