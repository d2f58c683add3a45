/** `POST /v2/labels/confirm` (document 1, "Labels"): closes the day for a batch of labels. */
import { type Static, Type } from "@sinclair/typebox";
import { TypeCompiler } from "@sinclair/typebox/compiler";
import { Elysia } from "elysia";
import { authenticated, type Caller } from "#api/auth/authenticated.ts";
import type { ApiDeps } from "#api/deps.ts";
import { validationFailed } from "#api/error-response.ts";
import { readChecked } from "#api/read-json.ts";
import { ConfirmRequest, confirmFaults } from "#core/domain/label.ts";
import { romeIso } from "#core/domain/rome-time.ts";
import type { Redis } from "#core/redis/client.ts";
import {
  type LabelOwner,
  lockConfirmation,
  openTransmission,
  readLabels,
  type StoredLabel,
  saveSlip,
} from "#core/redis/labels.ts";
import { findCarrier } from "./carriers.ts";
import type { LabelCarrier, Refusal } from "./label-carrier.ts";
import { asLabelProblem, failed, labelProblem, unknownCarrier } from "./label-problem.ts";
import { slipPdf } from "./slip-pdf.ts";

const checker = TypeCompiler.Compile(ConfirmRequest);
/** Renewed while a confirmation is under way; a label is in one transmission only, whoever holds the lock. */
const LOCK_TERMS = { leaseMs: 10_000, waitLimitMs: 15_000 };
const BUSY_RETRY_SECONDS = "5";

const ids = (description: string) => Type.Array(Type.Integer(), { description });
const nullable = (description: string) => Type.Union([Type.String(), Type.Null()], { description });

export const ConfirmView = Type.Object({
  transmissionId: Type.Union([Type.Integer(), Type.Null()], {
    description: "null when this call has opened no transmission",
  }),
  transmissionNumber: nullable("what stands on the slip"),
  courier: Type.String(),
  confirmedIds: ids("labels of this transmission"),
  alreadyConfirmedIds: ids("labels that an earlier transmission holds"),
  notFoundIds: ids("no labels of the channel with this carrier"),
  errors: Type.Array(
    Type.Object({ labelId: Type.Integer(), code: Type.String(), message: Type.String() }),
    { description: "labels that the carrier refused" },
  ),
  pickupDate: nullable("as asked for"),
  pickupTime: nullable("as asked for"),
  createdAt: nullable("ISO 8601; of the transmission"),
});
type ConfirmView = Static<typeof ConfirmView>;

export function confirmLabelsRoute(deps: ApiDeps) {
  const { redis } = deps;
  return new Elysia().use(authenticated(deps)).post(
    "/v2/labels/confirm",
    async ({ request, caller, set }): Promise<ConfirmView> => {
      const body = await readChecked(request, checker).catch((error) => {
        throw asLabelProblem(error);
      });
      const faults = confirmFaults(body);
      if (faults.length > 0) throw validationFailed(faults);
      const found = findCarrier(deps.config, caller, body.courier);
      if (!found) throw unknownCarrier();
      const owner = { companyId: caller.company.id, channelId: caller.channel.id };
      const lock = await waitForLock(redis, owner, body.courier);
      try {
        const { view, slipToken } = await confirm(deps, caller, owner, found.carrier, body);
        set.status = slipToken === null ? 200 : 201;
        if (slipToken !== null) {
          set.headers["location"] = `${deps.config.publicUrl}/slips/${slipToken}`;
        }
        return view;
      } finally {
        await lock.release();
      }
    },
    { scope: null, parse: "none" },
  );
}

/** @throws {Problem} 423 */
async function waitForLock(redis: Redis, owner: LabelOwner, courier: string) {
  const lock = await lockConfirmation(redis, owner, courier, LOCK_TERMS);
  if (lock) return lock;
  const detail = "Another request is confirming labels of this carrier.";
  const headers = { "retry-after": BUSY_RETRY_SECONDS };
  throw labelProblem(423, "CONFIRMATION_IN_PROGRESS", detail, {}, headers);
}

interface Confirmed {
  readonly view: ConfirmView;
  /** Null: no new transmission. */
  readonly slipToken: string | null;
}

/** @throws {Problem} 422 when the carrier refuses all that is left, 502 when it is away */
async function confirm(
  { redis, live }: ApiDeps,
  caller: Caller,
  owner: LabelOwner,
  carrier: LabelCarrier,
  body: ConfirmRequest,
): Promise<Confirmed> {
  const wanted = [...new Set(body.labelIds)];
  const stored = (await readLabels(redis, owner, wanted)).filter(
    ({ record }) => record.courier === body.courier,
  );
  const open = stored.filter(({ transmissionId }) => transmissionId === null);
  const known = new Set(stored.map(({ id }) => id));
  const done = stored.filter(({ transmissionId }) => transmissionId !== null);
  const base: ConfirmView = {
    transmissionId: null,
    transmissionNumber: null,
    courier: body.courier,
    confirmedIds: [],
    alreadyConfirmedIds: done.map(({ id }) => id),
    notFoundIds: wanted.filter((id) => !known.has(id)),
    errors: [],
    pickupDate: body.pickupDate ?? null,
    pickupTime: body.pickupTime ?? null,
    createdAt: null,
  };
  if (open.length === 0) return { view: base, slipToken: null };
  const errors = await askCarrier(carrier, body, open);
  const refused = new Set(errors.map(({ labelId }) => labelId));
  const accepted = open.filter(({ id }) => !refused.has(id));
  const { alreadyConfirmedIds, notFoundIds } = base;
  if (accepted.length === 0) {
    const members = { errors, alreadyConfirmedIds, notFoundIds };
    throw labelProblem(422, "CARRIER_REFUSED", "The carrier refused every label.", members);
  }
  const ids = accepted.map(({ id }) => id);
  const transmission = await openTransmission(redis, owner, ids);
  if (!transmission) return { view: { ...base, alreadyConfirmedIds: ids }, slipToken: null };
  const createdAtMs = live.now();
  const transmissionNumber = `T${String(transmission.id).padStart(9, "0")}`;
  const pickup = [body.pickupDate, body.pickupTime].filter(Boolean).join(" ");
  const pdf = await slipPdf({
    transmissionNumber,
    courier: body.courier,
    channelName: caller.channel.name,
    pickup: pickup === "" ? null : pickup,
    createdAtMs,
    labels: accepted.filter(({ id }) => transmission.labelIds.includes(id)),
  });
  await saveSlip(redis, transmission.slipToken, pdf);
  const view = {
    ...base,
    transmissionId: transmission.id,
    transmissionNumber,
    confirmedIds: [...transmission.labelIds],
    errors,
    createdAt: romeIso(createdAtMs),
  };
  return { view, slipToken: transmission.slipToken };
}

/** @throws {Problem} 422, 502 */
async function askCarrier(
  carrier: LabelCarrier,
  { courier, pickupDate, pickupTime }: ConfirmRequest,
  labels: readonly StoredLabel[],
): Promise<Refusal[]> {
  const answer = await carrier.confirm({
    courier,
    labels,
    pickupDate: pickupDate ?? null,
    pickupTime: pickupTime ?? null,
  });
  if (answer.kind === "ok") {
    const asked = new Set(labels.map(({ id }) => id));
    return answer.value.filter(({ labelId }) => asked.has(labelId));
  }
  const { status, code, message } = failed(answer);
  throw labelProblem(status, code, message);
}
