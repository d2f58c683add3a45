/** Numeric ids in paths. */

const ID_FORM = /^[1-9]\d{0,14}$/;

/** @returns 0, which is the id of nothing, for a text that is not an id of at most fifteen digits */
export function idOf(text: string): number {
  return ID_FORM.test(text) ? Number(text) : 0;
}
