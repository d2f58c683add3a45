/**
 * Whether the store is unavailable: a command that failed for this reason may be retried, is not the caller's fault, and
 * counts as no failure. Decided by the error code of a server's answer and by the types of the client's errors; the text
 * after a code may come from anybody and decides nothing.
 */
import {
  ClientClosedError,
  ClientOfflineError,
  ConnectionTimeoutError,
  DisconnectsClientError,
  ErrorReply,
  MaxCommandRedirectionsError,
  MultiErrorReply,
  ReconnectStrategyError,
  RootNodesUnavailableError,
  SocketClosedUnexpectedlyError,
  SocketTimeoutError,
  TimeoutError,
} from "redis";
import { NoAnswer } from "#core/platform/process/group-commit.ts";
import type { Store } from "#core/platform/process/metrics.ts";

/** A write that too few replicas confirmed: it may be lost, and is retried. The message tells what is wrong with its master. */
export class NotReplicated extends Error {}

/**
 * Thrown if something else that work needs is unavailable, such as ClickHouse, or if a queue is full: the message says
 * which.
 */
export class Unavailable extends Error {
  constructor(
    message: string,
    readonly store: Store = "none",
  ) {
    super(message);
  }
}

/** First word of a server's answer, and what it means for operators. */
const CODES: Readonly<Record<string, string>> = {
  OOM: "its memory is full (maxmemory)",
  MISCONF: "it cannot write to its disk",
  READONLY: "it is a read-only replica",
  NOREPLICAS: "too few replicas are connected",
  NOAUTH: "it asks for a password",
  WRONGPASS: "it refuses our password",
  NOPERM: "our user lacks a permission",
  DENIED: "it runs in protected mode",
  BUSY: "it is busy with a script",
  UNKILLABLE: "it is busy with a script",
  LOADING: "it loads its data",
  MASTERDOWN: "it has lost its master",
  CLUSTERDOWN: "a shard of the cluster is unavailable",
  TRYAGAIN: "keys are being moved in the cluster",
  ASK: "keys are being moved in the cluster",
  MOVED: "keys have moved in the cluster",
  UNBLOCKED: "it has become a replica",
  EXECABORT: "it has refused a transaction",
};

/** Answers with the general error code: they are recognized by the beginning of their text. */
const SENTENCES: ReadonlyArray<readonly [start: string, meaning: string]> = [
  ["ERR max number of clients", "it has too many clients"],
  // Both come from inside a script; Redis 7.0 reports them without a code of their own.
  ["ERR Script attempted to access a non local key", "keys have moved in the cluster"],
  ["ERR The user executing the script can't", "our user lacks a permission"],
  ["ERR WAIT cannot be used with replica", "it has become a replica"],
];

const CLIENT_ERRORS = [
  ClientClosedError,
  ClientOfflineError,
  ConnectionTimeoutError,
  DisconnectsClientError,
  MaxCommandRedirectionsError,
  ReconnectStrategyError,
  RootNodesUnavailableError,
  SocketClosedUnexpectedlyError,
  SocketTimeoutError,
  TimeoutError,
] as const;

/** Errors of the operating system when a connection cannot be made or breaks. */
const CONNECTION_CODES: ReadonlySet<unknown> = new Set([
  "ECONNREFUSED",
  "ECONNRESET",
  "ECONNABORTED",
  "EPIPE",
  "ETIMEDOUT",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENOTFOUND",
  "EAI_AGAIN",
]);

/** Limit on nested errors to inspect: causes of causes, and all errors of a transaction. */
const ERRORS_LOOKED_AT = 1_000;

/** @param redis while it is disconnected, any failure counts as the store's */
export function isStoreUnavailable(error: unknown, redis: { readonly isReady: boolean }): boolean {
  return !redis.isReady || reasonOf(error) !== null;
}

/** What is wrong with the store, in plain words and without anything a caller sent; null = the store is not to blame. */
export function reasonOf(error: unknown): string | null {
  return causeOf(error)?.reason ?? null;
}

/** Which store is to blame: Redis unless the error names another. */
export function storeOf(error: unknown): Store {
  const cause = causeOf(error)?.error;
  return cause instanceof Unavailable ? cause.store : "redis";
}

interface Cause {
  readonly error: Error;
  readonly reason: string;
}

function causeOf(error: unknown): Cause | null {
  const waiting: unknown[] = [error];
  const seen = new Set<unknown>();
  for (const one of waiting) {
    if (!(one instanceof Error) || seen.has(one) || seen.size >= ERRORS_LOOKED_AT) continue;
    seen.add(one);
    const reason = ownReasonOf(one);
    if (reason !== null) return { error: one, reason };
    waiting.push(one.cause);
    if (one instanceof MultiErrorReply) waiting.push(...one.errors());
    if (one instanceof AggregateError) waiting.push(...one.errors);
  }
  return null;
}

/** For a log line: what is wrong with the store, or the message of an error that is not the store's. */
export function describeFailure(error: unknown): string {
  const cause = causeOf(error);
  // A master that lacks replicas is there, and says itself what is wrong.
  if (cause?.error instanceof NotReplicated) return `Redis: ${cause.reason}`;
  if (cause && !(error instanceof Unavailable)) return `Redis is unavailable: ${cause.reason}`;
  return error instanceof Error ? error.message : String(error);
}

function ownReasonOf(error: Error): string | null {
  if (error instanceof ErrorReply) return reasonOfAnswer(error.message);
  if (error instanceof Unavailable) return error.message;
  if (error instanceof NotReplicated) return error.message;
  if (error instanceof NoAnswer) return "it does not answer in time";
  if (CLIENT_ERRORS.some((kind) => error instanceof kind)) return "it cannot be reached";
  const { code } = error as NodeJS.ErrnoException;
  return CONNECTION_CODES.has(code) ? "it cannot be reached" : null;
}

function reasonOfAnswer(message: string): string | null {
  const [code = ""] = message.split(" ", 1);
  if (Object.hasOwn(CODES, code)) return CODES[code] ?? null;
  return SENTENCES.find(([start]) => message.startsWith(start))?.[1] ?? null;
}
