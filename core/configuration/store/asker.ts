/**
 * Who asks for the change that is being made, and which version of an entity they have seen. A change that names a version is made to that
 * version alone (RFC 9110, If-Match), so that nobody undoes what a colleague has changed since.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { randomBytes } from "node:crypto";
import { Problem } from "#core/platform/errors/problem.ts";

/** What is stored beside the fields of each entity. */
export interface Marks {
  /** Another one after each change. Empty: not changed since versions are kept. */
  readonly version: string;
  /** Whose the one is who changed it last, as in the audit log; empty where it was a setup file or Waybill itself. */
  readonly changedFor: string;
  readonly changedBy: string;
  readonly changedAtMs: number;
}

export const SETUP_FILE = "setup file";
/** Waybill itself, such as when it switches a failing endpoint off. */
const ITSELF = "waybill";
/** An operator, where another tenant is told of a change. */
const AN_OPERATOR = "operators";
const VERSION_BYTES = 9;

interface Asker {
  /** For whom locks are taken. */
  party: string;
  tenant: string;
  name: string;
  /** Versions of which the entity must have one; null = whatever it has. */
  expected: readonly string[] | null;
  /** No such entity may be there yet. */
  isNew: boolean;
  /** Of the entity that has been written. */
  version: string | null;
}

const asking = new AsyncLocalStorage<Asker>();

/** What `work` changes is changed by nobody in particular until `askAs` has said by whom. */
export function askedByNobody<T>(work: () => T): T {
  return askedBy(ITSELF, work);
}

export function askedBy<T>(name: string, work: () => T): T {
  const asker: Asker = { party: "", tenant: "", name, expected: null, isNew: false, version: null };
  return asking.run(asker, work);
}

/** From here on, what the request changes is changed by this one. */
export function askAs(given: Pick<Asker, "party" | "tenant" | "name">): void {
  const asker = asking.getStore();
  if (asker) Object.assign(asker, given);
}

/** Entity tags of the headers `If-Match` and `If-None-Match`. */
export function expectVersion(match: string | null, noneMatch: string | null): void {
  const asker = asking.getStore();
  if (!asker) return;
  asker.isNew = noneMatch?.trim() === "*";
  asker.expected = match === null || match.trim() === "*" ? null : tagsOf(match);
}

function tagsOf(header: string): string[] {
  return [...header.matchAll(/"([^"]*)"/g)].map(([, tag = ""]) => tag);
}

export function partyAsking(): string {
  return asking.getStore()?.party ?? "";
}

/** The version that the request has made; null = it has written none. */
export function versionMade(): string | null {
  return asking.getStore()?.version ?? null;
}

export function noteVersion({ version }: Marks): void {
  const asker = asking.getStore();
  if (asker) asker.version = version;
}

/** Of an entity that is written now. */
export function newMarks(): Marks {
  const { tenant = "", name = ITSELF } = asking.getStore() ?? {};
  const version = randomBytes(VERSION_BYTES).toString("base64url");
  return { version, changedFor: tenant, changedBy: name, changedAtMs: Date.now() };
}

/**
 * Before the first thing of a change is written.
 * @param known as it is stored; null = there is none
 * @throws {Problem} 412 if it is not what the asker has seen
 */
export function refuseStale(known: Marks | null): void {
  const asker = asking.getStore();
  if (!asker) return;
  const { expected, isNew } = asker;
  // What the same change writes afterwards has a new version.
  asker.expected = null;
  asker.isNew = false;
  const isStale = isNew ? known !== null : expected !== null && !isAmong(expected, known);
  if (!isStale) return;
  const detail = known
    ? "It has been changed since you read it. Read it again, and send what is still wanted."
    : "It has been deleted since you read it.";
  throw new Problem(412, "VERSION_CONFLICT", detail, {
    members: {
      version: known?.version ?? null,
      changedBy: known && shownTo(asker, known),
      changedAt: known?.changedAtMs ? new Date(known.changedAtMs).toISOString() : null,
    },
  });
}

function isAmong(versions: readonly string[], known: Marks | null): boolean {
  return known !== null && versions.includes(known.version);
}

/** The address of somebody who is not of the asker's own stays with the operators. */
function shownTo({ party }: Asker, { changedFor, changedBy }: Marks): string {
  return party === "" || changedFor === "" || changedFor === party ? changedBy : AN_OPERATOR;
}
