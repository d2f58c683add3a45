/** A request that is repeated while a store is unavailable. */
import { eventually } from "#test/support/eventually.ts";
import type { Answer } from "./merchant.ts";

/**
 * The body of an answer. 503 is a right answer for a while: after a kill, and where a replica of a cluster stalls for two seconds.
 * @throws on any other answer than 200
 */
export async function untilServed(ask: () => Promise<Answer>): Promise<Answer["body"]> {
  const { status, body } = await eventually(async () => {
    const answer = await ask();
    return answer.status !== 503 && answer;
  }, "the store is available");
  if (status !== 200) throw new Error(`${status}: ${JSON.stringify(body)}`);
  return body;
}
