/** Compare and set of a hash field. */
import { type Redis, run, script } from "./client.ts";
import swapFieldSource from "./swap-field.lua" with { type: "text" };

const swapFieldScript = script(swapFieldSource);

/** @returns false, and nothing is written, if the field is no longer what was read */
export async function swapField(
  redis: Redis,
  key: string,
  field: string,
  change: { readonly from: string; readonly to: string },
): Promise<boolean> {
  return (await run<number>(redis, swapFieldScript, [key], [field, change.from, change.to])) === 1;
}
