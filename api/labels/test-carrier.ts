/**
 * The carrier of test mode: makes the labels of GENERIC and calls nobody. What a reference begins with says what goes wrong.
 *
 * | reference           | what happens                                      |
 * |---------------------|---------------------------------------------------|
 * | `TEST_REFUSED`      | the carrier refuses the shipment: 422             |
 * | `TEST_UNREACHABLE`  | the carrier cannot be reached: 502                |
 * | `TEST_UNREADABLE`   | its answer cannot be read: 502                    |
 * | `TEST_UNCONFIRMED`  | a label is made, and refused when it is confirmed |
 * | `TEST_UNVOIDED`     | a label is made, and the carrier does not void it |
 */
import { genericCarrier } from "./generic-carrier.ts";
import type { CarrierAnswer, LabelCarrier } from "./label-carrier.ts";

const AWAY = { kind: "away", unreadable: false, called: false } as const;
const FAILURES: Readonly<Record<string, Exclude<CarrierAnswer<never>, { kind: "ok" }>>> = {
  TEST_REFUSED: { kind: "refused", message: "The test carrier refuses this reference." },
  TEST_UNREACHABLE: AWAY,
  TEST_UNREADABLE: { ...AWAY, unreadable: true },
};

export const testCarrier: LabelCarrier = {
  needsWeight: false,
  async make(order) {
    const { reference } = order.request;
    const failure = Object.entries(FAILURES).find(([start]) => reference.startsWith(start))?.[1];
    return failure ?? genericCarrier.make(order);
  },
  recover: genericCarrier.recover,
  async confirm({ labels }) {
    const refused = labels.filter(({ record }) => record.reference.startsWith("TEST_UNCONFIRMED"));
    const message = "The test carrier does not confirm this reference.";
    const value = refused.map(({ id }) => ({ labelId: id, code: "TEST_REFUSED", message }));
    return { kind: "ok", value };
  },
  async void({ record }) {
    const isRefused = record.reference.startsWith("TEST_UNVOIDED");
    const message = "The test carrier does not void this reference.";
    return isRefused ? { kind: "refused", message } : { kind: "ok", value: null };
  },
};
