/** Members of a body that its schema does not know: they are accepted, left out and reported, since most are typing errors. */
import { type Static, type TSchema, Type } from "@sinclair/typebox";
import { limit } from "./limit.ts";
import { nearest } from "./nearest.ts";

export const WARNINGS_LISTED = limit(
  20,
  "unknown members that an answer warns of",
  "the rest is not listed",
);
/** In code points. */
const NAME_LENGTH = limit(100, "characters of an unknown member's name in a warning", "cut off");

export const Warning = Type.Object({
  path: Type.String({
    description: "Where the member is in the body, dotted.",
    examples: ["shipments[0].orderReferance"],
  }),
  code: Type.Literal("UNKNOWN_MEMBER", { description: "The only code so far." }),
  nearest: Type.Union([Type.String(), Type.Null()], {
    description: "The documented member with the most similar name; null if none is similar.",
    examples: ["orderReference"],
  }),
});
export type Warning = Static<typeof Warning>;

/** Of answers to creations, imports and changes. */
export const warnings = Type.Optional(
  Type.Array(Warning, {
    maxItems: WARNINGS_LISTED,
    description:
      "Members of the request's body that are not known and had no effect, at most 20. Absent if there is none.",
  }),
);

/** Adds to `found` until it is full. @param path of the value */
export function addUnknownMembers(
  schema: TSchema,
  value: unknown,
  path: string,
  found: Warning[],
): void {
  if (typeof value !== "object" || value === null || found.length >= WARNINGS_LISTED) return;
  const forms = formsOf(schema);
  if (Array.isArray(value)) {
    const items: TSchema | undefined = forms.find((form) => form["items"])?.["items"];
    if (!items) return;
    for (const [at, item] of value.entries())
      addUnknownMembers(items, item, `${path}[${at}]`, found);
    return;
  }
  const known = membersOf(forms);
  if (known === null) return;
  for (const [name, member] of Object.entries(value)) {
    const own = Object.hasOwn(known, name) ? known[name] : undefined;
    if (own) addUnknownMembers(own, member, within(path, name), found);
    else addUnknownMember(name, Object.keys(known), path, found);
  }
}

export function addUnknownMember(
  name: string,
  known: readonly string[],
  path: string,
  found: Warning[],
): void {
  if (found.length >= WARNINGS_LISTED) return;
  const shown = shortened(name.toWellFormed());
  found.push({ path: within(path, shown), code: "UNKNOWN_MEMBER", nearest: nearest(name, known) });
}

function within(path: string, name: string): string {
  return path === "" ? name : `${path}.${name}`;
}

function shortened(name: string): string {
  // A code point has at most two units.
  const points = [...name.slice(0, 2 * NAME_LENGTH + 2)];
  return points.length > NAME_LENGTH ? `${points.slice(0, NAME_LENGTH).join("")}…` : name;
}

function formsOf(schema: TSchema): readonly TSchema[] {
  const forms: readonly TSchema[] | undefined = schema["anyOf"];
  return forms?.flatMap(formsOf) ?? [schema];
}

/** Of all forms together; null if there is one with free names. */
function membersOf(forms: readonly TSchema[]): Readonly<Record<string, TSchema>> | null {
  const objects = forms.filter((form) => form["type"] === "object");
  if (objects.length === 0 || objects.some((form) => !form["properties"])) return null;
  return Object.assign({}, ...objects.map((form) => form["properties"]));
}
