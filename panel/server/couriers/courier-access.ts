/** Issues and revokes a courier's tokens and signing secrets, and switches its events on and off. */

import type { CourierEntity, Issued } from "#core/configuration/rules/entities.ts";
import {
  type AccessKind,
  accessId,
  secretsInForce,
  tokensInForce,
} from "#core/configuration/store/courier-access.ts";
import { bumpVersion, saveEntity } from "#core/configuration/store/entities.ts";
import { underSetupLock } from "#core/configuration/store/setup-lock.ts";
import { Problem } from "#core/platform/errors/problem.ts";
import { limit } from "#core/platform/schema/limit.ts";
import { hashToken, newToken, type Vault } from "#core/platform/secrets/secrets.ts";
import type { Runtime } from "#core/runtime/runtime.ts";
import { readCourier } from "./courier-of.ts";

/** Of each kind and courier, issued by the panel and not revoked: more than any rotation needs. */
const ISSUED_LIMIT = limit(
  10,
  "tokens and signing secrets issued by the panel, of each kind and courier",
  "409",
);

/** Where the panel keeps its own and a setup file its list, and what of both is in force. */
const FIELDS = {
  tokens: { own: "panelTokens", listed: "tokenHashes", inForce: tokensInForce },
  "signing-secrets": {
    own: "panelSigningSecrets",
    listed: "signingSecrets",
    inForce: secretsInForce,
  },
} as const;

export interface AccessView {
  readonly id: string;
  /** `setup`: named by a setup file. */
  readonly source: "setup" | "panel";
  /** Null for those of a setup file. */
  readonly createdAt: string | null;
}

/** @returns the id and the text, which is shown this once */
export function issueAccess(
  runtime: Runtime,
  code: string,
  kind: AccessKind,
): Promise<{ readonly id: string; readonly text: string }> {
  const { vault } = runtime.secrets;
  const text = newToken(kind === "tokens" ? "tok_" : "sig_");
  const value = kind === "tokens" ? hashToken(text) : vault.seal(text);
  const id = accessId(vault, kind, value);
  return changeCourier(runtime, code, (courier) => {
    const { own } = FIELDS[kind];
    const issued = courier[own];
    if (issued.length >= ISSUED_LIMIT) {
      const detail = `At most ${ISSUED_LIMIT} issued ones; revoke one first.`;
      throw new Problem(409, "TOO_MANY_ISSUED", detail);
    }
    const added: Issued = { id, value, createdAtMs: runtime.live.now() };
    return { courier: { ...courier, [own]: [...issued, added] }, reply: { id, text } };
  });
}

/** One of a setup file is revoked for as long as the file names it. */
export function revokeAccess(
  runtime: Runtime,
  code: string,
  kind: AccessKind,
  id: string,
): Promise<void> {
  const { vault } = runtime.secrets;
  return changeCourier(runtime, code, (courier) => {
    const { own, inForce } = FIELDS[kind];
    const value = inForce(courier).find((one) => accessId(vault, kind, one) === id);
    if (value === undefined) {
      throw new Problem(404, "ACCESS_NOT_FOUND", "There is no such token or secret in force.");
    }
    const issued = courier[own];
    const kept = issued.filter((one) => one.value !== value);
    const changed: CourierEntity =
      kept.length < issued.length
        ? { ...courier, [own]: kept }
        : { ...courier, revoked: [...courier.revoked, value] };
    return { courier: changed, reply: undefined };
  });
}

export function setAccepting(runtime: Runtime, code: string, accepting: boolean): Promise<void> {
  return changeCourier(runtime, code, (courier) => ({
    courier: { ...courier, acceptingEvents: accepting },
    reply: undefined,
  }));
}

/** What is in force, without a secret. */
export function viewAccess(vault: Vault, courier: CourierEntity, kind: AccessKind): AccessView[] {
  const { own, inForce } = FIELDS[kind];
  const issued = new Map(courier[own].map((one) => [one.value, one]));
  return inForce(courier).map((value) => {
    const found = issued.get(value);
    return {
      id: accessId(vault, kind, value),
      source: found ? ("panel" as const) : ("setup" as const),
      createdAt: found ? new Date(found.createdAtMs).toISOString() : null,
    };
  });
}

/** Two writers at once lose neither change; every process follows with its next request. */
function changeCourier<T>(
  runtime: Runtime,
  code: string,
  change: (courier: CourierEntity) => { readonly courier: CourierEntity; readonly reply: T },
): Promise<T> {
  const { redis, live } = runtime;
  return underSetupLock(redis, async () => {
    const { courier, reply } = change({ ...(await readCourier(redis, code)) });
    await saveEntity(redis, "courier", code, courier);
    await bumpVersion(redis);
    await live.refresh();
    return reply;
  });
}
