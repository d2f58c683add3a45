/** The attempts of a delivery as its hash holds them: one JSON text, in which each is a list of its values. */
import type { SentRequest } from "#core/webhooks/rules/webhook-request.ts";

export interface Attempt {
  readonly generation: number;
  /** From 1 in each generation. */
  readonly attempt: number;
  readonly atMs: number;
  /** Null when no answer came. */
  readonly httpStatus: number | null;
  readonly durationMs: number;
  readonly error: string | null;
  readonly responseSnippet: string | null;
  /** Of a failed attempt; null = not kept. */
  readonly responseHeaders: Readonly<Record<string, string>> | null;
  /** Null when nothing was sent, and for attempts of versions that did not keep it. */
  readonly request: SentRequest | null;
}

/** Names would take more room than the values. Numbers, and texts without escapes but for error, answer and headers. */
export function attemptText(one: Attempt): string {
  const { error, responseSnippet, responseHeaders, request } = one;
  const numbers = `${one.generation},${one.attempt},${one.atMs},${one.httpStatus},${one.durationMs}`;
  const answer = `${textOf(error)},${textOf(responseSnippet)}`;
  if (request === null) return `[${numbers},${answer}]`;
  const sent = `"${request.target}","${request.bodyHash}",${request.bodyBytes}`;
  const headers = responseHeaders === null ? "" : `,${JSON.stringify(responseHeaders)}`;
  return `[${numbers},${answer},${sent}${headers}]`;
}

function textOf(value: string | null): string {
  return value === null ? "null" : JSON.stringify(value);
}

/** Oldest first. */
export function readAttempts(text: string): Attempt[] {
  const stored: unknown[] = JSON.parse(text);
  return stored.map((one) =>
    // Earlier versions wrote the members with their names.
    Array.isArray(one)
      ? attemptOf(one)
      : {
          request: null,
          responseHeaders: null,
          ...(one as Omit<Attempt, "request" | "responseHeaders">),
        },
  );
}

function attemptOf(values: readonly unknown[]): Attempt {
  const [generation, attempt, atMs, httpStatus, durationMs, error, responseSnippet, ...sent] =
    values as [number, number, number, number | null, number, string | null, string | null];
  const [target, bodyHash, bodyBytes, responseHeaders = null] = sent as unknown as [
    string?,
    string?,
    number?,
    Readonly<Record<string, string>>?,
  ];
  const isSent = target !== undefined && bodyHash !== undefined && bodyBytes !== undefined;
  return {
    generation,
    attempt,
    atMs,
    httpStatus,
    durationMs,
    error,
    responseSnippet,
    responseHeaders,
    request: isSent ? { target, bodyHash, bodyBytes } : null,
  };
}
