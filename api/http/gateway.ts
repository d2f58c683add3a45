/**
 * Calls of carriers and geocoders over HTTP, with what their outcome says about whether they did what they were asked.
 * 400, 409 and 422 with `{message}` are refusals; other answers mean that the other side is unavailable. Below 500 it has surely
 * done nothing.
 */

import type { Static, TSchema } from "@sinclair/typebox";
import type { CarrierAnswer } from "#api/labels/label-carrier.ts";
import { parseInTurns } from "#core/platform/http/body/parse-in-turns.ts";
import { readBounded } from "#core/platform/http/body/read-body.ts";
import { JsonFault } from "#core/platform/http/body/strict-json.ts";
import type { CompiledSchema } from "#core/platform/schema/compile-schema.ts";
import { illFormedText } from "#core/platform/schema/ill-formed-text.ts";
import { limit } from "#core/platform/schema/limit.ts";

/** Less than our own callers wait. */
export const GATEWAY_LIMIT_MS = 10_000;
/** 99 labels of about 100 KB each. */
const ANSWER_LIMIT_BYTES = limit(
  16 * 1024 * 1024,
  "answer of a carrier or a geocoder",
  "unreadable",
);
/** A single label, in base64. */
const LABEL_LIMIT_BYTES = limit(
  8 * 1024 * 1024,
  "a single JSON value of a carrier's answer",
  "unreadable",
);
const MESSAGE_LENGTH = 500;
export const REFUSALS: readonly number[] = [400, 409, 422];
/** The carrier has no such call. */
const UNSUPPORTED: readonly number[] = [405, 501];
/** Codes of connections that never came to be. */
const NOT_CONNECTED = /ConnectionRefused|FailedToOpenSocket|ECONNREFUSED|ENOTFOUND|EAI_AGAIN/;

export interface GatewayCall<T extends TSchema> {
  readonly method: "GET" | "POST" | "DELETE";
  readonly path: string;
  readonly checker: CompiledSchema<T>;
  readonly body?: object;
  readonly key?: string;
}

/** @returns `ok` with null for a GET or DELETE of what does not exist */
export async function callGateway<T extends TSchema>(
  base: string | null,
  call: GatewayCall<T>,
): Promise<CarrierAnswer<Static<T> | null>> {
  if (base === null) return { kind: "away", unreadable: false, called: false };
  const { method, path, body, key, checker } = call;
  let status: number;
  let answer: unknown;
  try {
    const response = await fetch(`${base.replace(/\/+$/, "")}${path}`, {
      method,
      ...(body && { body: JSON.stringify(body) }),
      headers: {
        accept: "application/json",
        ...(body && { "content-type": "application/json" }),
        ...(key !== undefined && { "idempotency-key": key }),
      },
      redirect: "manual",
      signal: AbortSignal.timeout(GATEWAY_LIMIT_MS),
    });
    status = response.status;
    answer = await readAnswer(response, ANSWER_LIMIT_BYTES);
  } catch (error) {
    return { kind: "away", unreadable: false, called: !isNotConnected(error) };
  }
  if (status >= 200 && status < 300) {
    return checker.check(answer)
      ? { kind: "ok", value: answer }
      : { kind: "away", unreadable: true, called: true };
  }
  if (method !== "POST" && status === 404) return { kind: "ok", value: null };
  if (method === "DELETE" && UNSUPPORTED.includes(status)) {
    return { kind: "refused", message: "The carrier does not support this." };
  }
  if (REFUSALS.includes(status)) return { kind: "refused", message: messageOf(answer) };
  return { kind: "away", unreadable: status < 500, called: status >= 500 };
}

function isNotConnected(error: unknown): boolean {
  return error instanceof Error && NOT_CONNECTED.test(String((error as { code?: unknown }).code));
}

function messageOf(answer: unknown): string {
  const { message } = (answer ?? {}) as { readonly message?: unknown };
  return typeof message === "string" && message !== ""
    ? message.slice(0, MESSAGE_LENGTH).toWellFormed()
    : "The carrier refused without a reason.";
}

/**
 * The JSON of an answer; undefined if it is too long, not strict JSON or not valid Unicode: no contract of ours has such an
 * answer.
 * @throws connection errors
 */
export async function readAnswer(response: Response, limitBytes: number): Promise<unknown> {
  const bytes = await readBounded(response, limitBytes);
  if (bytes === null) return undefined;
  try {
    const { value, hasSurrogateEscapes } = await parseInTurns(bytes, {
      valueBytes: LABEL_LIMIT_BYTES,
    });
    return hasSurrogateEscapes && illFormedText(value).length > 0 ? undefined : value;
  } catch (error) {
    if (error instanceof JsonFault) return undefined;
    throw error;
  }
}
