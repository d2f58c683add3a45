/** Creates or changes one entity of the configuration: its entry of a setup file, applied as a file of this entry alone. */

import {
  noteWrittenVersion,
  refuseStale,
  type VersionStamp,
} from "#core/configuration/store/change-context.ts";
import { labelCarriers } from "#core/merchants/rules/label-carrier.ts";
import type { ErrorCode } from "#core/platform/errors/error-catalogue.ts";
import { Problem } from "#core/platform/errors/problem.ts";
import type { Fault } from "#core/platform/schema/fault.ts";
import { limit } from "#core/platform/schema/limit.ts";
import type { GeneratedSecret } from "#core/platform/secrets/unshown-secrets.ts";
import type { Runtime } from "#core/runtime/runtime.ts";
import { applyCall, SetupFaults } from "#core/setup/store/apply-setup.ts";
import { auditedEntry, isOpen, type Named } from "#core/setup/store/export-setup.ts";
import type { Cleared } from "#core/setup/store/setup-writer.ts";
import { readStored, type Stored } from "#core/setup/store/stored-setup.ts";
import { invalidBody } from "#panel/server/http/read-json.ts";
import { notFound } from "#panel/server/not-found.ts";
import { noteChange } from "#panel/server/panel-routes.ts";

/** A catalogue of several thousand codes fits. */
export const ENTRY_BODY_BYTES = limit(
  1024 * 1024,
  "body of a panel request with an entry of the setup file",
  "413",
);

type Members = Readonly<Record<string, unknown>>;

export interface EntryCall {
  readonly kind: Named["kind"];
  /** Null = a new one, whose code the body has. */
  readonly code: string | null;
  readonly body: unknown;
  /** Of a channel. */
  readonly companyCode?: string;
}

const TAKEN: Readonly<Record<Named["kind"], readonly [ErrorCode, string]>> = {
  courier: ["COURIER_EXISTS", "There is a courier of this code."],
  company: ["COMPANY_EXISTS", "There is a company of this code."],
  channel: ["CHANNEL_EXISTS", "There is a channel of this code, of this company or another."],
};
/** Settings that a call empties with null, which a file cannot. */
const NULLABLE: Readonly<Record<Named["kind"], readonly string[]>> = {
  courier: [],
  company: ["seatPostcode"],
  channel: ["webhookV1", "sender"],
};
const FIXED_CODE: Fault = {
  path: "code",
  code: "NOT_ALLOWED",
  message: "The code of an entity never changes.",
};

const NOTHING_GIVEN: Fault = {
  path: "",
  code: "TOO_FEW",
  message: "A change names at least one member.",
};

/**
 * @returns the code, and secrets that the body left out and that were generated
 * @throws {Problem} 404, 409 the code is in use, 412, 422 with the JSON paths of all faults
 */
export async function applyEntry(
  runtime: Runtime,
  request: Request,
  call: EntryCall,
): Promise<{ readonly code: string; readonly generated: readonly GeneratedSecret[] }> {
  const { redis, secrets, live, config } = runtime;
  const { kind, companyCode = "" } = call;
  const { entry, cleared } = entryOf(call);
  const code = String((entry as Members | null)?.["code"]);
  const named = { kind, code };
  let before: Members | null = null;
  const guard = (stored: Stored) => {
    const known = storedOf(stored, named);
    if (call.code !== null && !known) throw notFound(kind);
    const owner = kind === "channel" ? stored.companies.get(companyCode) : undefined;
    if (kind === "channel" && !owner) throw notFound("company");
    refuseStale(known ?? null);
    if (call.code === null && known) throw new Problem(409, ...TAKEN[kind]);
    if (!isOpen(known ?? OPEN) || !isOpen(owner ?? OPEN)) throw closedEntity();
    before = auditedEntry(stored, named);
  };
  const world = {
    isLabelCarrier: labelCarriers(config.nationalCarrier),
    webhookAllowedCidrs: config.webhookAllowedCidrs,
  };
  const file = fileOf(kind, entry, companyCode);
  const given = { file, guard, ...(cleared && { cleared }) };
  const { generated } = await applyCall(redis, secrets.vault, given, live.now(), world).catch(
    (error) => {
      throw error instanceof SetupFaults ? withoutPrefix(kind, error) : error;
    },
  );
  await live.refresh();
  const stored = await readStored(redis);
  const written = storedOf(stored, named);
  if (written) noteWrittenVersion(written);
  noteDifference(request, before, auditedEntry(stored, named));
  return { code, generated };
}

function entryOf({ kind, code, body }: EntryCall): { entry: unknown; cleared: Cleared | null } {
  if (typeof body !== "object" || body === null || Array.isArray(body)) {
    return { entry: body, cleared: null };
  }
  const given = body as Members;
  if (code !== null && Object.keys(given).length === 0) throw invalidBody([NOTHING_GIVEN]);
  if (code !== null && "code" in given && given["code"] !== code) throw invalidBody([FIXED_CODE]);
  const names = NULLABLE[kind].filter((name) => code !== null && given[name] === null);
  const kept = Object.entries(given).filter(([name]) => !names.includes(name));
  const tokens = kind === "courier" ? { tokens: "generated" } : {};
  const entry = { ...tokens, ...Object.fromEntries(kept), ...(code !== null && { code }) };
  const isCleared = names.length > 0 && kind !== "courier";
  return { entry, cleared: isCleared ? { kind, names } : null };
}

function fileOf(kind: Named["kind"], entry: unknown, companyCode: string): object {
  switch (kind) {
    case "courier":
      return { couriers: [entry] };
    case "company":
      return { companies: [entry] };
    case "channel":
      return { companies: [{ code: companyCode, channels: [entry] }] };
  }
}

const PREFIX: Readonly<Record<Named["kind"], string>> = {
  courier: "couriers[0]",
  company: "companies[0]",
  channel: "companies[0].channels[0]",
};

/** Paths of the body, and not of the file that it was made part of. */
function withoutPrefix(kind: Named["kind"], { faults }: SetupFaults): Problem {
  const prefix = PREFIX[kind];
  const within = faults.map((fault) => {
    const path = fault.path.startsWith(prefix)
      ? fault.path.slice(prefix.length).replace(/^\./, "")
      : fault.path;
    return { ...fault, path };
  });
  return invalidBody(within);
}

export function closedEntity(): Problem {
  return new Problem(409, "ENTITY_CLOSED", "It has been closed. Reopen it first.");
}

const OPEN = { closedAtMs: 0 };

export function storedOf(stored: Stored, { kind, code }: Named) {
  const entities = {
    courier: stored.couriers,
    company: stored.companies,
    channel: stored.channels,
  };
  const found = entities[kind].get(code);
  return found && (found as typeof found & VersionStamp & { readonly closedAtMs: number });
}

/** For the audit log: the members that are others than before. */
function noteDifference(request: Request, before: Members | null, after: Members | null): void {
  const changed = Object.keys({ ...before, ...after }).filter(
    (name) => !Bun.deepEquals(before?.[name], after?.[name]),
  );
  const only = (members: Members | null) =>
    members && Object.fromEntries(changed.map((name) => [name, members[name] ?? null]));
  noteChange(request, only(before), only(after));
}
