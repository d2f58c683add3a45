/**
 * The values of a form and which of them have been touched. If somebody else has changed the same entity meanwhile, both versions are
 * shown, and the visitor keeps one of them for each field.
 */
import { useForm } from "@mantine/form";
import { type ReactNode, useEffect, useState } from "react";
import { ApiProblem, type Match } from "#panel/web/api/call.ts";
import { faultOf } from "#panel/web/parts/fault-of.ts";
import { useAction } from "#panel/web/parts/use-action.ts";
import { ConflictNote } from "./conflict-note.tsx";

/** What an input of the form needs: its value, and what the server says is wrong with it, there named `path`. */
export type InputOf<Values> = (
  name: keyof Values & string,
  options?: { readonly type?: "input" | "checkbox"; readonly path?: string },
) => object;

export interface EditOptions<Values extends object, Answer> {
  /** As the server has it: it is another one once a change that was made elsewhere has been read. */
  readonly initial: Values;
  /** What the form begins with, where it is not that. */
  readonly start?: Values | undefined;
  /** Of `initial`. Null = there is no such thing yet; absent = what is sent does not depend on what is there. */
  readonly version?: string | null | undefined;
  /** What is sent is what was touched; of a new thing everything. */
  readonly send: (values: Values, touched: Partial<Values>, match: Match) => Promise<Answer>;
  readonly onDone?: ((answer: Answer) => unknown) | undefined;
  readonly onChange?: (() => void) | undefined;
  /** Has `initial` read again. */
  readonly reread?: (() => Promise<unknown>) | undefined;
}

export interface Edit<Values> {
  readonly values: Values;
  readonly set: (values: Partial<Values>) => void;
  readonly inputOf: InputOf<Values>;
  readonly isNew: boolean;
  readonly isTouched: boolean;
  readonly isPending: boolean;
  readonly error: Error | null;
  /** Who changed it, and when; null = nobody did. */
  readonly conflict: Conflict<Values> | null;
  readonly submit: (event?: React.FormEvent<HTMLFormElement>) => void;
}

export interface Conflict<Values> {
  readonly by: string;
  /** ISO 8601 */
  readonly at: string | null;
  /** What the form had when the conflict was shown. */
  readonly mine: Values;
  readonly theirs: Values;
  readonly fields: readonly (keyof Values & string)[];
}

/** What the form has seen. */
interface Base<Values> {
  readonly values: Values;
  readonly version: string | null | undefined;
}

export function useEdit<Values extends object, Answer>(
  options: EditOptions<Values, Answer>,
): Edit<Values> {
  const { initial, version, send, onDone, reread } = options;
  const [base, setBase] = useState<Base<Values>>({ values: initial, version });
  const [stale, setStale] = useState<ApiProblem | null>(null);
  const [conflict, setConflict] = useState<Conflict<Values> | null>(null);
  const form = useForm<Values>({
    initialValues: options.start ?? initial,
    onValuesChange: () => options.onChange?.(),
  });
  const touched = differing(form.values, base.values);
  const isTouched = touched.length > 0;
  const saving = useAction({
    async mutationFn({ values, onto }: { readonly values: Values; readonly onto: Base<Values> }) {
      const match: Match = { version: onto.version };
      const changes = differing(values, onto.values).map((name) => [name, values[name]]);
      const answer = await send(values, Object.fromEntries(changes) as Partial<Values>, match);
      return { answer, made: { values, version: match.version } };
    },
    async onError(error) {
      if (!isStale(error)) return;
      setStale(error);
      await reread?.();
    },
    async onSuccess({ answer, made }) {
      setBase(made);
      setConflict(null);
      await onDone?.(answer);
    },
  });
  const now = JSON.stringify([version, initial]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: only what has been read again counts
  useEffect(() => {
    // Unsaved values are kept until the server has said who changed what.
    if (saving.isPending || version === base.version || (isTouched && !stale)) return;
    const onto: Base<Values> = { values: initial, version };
    const mine = form.values;
    const fields = differing(initial, base.values);
    const untouched = fields.filter((name) => !touched.includes(name));
    const merged = Object.fromEntries(untouched.map((name) => [name, initial[name]]));
    form.setValues(merged as Partial<Values>);
    setBase(onto);
    setStale(null);
    if (!stale) return;
    const { changedBy: by, changedAt: at } = stale;
    // Where another part of the same thing was changed, nothing is to be decided.
    if (fields.length === 0) saving.mutate({ values: mine, onto });
    else setConflict({ by, at, mine, theirs: initial, fields });
  }, [now, stale, saving.isPending]);
  const error = conflict && saving.error && isStale(saving.error) ? null : saving.error;
  const inputOf: InputOf<Values> = (name, { type = "input", path = name } = {}) => ({
    ...form.getInputProps(name, { type }),
    error: faultOf(error, path) ?? noteOf(name),
  });
  function noteOf(name: keyof Values & string): ReactNode {
    if (!conflict?.fields.includes(name)) return undefined;
    const { mine, theirs } = conflict;
    return (
      <ConflictNote
        isMine={!isSame(form.values[name], theirs[name])}
        mine={mine[name]}
        theirs={theirs[name]}
        onChoose={(value) => form.setValues({ [name]: value } as Partial<Values>)}
      />
    );
  }
  const isNew = base.version === null || base.version === undefined;
  return {
    values: form.values,
    set: (values) => form.setValues(values),
    inputOf,
    isNew,
    isTouched,
    isPending: saving.isPending,
    error,
    conflict,
    submit: form.onSubmit((values) => saving.mutate({ values, onto: base })),
  };
}

function isStale(error: Error): error is ApiProblem {
  return error instanceof ApiProblem && error.code === "VERSION_CONFLICT";
}

function isSame(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

function differing<Values extends object>(one: Values, other: Values): (keyof Values & string)[] {
  const names = Object.keys(one) as (keyof Values & string)[];
  return names.filter((name) => !isSame(one[name], other[name]));
}
