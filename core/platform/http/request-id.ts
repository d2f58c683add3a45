/**
 * The id of the request that is being answered, wherever its work goes on: for log lines and error answers. A call to the store
 * that several requests share logs the id of the one that made it.
 */
import { AsyncLocalStorage } from "node:async_hooks";

const current = new AsyncLocalStorage<string>();

/** Undefined outside of a request. */
export function currentRequestId(): string | undefined {
  return current.getStore();
}

export function withRequestId<T>(id: string, work: () => T): T {
  return current.run(id, work);
}
