/** What is wrong with a body: each fault has a path and a stable code. */
import { type TSchema, Type } from "@sinclair/typebox";
import { ValueErrorType } from "@sinclair/typebox/compiler";
import type { SchemaError } from "./compile-schema.ts";
import { counted } from "./counted.ts";
import { limit } from "./limit.ts";
import { TEXT_FORMATS } from "./text-formats.ts";

/** Faults listed at once; the rest of a hopeless body is not worth reading. */
export const FAULTS_LISTED = limit(
  20,
  "errors listed of one event or body",
  "the rest is not listed",
);
/** Faults counted where an answer says how many there are. */
export const FAULTS_COUNTED = limit(
  1_000,
  "violations that the merchant API counts in its message",
  '"at least" so many',
);

/** Stable codes of `errors[]` items (document 2) and `violations` (document 1), as the reference explains them. */
export const FAULT_CODES = {
  REQUIRED: "The field is missing, alone or together with others.",
  UNKNOWN_FIELD: "The field is none of the documented ones.",
  WRONG_TYPE: "The value has another JSON type, or a number is not whole.",
  TOO_SHORT: "The text is shorter than allowed; a required text is not empty.",
  TOO_LONG: "The text has more characters than allowed.",
  TOO_FEW: "The list has fewer items, or the map fewer keys, than allowed.",
  TOO_MANY: "The list has more items, or the map more keys, than allowed.",
  OUT_OF_RANGE: "The number is smaller or larger than allowed.",
  IN_FUTURE: "The event is dated more than 24 hours after it was received.",
  NOT_ALLOWED: "The value is none of the allowed ones.",
  BAD_FORMAT:
    "The value is not in the documented format, not valid JSON or Unicode, nested too deep, or has a key twice.",
} as const;
export type FaultCode = keyof typeof FAULT_CODES;

export const FaultItem = Type.Object({
  path: Type.String({ description: "dotted path such as delivery.podUrl; empty for the whole" }),
  code: Type.Union(Object.keys(FAULT_CODES).map((code) => Type.Literal(code as FaultCode))),
  message: Type.String({ description: "for people; it may change" }),
});

export interface Fault {
  /** Where, as dotted path: `delivery.podUrl`, `events[3]`; empty for the whole. */
  readonly path: string;
  readonly code: FaultCode;
  readonly message: string;
}

/**
 * One fault per path, in the order of the schema. A list or map that is too large is first cut to its limit:
 * otherwise 100,000 valid elements would be checked one by one.
 */
export function listFaults(errors: Iterable<SchemaError>, limit = FAULTS_LISTED): Fault[] {
  const byPath = new Map<string, Fault>();
  for (const error of errors) {
    cutToLimit(error);
    for (const reported of reportedErrors(error)) {
      const path = dotted(reported.path);
      if (!byPath.has(path)) byPath.set(path, { path, ...describe(reported) });
      if (byPath.size >= limit) return [...byPath.values()];
    }
  }
  return [...byPath.values()];
}

/** Errors are generated lazily, so elements removed by then cost nothing. */
function cutToLimit({ type, schema, value }: SchemaError): void {
  if (type === ValueErrorType.ArrayMaxItems) (value as unknown[]).length = schema["maxItems"];
  if (type !== ValueErrorType.ObjectMaxProperties) return;
  const members = value as Record<string, unknown>;
  for (const key of Object.keys(members).slice(schema["maxProperties"])) delete members[key];
}

/** For a union, the errors of the form that has the value's JSON type, if there is one. */
function reportedErrors(error: SchemaError): SchemaError[] {
  const forms = error.errors.map((errors) => [...errors]);
  const meant = forms.find(([first]) => first && !isOtherForm(first, error.path));
  return meant ? meant.flatMap(reportedErrors) : [error];
}

function isOtherForm(error: SchemaError, path: string): boolean {
  return error.path === path && ["WRONG_TYPE", "NOT_ALLOWED"].includes(describe(error).code);
}

/** `/events/3/status/code` -> `events[3].status.code` */
function dotted(pointer: string): string {
  let path = "";
  for (const raw of pointer.split("/").slice(1)) {
    const key = raw.replaceAll("~1", "/").replaceAll("~0", "~");
    if (/^\d+$/.test(key)) path += `[${key}]`;
    else path += path === "" ? key : `.${key}`;
  }
  return path;
}

function describe(error: SchemaError): Pick<Fault, "code" | "message"> {
  const schema: TSchema = error.schema;
  switch (error.type) {
    case ValueErrorType.ObjectRequiredProperty:
      return { code: "REQUIRED", message: "The field is required." };
    case ValueErrorType.ObjectAdditionalProperties:
      return { code: "UNKNOWN_FIELD", message: "The field is not known." };
    case ValueErrorType.StringMinLength:
      return {
        code: "TOO_SHORT",
        message: `At least ${counted(schema["minLength"], "character")}.`,
      };
    case ValueErrorType.StringMaxLength:
      return { code: "TOO_LONG", message: `At most ${counted(schema["maxLength"], "character")}.` };
    case ValueErrorType.ArrayMinItems:
      return { code: "TOO_FEW", message: `At least ${counted(schema["minItems"], "item")}.` };
    case ValueErrorType.ArrayMaxItems:
      return { code: "TOO_MANY", message: `At most ${counted(schema["maxItems"], "item")}.` };
    case ValueErrorType.ObjectMinProperties:
      return { code: "TOO_FEW", message: `At least ${counted(schema["minProperties"], "key")}.` };
    case ValueErrorType.ObjectMaxProperties:
      return { code: "TOO_MANY", message: `At most ${counted(schema["maxProperties"], "key")}.` };
    case ValueErrorType.IntegerMinimum:
    case ValueErrorType.NumberMinimum:
      return { code: "OUT_OF_RANGE", message: `At least ${schema["minimum"]}.` };
    case ValueErrorType.NumberExclusiveMinimum:
      return { code: "OUT_OF_RANGE", message: `More than ${schema["exclusiveMinimum"]}.` };
    case ValueErrorType.IntegerMaximum:
    case ValueErrorType.NumberMaximum:
      return { code: "OUT_OF_RANGE", message: `At most ${schema["maximum"]}.` };
    case ValueErrorType.StringPattern:
      return { code: "BAD_FORMAT", message: patternMessage(schema) };
    case ValueErrorType.StringFormat:
      return {
        code: "BAD_FORMAT",
        message: TEXT_FORMATS[schema["format"]]?.words ?? "Bad format.",
      };
    case ValueErrorType.Union:
      return describeUnion(schema["anyOf"]);
    case ValueErrorType.Literal:
      return { code: "NOT_ALLOWED", message: `Expected ${valueOrType(schema)}.` };
    default:
      // JSON has no largest number; a double has, and 1e400 becomes infinite.
      return typeof error.value === "number" && !Number.isFinite(error.value)
        ? { code: "OUT_OF_RANGE", message: "The number is too large." }
        : { code: "WRONG_TYPE", message: `Expected ${valueOrType(schema)}.` };
  }
}

/** A pattern is for programs: its schema says in `description` what form a person has to give the text. */
function patternMessage({ description }: TSchema): string {
  return description === undefined
    ? "The text is not in the documented form."
    : `Expected: ${description}.`;
}

/** Of types or of values. */
function describeUnion(options: readonly TSchema[]): Pick<Fault, "code" | "message"> {
  const words = new Set(options.map(valueOrType));
  const list = [...words].toSorted((a, b) => Number(a === NULL) - Number(b === NULL));
  return options.some((option) => option["const"] !== undefined)
    ? { code: "NOT_ALLOWED", message: `Expected one of ${list.join(", ")}.` }
    : { code: "WRONG_TYPE", message: `Expected ${list.join(" or ")}.` };
}

const NULL = "null";
const TYPE_WORDS: Readonly<Record<string, string>> = {
  string: "a string",
  integer: "a whole number",
  number: "a number",
  boolean: "true or false",
  object: "an object",
  array: "a list",
  null: NULL,
};

function valueOrType(schema: TSchema): string {
  return schema["const"] === undefined
    ? (TYPE_WORDS[schema["type"]] ?? "a value of the documented type")
    : JSON.stringify(schema["const"]);
}
