/**
 * The author of the change under way, and the version of the entity that they have read. A change that names a version is made to that
 * version alone (RFC 9110, If-Match), so that nobody undoes a colleague's change.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { randomBytes } from "node:crypto";
import { Problem } from "#core/platform/errors/problem.ts";

/** What is stored beside the fields of each entity. */
export interface VersionStamp {
  /** A new one with each change. Empty: not changed since versions were introduced. */
  readonly version: string;
  /** Tenant of the last author, as in the audit log; empty for a setup file and Waybill itself. */
  readonly changedFor: string;
  readonly changedBy: string;
  readonly changedAtMs: number;
}

export const SETUP_FILE = "setup file";
/** Waybill itself, such as when it disables a failing endpoint. */
const ITSELF = "waybill";
/** Shown to other tenants in place of an operator's address. */
const AN_OPERATOR = "operators";
const VERSION_BYTES = 9;

interface ChangeContext {
  /** Takes its turn at locks with the others of the same name; empty for operators. */
  party: string;
  tenant: string;
  name: string;
  /** The entity must have one of these versions; null = any. */
  expected: readonly string[] | null;
  /** The entity must not exist yet. */
  isNew: boolean;
  /** Of the entity that has been written. */
  version: string | null;
}

const context = new AsyncLocalStorage<ChangeContext>();

/** The author of what `work` changes is Waybill itself until `setAuthor` names another. */
export function withChangeContext<T>(work: () => T): T {
  return changingAs(ITSELF, work);
}

export function changingAs<T>(name: string, work: () => T): T {
  const change: ChangeContext = {
    party: "",
    tenant: "",
    name,
    expected: null,
    isNew: false,
    version: null,
  };
  return context.run(change, work);
}

/** Of what the request changes from here on. */
export function setAuthor(given: Pick<ChangeContext, "party" | "tenant" | "name">): void {
  const change = context.getStore();
  if (change) Object.assign(change, given);
}

/** Entity tags of the headers `If-Match` and `If-None-Match`. */
export function expectVersion(match: string | null, noneMatch: string | null): void {
  const change = context.getStore();
  if (!change) return;
  change.isNew = noneMatch?.trim() === "*";
  change.expected = match === null || match.trim() === "*" ? null : tagsOf(match);
}

function tagsOf(header: string): string[] {
  return [...header.matchAll(/"([^"]*)"/g)].map(([, tag = ""]) => tag);
}

export function lockParty(): string {
  return context.getStore()?.party ?? "";
}

/** The version that the request has written; null = none. */
export function writtenVersion(): string | null {
  return context.getStore()?.version ?? null;
}

export function noteWrittenVersion({ version }: VersionStamp): void {
  const change = context.getStore();
  if (change) change.version = version;
}

/** For an entity that is written now. */
export function newStamp(): VersionStamp {
  const { tenant = "", name = ITSELF } = context.getStore() ?? {};
  const version = randomBytes(VERSION_BYTES).toString("base64url");
  return { version, changedFor: tenant, changedBy: name, changedAtMs: Date.now() };
}

/**
 * Before the first thing of a change is written.
 * @param known as it is stored; null = there is none
 * @throws {Problem} 412 if it is not the version that the author has read
 */
export function refuseStale(known: VersionStamp | null): void {
  const change = context.getStore();
  if (!change) return;
  const { expected, isNew } = change;
  // What the same change writes afterwards has a new version.
  change.expected = null;
  change.isNew = false;
  const isStale = isNew ? known !== null : expected !== null && !isAmong(expected, known);
  if (!isStale) return;
  const detail = known
    ? "It has been changed since you read it. Read it again, and send what is still wanted."
    : "It has been deleted since you read it.";
  throw new Problem(412, "VERSION_CONFLICT", detail, {
    members: {
      version: known?.version ?? null,
      changedBy: known && shownTo(change, known),
      changedAt: known?.changedAtMs ? new Date(known.changedAtMs).toISOString() : null,
    },
  });
}

function isAmong(versions: readonly string[], known: VersionStamp | null): boolean {
  return known !== null && versions.includes(known.version);
}

/** Tenants see the addresses of their own people only. */
function shownTo({ party }: ChangeContext, { changedFor, changedBy }: VersionStamp): string {
  return party === "" || changedFor === "" || changedFor === party ? changedBy : AN_OPERATOR;
}
