/**
 * Compiles a schema as JSON Schema means it: lengths count code points. TypeBox counts UTF-16 units, which are never
 * fewer, so whatever it accepts is valid; only what it refuses is looked at again.
 */
import type { Static, TSchema } from "@sinclair/typebox";
import { TypeCompiler, type ValueError, ValueErrorType } from "@sinclair/typebox/compiler";
import { isLongerThan } from "./text-formats.ts";

export interface CompiledSchema<T extends TSchema> {
  readonly schema: T;
  readonly check: (value: unknown) => value is Static<T>;
  /** Lazily: the rest of a hopeless value is not looked at. */
  readonly errors: (value: unknown) => Iterable<SchemaError>;
}

export type SchemaError = Omit<ValueError, "errors"> & {
  /** Of a union, the errors of each of its forms. */
  readonly errors: readonly Iterable<SchemaError>[];
};

/** @throws if the schema has a minimum length over 1, which UTF-16 units may reach with too few code points */
export function compileSchema<T extends TSchema>(schema: T): CompiledSchema<T> {
  refuseMinLengths(schema);
  const compiled = TypeCompiler.Compile(schema);
  const errors = (value: unknown) => realErrors(compiled.Errors(value));
  return {
    schema,
    check: (value): value is Static<T> => compiled.Check(value) || isEmpty(errors(value)),
    errors,
  };
}

function* realErrors(errors: Iterable<ValueError>): Generator<SchemaError> {
  for (const error of errors) {
    const isShort =
      error.type === ValueErrorType.StringMaxLength &&
      !isLongerThan(error.value as string, error.schema["maxLength"]);
    // Only a union has forms.
    const forms = error.errors.map((form) => [...realErrors(form)]);
    if (!isShort && forms.every(({ length }) => length > 0)) yield { ...error, errors: forms };
  }
}

function isEmpty(errors: Iterable<unknown>): boolean {
  for (const _ of errors) return false;
  return true;
}

function refuseMinLengths(schema: TSchema): void {
  const text = JSON.stringify(schema);
  if (/"minLength":(?!1\b|0\b)/.test(text)) throw new Error("a minLength over 1 is not supported");
}
