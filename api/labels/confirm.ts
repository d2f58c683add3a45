/** `POST /v2/labels/confirm` (document 1, "Labels"): closes the day for a batch of labels. */

import { type Static, Type } from "@sinclair/typebox";
import { type Caller, merchantRoutes } from "#api/auth/authenticated.ts";
import type { ApiDeps } from "#api/deps.ts";
import { validationFailed } from "#api/http/error-response.ts";
import { onceByKey, repeatable } from "#api/http/idempotency.ts";
import { ConfirmRequest, confirmFaults } from "#core/merchants/rules/label.ts";
import { transmissionNumberOf } from "#core/merchants/rules/slip.ts";
import {
  claimTransmission,
  freeTransmission,
  type LabelOwner,
  lockConfirmation,
  newSlipToken,
  openTransmission,
  readLabels,
  type StoredLabel,
  type Transmission,
} from "#core/merchants/store/labels.ts";
import { route } from "#core/platform/http/access.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import { limit } from "#core/platform/schema/limit.ts";
import { warnings } from "#core/platform/schema/unknown-members.ts";
import { romeIso } from "#core/platform/time/rome-time.ts";
import { findCarrier } from "./carriers.ts";
import type { LabelCarrier, Refusal } from "./label-carrier.ts";
import {
  failed,
  LABEL_PROBLEMS,
  labelBody,
  labelProblem,
  RefusedLabels,
  unknownCarrier,
} from "./label-problem.ts";

/** Renewed while a confirmation is in progress; a label is in one transmission only, whoever holds the lock. */
export const LOCK_TERMS = {
  leaseMs: limit(
    10_000,
    "lease of a label confirmation",
    "renewed after a third; others wait for as long if the holder is killed",
  ),
  waitLimitMs: limit(15_000, "wait for a label confirmation", "423 with `Retry-After`"),
};
const BUSY_RETRY_SECONDS = "5";

const ids = (description: string) => Type.Array(Type.Integer(), { description });
const nullable = (description: string) => Type.Union([Type.String(), Type.Null()], { description });

export const TransmissionView = Type.Object({
  transmissionId: Type.Integer(),
  transmissionNumber: Type.String({ description: "the number printed on the slip" }),
  slipUrl: Type.String({ description: "the address of its slip, as in `Location`" }),
  labelIds: ids("labels of this request that it holds"),
});

export const ConfirmView = Type.Object({
  transmissionId: Type.Union([Type.Integer(), Type.Null()], {
    description: "null when this call has opened no transmission",
  }),
  transmissionNumber: nullable("the number printed on the slip"),
  courier: Type.String(),
  confirmedIds: ids("labels of this transmission"),
  alreadyConfirmedIds: ids("labels that an earlier transmission holds"),
  notFoundIds: ids("no labels of the channel with this carrier"),
  errors: RefusedLabels,
  pickupDate: nullable("as asked for"),
  pickupTime: nullable("as asked for"),
  createdAt: nullable("ISO 8601; of the transmission"),
  transmissions: Type.Array(TransmissionView, {
    description: "those that hold confirmedIds and alreadyConfirmedIds, the latest first",
  }),
  warnings,
});
type ConfirmView = Static<typeof ConfirmView>;

const example: ConfirmView = {
  transmissionId: 17,
  transmissionNumber: "T000000017",
  courier: "GENERIC",
  confirmedIds: [81],
  alreadyConfirmedIds: [65],
  notFoundIds: [],
  errors: [],
  pickupDate: "2026-11-21",
  pickupTime: null,
  createdAt: "2026-11-20T18:00:00.000+01:00",
  transmissions: [
    {
      transmissionId: 17,
      transmissionNumber: "T000000017",
      slipUrl: "https://track.example/slips/3cZkq0",
      labelIds: [81],
    },
    {
      transmissionId: 1,
      transmissionNumber: "T000000001",
      slipUrl: "https://track.example/slips/3Yw81h",
      labelIds: [65],
    },
  ],
};
const nothingNew: ConfirmView = {
  ...example,
  transmissionId: null,
  transmissionNumber: null,
  confirmedIds: [],
  alreadyConfirmedIds: [81, 65],
  createdAt: null,
};

const operation = repeatable({
  access: { scope: null },
  id: "confirmLabels",
  summary: "Close the day: confirm labels to the carrier",
  description:
    "May be repeated: confirmed labels stay in their transmission, and the answer names it and its slip. `Location` is the slip of the latest transmission that contains one of the labels, `transmissions` lists them all. After a call with an unknown outcome, the same labels and pickup are sent to the carrier again under the same `Idempotency-Key`.",
  rules: [
    { path: "labelCreationDate", code: "NOT_ALLOWED", rule: "not supported" },
    { path: "pickupDate", code: "REQUIRED", rule: "with a pickupTime" },
  ],
  body: labelBody(ConfirmRequest, {
    courier: "GENERIC",
    labelIds: [81, 65],
    pickupDate: "2026-11-21",
  }),
  answers: {
    200: {
      description: "No new transmission: all labels were confirmed before or are not found.",
      headers: {
        Location:
          "Address of the slip of the latest transmission that contains one of the labels; absent if none does.",
      },
      content: { schema: ConfirmView, example: nothingNew },
    },
    201: {
      description: "A transmission with at least one label.",
      headers: { Location: "Address of the transmission slip (PDF)." },
      content: { schema: ConfirmView, example },
    },
  },
  errors: [
    "UNKNOWN_CARRIER",
    "CARRIER_REFUSED",
    "CONFIRMATION_IN_PROGRESS",
    "CARRIER_UNREACHABLE",
    "CARRIER_UNREADABLE",
  ],
  problems: LABEL_PROBLEMS,
});

export function confirmLabelsRoute(deps: ApiDeps) {
  const { redis } = deps;
  return merchantRoutes(deps).post(
    "/v2/labels/confirm",
    async ({ body, request, caller, set }): Promise<ConfirmView> => {
      const faults = confirmFaults(body);
      if (faults.length > 0) throw validationFailed(faults, body);
      const found = findCarrier(deps.config, caller, body.courier);
      if (!found) throw unknownCarrier();
      const owner = { companyId: caller.company.id, channelId: caller.channel.id };
      return onceByKey(deps, { request, caller, set }, [body], async () => {
        const lock = await waitForLock(redis, owner, body.courier);
        try {
          const view = await confirm(deps, caller, owner, found.carrier, body);
          set.status = view.transmissionId === null ? 200 : 201;
          const [latest] = view.transmissions;
          if (latest) set.headers["location"] = latest.slipUrl;
          return view;
        } finally {
          await lock.release();
        }
      });
    },
    route(operation),
  );
}

/**
 * Confirmations and voidings of a carrier's labels are carried out one after another.
 * @throws {Problem} 423
 */
export async function waitForLock(redis: Redis, owner: LabelOwner, courier: string) {
  const lock = await lockConfirmation(redis, owner, courier, LOCK_TERMS);
  if (lock) return lock;
  const detail = "Another request is confirming or voiding labels of this carrier.";
  const headers = { "retry-after": BUSY_RETRY_SECONDS };
  throw labelProblem(423, "CONFIRMATION_IN_PROGRESS", detail, {}, headers);
}

/**
 * Labels with a recorded outcome are answered from the store. A confirmation with an unknown outcome, because a process
 * died or the carrier did not answer, is sent to the carrier again under the same key.
 * @throws {Problem} 422 if the carrier refuses everything that is left, 502 if it does not answer
 */
async function confirm(
  deps: ApiDeps,
  caller: Caller,
  owner: LabelOwner,
  carrier: LabelCarrier,
  body: ConfirmRequest,
): Promise<ConfirmView> {
  const { redis, live, config } = deps;
  const wanted = [...new Set(body.labelIds)];
  const read = async () =>
    (await readLabels(redis, owner, wanted)).filter(
      ({ record }) => record.courier === body.courier,
    );
  const view = viewer(body, wanted, config.publicUrl);
  const stored = await read();
  const open = stored.filter(
    ({ transmission, voidedAtMs }) => transmission === null && voidedAtMs === null,
  );
  if (open.length === 0) return view(stored, null);
  const { courier, pickupDate = null, pickupTime = null } = body;
  const pickup = [pickupDate, pickupTime].filter((part) => part !== null).join(" ") || null;
  const asked = { courier, labelIds: idsOf(open), pickup };
  const id = await claimTransmission(redis, owner, asked);
  const order = { key: `confirmation-${id}`, courier, labels: open, pickupDate, pickupTime };
  const answer = await carrier.confirm(order);
  if (answer.kind === "away") throw problemOf(answer);
  if (answer.kind === "refused") {
    await freeTransmission(redis, owner, asked);
    throw problemOf(answer);
  }
  const errors = answer.value.filter(({ labelId }) => asked.labelIds.includes(labelId));
  const refused = new Set(errors.map(({ labelId }) => labelId));
  const accepted = open.filter((label) => !refused.has(label.id));
  if (accepted.length === 0) {
    await freeTransmission(redis, owner, asked);
    const { alreadyConfirmedIds, notFoundIds } = view(stored, null);
    const members = { errors: [...voidedOf(stored), ...errors], alreadyConfirmedIds, notFoundIds };
    throw labelProblem(422, "CARRIER_REFUSED", "The carrier refused every label.", members);
  }
  const transmissionNumber = transmissionNumberOf(id);
  const createdAtMs = live.now();
  const channelName = caller.channel.name;
  const head = { transmissionNumber, courier, channelName, pickup, createdAtMs };
  const transmission = { id, slipToken: newSlipToken(owner) };
  const confirmedIds = await openTransmission(redis, owner, transmission, asked, head, accepted);
  const opened = { ...transmission, confirmedIds, createdAtMs, errors };
  return view(await read(), confirmedIds.length === 0 ? null : opened);
}

function problemOf(failure: Parameters<typeof failed>[0]) {
  const { status, code, message } = failed(failure);
  return labelProblem(status, code, message);
}

/** A transmission opened by this call. */
interface Opened extends Transmission {
  readonly confirmedIds: readonly number[];
  readonly createdAtMs: number;
  readonly errors: readonly Refusal[];
}

function viewer(body: ConfirmRequest, wanted: readonly number[], publicUrl: string) {
  return (stored: readonly StoredLabel[], opened: Opened | null): ConfirmView => {
    const known = new Set(idsOf(stored));
    const fresh = new Set(opened?.confirmedIds);
    const isConfirmed = ({ transmission }: StoredLabel) => transmission !== null;
    return {
      transmissionId: opened?.id ?? null,
      transmissionNumber: opened && transmissionNumberOf(opened.id),
      courier: body.courier,
      confirmedIds: [...fresh],
      alreadyConfirmedIds: idsOf(stored.filter(isConfirmed)).filter((id) => !fresh.has(id)),
      notFoundIds: wanted.filter((id) => !known.has(id)),
      errors: [...voidedOf(stored), ...(opened?.errors ?? [])],
      pickupDate: body.pickupDate ?? null,
      pickupTime: body.pickupTime ?? null,
      createdAt: opened && romeIso(opened.createdAtMs),
      transmissions: transmissionsOf(stored, publicUrl),
    };
  };
}

/** They are never handed over, so the carrier is not notified. */
function voidedOf(stored: readonly StoredLabel[]): Refusal[] {
  const message = "The label has been voided.";
  const voided = stored.filter(({ voidedAtMs }) => voidedAtMs !== null);
  return voided.map(({ id }) => ({ labelId: id, code: "LABEL_VOIDED", message }));
}

/** The latest first; ids increase over time. */
function transmissionsOf(stored: readonly StoredLabel[], publicUrl: string) {
  const confirmed = stored.flatMap(({ id, transmission }) =>
    transmission ? [{ labelId: id, transmission }] : [],
  );
  const groups = Map.groupBy(confirmed, ({ transmission }) => transmission.id);
  return [...groups]
    .sort(([one], [other]) => other - one)
    .map(([transmissionId, members]) => ({
      transmissionId,
      transmissionNumber: transmissionNumberOf(transmissionId),
      slipUrl: `${publicUrl}/slips/${members[0]?.transmission.slipToken}`,
      labelIds: members.map(({ labelId }) => labelId),
    }));
}

function idsOf(labels: readonly StoredLabel[]): number[] {
  return labels.map(({ id }) => id);
}
