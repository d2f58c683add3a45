/** Receivers of alarms: mailboxes, and webhooks of chats. A webhook's URL is a credential: it is stored encrypted and never shown. */
import { type Static, Type } from "@sinclair/typebox";
import { testMessage } from "#core/alarms/rules/notification.ts";
import { noteTold, readTold, type Told } from "#core/alarms/store/incidents.ts";
import {
  allReceivers,
  changeReceiver,
  createReceiver,
  deleteReceiver,
  readReceiver,
} from "#core/alarms/store/receivers.ts";
import type { AlarmReceiverEntity } from "#core/configuration/rules/entities.ts";
import {
  optionalMembers,
  patchMembers,
  settingsAfter,
  settingsIn,
  shownMembers,
} from "#core/configuration/rules/entity.ts";
import { ALARM_RECEIVER_SETTINGS } from "#core/configuration/rules/settings.ts";
import type { Stored } from "#core/configuration/store/entities.ts";
import { newReceiverId, RECEIVERS_PER_OWNER } from "#core/configuration/store/receiver-entity.ts";
import { Problem } from "#core/platform/errors/problem.ts";
import { route } from "#core/platform/http/access.ts";
import type { Fault } from "#core/platform/schema/fault.ts";
import type { Runtime } from "#core/runtime/runtime.ts";
import { ownerOfReceiver } from "#core/setup/rules/setup.ts";
import { faultOfWebhookUrl } from "#core/webhooks/rules/webhook-url.ts";
import { tenantOf } from "#panel/server/caller.ts";
import { jsonBody } from "#panel/server/http/checked-body.ts";
import { version } from "#panel/server/http/version.ts";
import { notFound } from "#panel/server/not-found.ts";
import { noteChange, panelRoutes } from "#panel/server/panel-routes.ts";
import { refuseEndpointFaults, refuseFaults } from "#panel/server/webhooks/webhook-access.ts";
import { tellReceiver } from "./tell-receiver.ts";
import { openTelling } from "./watch-alarms.ts";

const strict = { additionalProperties: false } as const;
const url = Type.String({
  minLength: 1,
  description:
    "https:// address of a webhook of Slack or a compatible service, in place of email; never shown again",
});

export const ReceiverInput = Type.Object(
  { url: Type.Optional(url), ...optionalMembers(ALARM_RECEIVER_SETTINGS) },
  { ...strict, description: "with an email or a url" },
);
type ReceiverInput = Static<typeof ReceiverInput>;
export const ReceiverPatch = Type.Object(
  { url: Type.Optional(url), ...patchMembers(ALARM_RECEIVER_SETTINGS) },
  {
    ...strict,
    minProperties: 1,
    description: "absent = as it is; a url takes the place of an email, and the reverse",
  },
);

export const ReceiverView = Type.Object({
  id: Type.String(),
  code: Type.String({ description: "the setup file's or generated" }),
  company: Type.Union([Type.String(), Type.Null()], { description: "whose alarms it receives" }),
  courier: Type.Union([Type.String(), Type.Null()], { description: "whose alarms it receives" }),
  ...shownMembers(ALARM_RECEIVER_SETTINGS),
  urlHost: Type.Union([Type.String(), Type.Null()], {
    description: "host of its webhook; null = it gets mails",
  }),
  lastTold: Type.Union(
    [
      Type.Object({ at: Type.String(), error: Type.Union([Type.String(), Type.Null()]) }),
      Type.Null(),
    ],
    { description: "the last attempt, with what went wrong; null = none yet" },
  ),
  version,
});
type ReceiverView = Static<typeof ReceiverView>;

const ReceiversQuery = Type.Object({
  company: Type.Optional(
    Type.String({ description: "for operators: those of this company in place of their own" }),
  ),
  courier: Type.Optional(Type.String({ description: "for operators: those of this courier" })),
});

const Tried = Type.Object({
  delivered: Type.Boolean(),
  error: Type.Union([Type.String(), Type.Null()]),
});

const READ = { can: "alarms:read", of: "caller" } as const;
const WRITE = { can: "alarms:write", of: "alarmReceiver" } as const;

export function receiverRoutes(runtime: Runtime) {
  const { redis, live, config, secrets } = runtime;
  return panelRoutes(runtime, "alarm-receivers")
    .get(
      "/panel/api/alarm-receivers",
      async ({ caller, query }) => {
        const wanted = caller.kind === "operator" ? ownerOfReceiver(query) : tenantOf(caller);
        const [all, told] = await Promise.all([allReceivers(redis), readTold(redis)]);
        const own = all.filter(({ owner }) => owner === wanted);
        return { items: own.map((one) => viewOf(runtime, one, told.get(one.id))) };
      },
      route({
        access: READ,
        query: ReceiversQuery,
        response: Type.Object({ items: Type.Array(ReceiverView) }),
        summary: "Receivers of the caller's alarms",
      }),
    )
    .post(
      "/panel/api/alarm-receivers",
      async ({ body, caller, request, set }) => {
        await refusePlace(body, config);
        const id = newReceiverId();
        const created = await createReceiver(redis, {
          ...settingsAfter(ALARM_RECEIVER_SETTINGS, body, {}),
          id,
          owner: tenantOf(caller),
          code: `panel-${id.slice("ar_".length)}`,
          url: body.url === undefined ? "" : secrets.vault.seal(body.url),
          createdAtMs: live.now(),
          fileEntry: "",
        });
        if (!created) throw tooMany();
        set.status = 201;
        const view = viewOf(runtime, created, undefined);
        noteChange(request, null, view);
        return view;
      },
      route({
        access: { can: "alarms:write", of: "caller" },
        response: { 201: ReceiverView },
        summary: "Add a receiver of the caller's alarms",
        errors: ["TOO_MANY_RECEIVERS", "CONFIGURATION_BUSY"],
        body: jsonBody(ReceiverInput, { email: "on-call@example.com", severity: "critical" }),
      }),
    )
    .use(oneReceiverRoutes(runtime));
}

function oneReceiverRoutes(runtime: Runtime) {
  const { redis, config, secrets } = runtime;
  return panelRoutes(runtime, "alarm-receiver")
    .patch(
      "/panel/api/alarm-receivers/:id",
      async ({ params, body, request }) => {
        const { url: given, ...settings } = body;
        refuseFaults(bothFault(body));
        await refuseUrl(given, config);
        const changed = await changeReceiver(redis, params.id, (before) => {
          const after = { ...before, ...settings };
          if (given !== undefined) return { ...after, email: "", url: secrets.vault.seal(given) };
          const place = after.email === "" ? before.url : "";
          if (after.email === "" && place === "") refuseFaults([PLACE_FAULT]);
          return { ...after, url: place };
        });
        if (!changed) throw notFound("alarmReceiver");
        const told = (await readTold(redis)).get(params.id);
        const view = viewOf(runtime, changed.after, told);
        noteChange(request, viewOf(runtime, changed.before, told), view);
        return view;
      },
      route({
        access: WRITE,
        response: ReceiverView,
        summary: "Change what is given of a receiver",
        errors: ["RECEIVER_NOT_FOUND", "CONFIGURATION_BUSY"],
        body: jsonBody(ReceiverPatch, { active: false }),
      }),
    )
    .delete(
      "/panel/api/alarm-receivers/:id",
      async ({ params, request, set }) => {
        const deleted = await deleteReceiver(redis, params.id);
        if (!deleted) throw notFound("alarmReceiver");
        noteChange(request, viewOf(runtime, deleted, undefined), null);
        set.status = 204;
      },
      route({
        access: WRITE,
        summary: "Delete a receiver; it receives nothing more",
        errors: ["RECEIVER_NOT_FOUND", "CONFIGURATION_BUSY"],
        answers: { 204: { description: "deleted" } },
      }),
    )
    .post(
      "/panel/api/alarm-receivers/:id/test",
      async ({ params, request }) => {
        const receiver = await readReceiver(redis, params.id);
        if (!receiver) throw notFound("alarmReceiver");
        const tried = await tryReceiver(runtime, receiver);
        noteChange(request, null, tried);
        return tried;
      },
      route({
        access: WRITE,
        response: Tried,
        summary: "Send it a test message: one attempt, with its result",
        errors: ["RECEIVER_NOT_FOUND"],
      }),
    );
}

async function tryReceiver(runtime: Runtime, receiver: AlarmReceiverEntity) {
  const { redis, live, config } = runtime;
  const telling = await openTelling(runtime);
  try {
    const message = testMessage(receiver.language, config.publicUrl);
    const name = `test.${receiver.id}.${live.now()}`;
    const outcome = await tellReceiver(telling, receiver, message, name);
    const error = outcome.kind === "told" ? null : outcome.error;
    await noteTold(redis, receiver.id, { atMs: live.now(), error });
    return { delivered: error === null, error };
  } finally {
    telling.mailer.close();
    telling.transport.close();
  }
}

function viewOf(
  { secrets }: Pick<Runtime, "secrets">,
  receiver: Stored<"alarmReceiver">,
  told: Told | undefined,
): ReceiverView {
  const { id, code, owner, url: sealed, version: stored } = receiver;
  const [kind = "", ownerCode = ""] = owner.split(" ");
  return {
    id,
    code,
    company: kind === "company" ? ownerCode : null,
    courier: kind === "courier" ? ownerCode : null,
    ...settingsIn(ALARM_RECEIVER_SETTINGS, receiver),
    urlHost: sealed === "" ? null : new URL(secrets.vault.open(sealed)).host,
    lastTold: told ? { at: new Date(told.atMs).toISOString(), error: told.error } : null,
    version: stored,
  };
}

const PLACE_FAULT: Fault = {
  path: "email",
  code: "REQUIRED",
  message: "It needs an e-mail address or a URL.",
};

/** @throws {Problem} 422 */
async function refusePlace(body: ReceiverInput, config: Runtime["config"]): Promise<void> {
  const { email = "", url: given } = body;
  refuseFaults(email === "" && given === undefined ? [PLACE_FAULT] : bothFault(body));
  await refuseUrl(given, config);
}

function bothFault({ email = "", url: given }: Pick<ReceiverInput, "email" | "url">): Fault[] {
  const message = "It has an e-mail address or a URL, not both.";
  return email !== "" && given !== undefined ? [{ path: "url", code: "NOT_ALLOWED", message }] : [];
}

async function refuseUrl(given: string | undefined, config: Runtime["config"]): Promise<void> {
  if (given === undefined) return;
  const message = faultOfWebhookUrl(given);
  const faults: Fault[] = message === null ? [] : [{ path: "url", code: "BAD_FORMAT", message }];
  await refuseEndpointFaults(faults, given, config);
}

function tooMany(): Problem {
  const detail = `At most ${RECEIVERS_PER_OWNER} receivers of the same alarms.`;
  return new Problem(409, "TOO_MANY_RECEIVERS", detail);
}
