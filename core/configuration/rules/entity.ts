/**
 * An entity of the configuration, defined once: its settings, and the fields that are stored beside them. From the settings come the
 * members of the setup file, the fields of the store, the type in force, the panel's answers, its PATCH and its form.
 *
 * A setting is a TypeBox schema. Its `default` holds where neither a file nor the panel has said anything, and for what earlier
 * versions have stored, which have no such field. Without one an absent text is empty, a number 0, a switch off and a list empty.
 */
import { type Static, type TOptional, type TSchema, type TUnsafe, Type } from "@sinclair/typebox";

export type Fields = Readonly<Record<string, TSchema>>;
export type ValuesOf<F extends Fields> = { readonly [N in keyof F]: Static<F[N]> };

export interface Entity<S extends Fields = Fields, F extends Fields = Fields> {
  readonly settings: S;
  /** Settings included. */
  readonly fields: S & F;
}

export function entity<S extends Fields, F extends Fields>(settings: S, own: F): Entity<S, F> {
  return { settings, fields: { ...settings, ...own } };
}

/** How the store keeps a field: lists and records as JSON text. */
export type StoredAs = "string" | "number" | "boolean" | "json";

const TYPES: Readonly<Record<string, StoredAs>> = {
  string: "string",
  number: "number",
  integer: "number",
  boolean: "boolean",
};
const EMPTY = { string: "", number: 0, boolean: false } as const;

export function storedAs(schema: TSchema): StoredAs {
  const forms: TSchema[] = schema["anyOf"] ?? [schema];
  const types = forms.map(({ type }) => type).filter((type) => type !== "null");
  const [first = "", ...others] = new Set<string>(types);
  return others.length === 0 ? (TYPES[first] ?? "json") : "json";
}

function valueIfAbsent(schema: TSchema): unknown {
  if (schema.default !== undefined) return schema.default;
  if (schema["anyOf"]?.some(({ type }: TSchema) => type === "null")) return null;
  const kind = storedAs(schema);
  return kind === "json" ? [] : EMPTY[kind];
}

/** An entity as it was stored, with a value for each of its fields. Those of a later version stay as they are. */
export function decoded(fields: Fields, stored: object): object {
  const known = Object.entries(fields).map(([name, schema]) => {
    const value: unknown = Reflect.get(stored, name) ?? "";
    if (value === "") return [name, valueIfAbsent(schema)];
    return [name, storedAs(schema) === "json" ? JSON.parse(String(value)) : value];
  });
  return { ...stored, ...Object.fromEntries(known) };
}

/** The reverse of `decoded`. Null is stored as an absent field. */
export function encoded(fields: Fields, values: object): object {
  const lists = Object.entries(fields).flatMap(([name, schema]) => {
    const value = Reflect.get(values, name) ?? null;
    return value !== null && storedAs(schema) === "json" ? [[name, JSON.stringify(value)]] : [];
  });
  return { ...values, ...Object.fromEntries(lists) };
}

type Optional<S extends Fields> = { [N in keyof S]: TOptional<TUnsafe<Static<S[N]>>> };
type OptionalInFile<S extends Fields> = {
  [N in keyof S]: TOptional<TUnsafe<NonNullable<Static<S[N]>>>>;
};

/** The settings as members that may be absent. */
export function optionalMembers<S extends Fields>(settings: S): Optional<S> {
  return mapped(settings, (schema) => Type.Optional(schema)) as Optional<S>;
}

/** The settings as members of a setup file's entry, which leaves out what is null. */
export function fileMembers<S extends Fields>(settings: S): OptionalInFile<S> {
  return mapped(settings, (schema) => Type.Optional(withoutNull(schema))) as OptionalInFile<S>;
}

function withoutNull(schema: TSchema): TSchema {
  const { default: value, description, anyOf = [] } = schema;
  const [only, ...others]: TSchema[] = anyOf.filter(({ type }: TSchema) => type !== "null");
  return value === null && only && others.length === 0
    ? { ...only, ...(description && { description }) }
    : schema;
}

/** The settings as members of a body that changes them: what is absent stays as it is. */
export function patchMembers<S extends Fields>(settings: S): Optional<S> {
  const members = mapped(settings, ({ default: _, ...schema }) => Type.Optional(schema as TSchema));
  return members as Optional<S>;
}

type Shown<S extends Fields> = { [N in keyof S]: TUnsafe<Static<S[N]>> };

/** The settings as members of an answer. */
export function shownMembers<S extends Fields>(settings: S): Shown<S> {
  return mapped(settings, withoutLimits) as Shown<S>;
}

/** Limits are of requests: answers are checked in UTF-16 units, and what was let in earlier is shown. */
function withoutLimits(schema: TSchema): TSchema {
  const {
    default: _,
    minLength,
    maxLength,
    pattern,
    maxItems,
    properties,
    anyOf,
    ...plain
  } = schema;
  return {
    ...plain,
    ...(properties && { properties: mapped(properties, withoutLimits) }),
    ...(anyOf && { anyOf: anyOf.map(withoutLimits) }),
  } as TSchema;
}

function mapped(fields: Fields, change: (schema: TSchema) => TSchema): Record<string, TSchema> {
  const members = Object.entries(fields).map(([name, schema]) => [name, change(schema)] as const);
  return Object.fromEntries(members);
}

/** Settings among the members of something larger. */
export function settingsIn<S extends Fields>(settings: S, owner: ValuesOf<S>): ValuesOf<S> {
  const members = Object.keys(settings).map((name) => [name, owner[name]] as const);
  return Object.fromEntries(members) as ValuesOf<S>;
}

type Given<S extends Fields> = { readonly [N in keyof S]?: Static<S[N]> | undefined };

/** The settings that are given, the others as they were, and of a new entity as they are by default. */
export function settingsAfter<S extends Fields>(
  settings: S,
  given: Given<S>,
  before: Given<S>,
): ValuesOf<S> {
  const members = Object.entries(settings).map(([name, schema]) => {
    const said = given[name] === undefined ? before[name] : given[name];
    return [name, said === undefined ? valueIfAbsent(schema) : said] as const;
  });
  return Object.fromEntries(members) as ValuesOf<S>;
}

/** A setting as the panel's form asks for it. */
export interface FormField<Name extends string = string> {
  readonly name: Name;
  readonly control: "text" | "number" | "switch" | "choice" | "choices" | "own";
  readonly isRequired: boolean;
  /** Of a number. */
  readonly isWhole: boolean;
  readonly maxLength: number | undefined;
  readonly min: number;
  readonly max: number;
  /** Of a choice, or of several. */
  readonly options: readonly string[];
}

const CONTROLS = { string: "text", number: "number", boolean: "switch", json: "own" } as const;

export function formOf<S extends Fields>(settings: S): FormField<keyof S & string>[] {
  return Object.entries(settings).map(([name, schema]) => {
    const isList = schema["items"] !== undefined;
    const options = optionsOf(isList ? schema["items"] : schema);
    const { type, minLength = 0, maxLength, minimum, exclusiveMinimum, maximum } = plainOf(schema);
    const choice = isList ? "choices" : "choice";
    return {
      name,
      control: options.length > 0 ? choice : CONTROLS[storedAs(schema)],
      isRequired: minLength > 0 || (minimum !== undefined && schema["anyOf"] === undefined),
      isWhole: type === "integer",
      maxLength,
      min: minimum ?? exclusiveMinimum ?? Number.MIN_SAFE_INTEGER,
      max: maximum ?? Number.MAX_SAFE_INTEGER,
      options,
    };
  });
}

function optionsOf({ anyOf = [] }: TSchema): string[] {
  return anyOf.flatMap(({ const: value = [] }: TSchema) => value);
}

/** A setting that may be null, as it is where it is not. */
function plainOf(schema: TSchema): TSchema {
  return schema["anyOf"]?.find(({ type }: TSchema) => type !== "null") ?? schema;
}
