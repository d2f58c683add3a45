/** Group commit: who comes while calls are under way shares the next one, in order, and learns of its own outcome only. */
import { expect, test } from "bun:test";
import { groupCommit, NoAnswer } from "#core/platform/process/group-commit.ts";

const LIMITS = { sizePerCall: 100, waiting: 100, callMs: 60_000 } as const;

/** A store that answers when it is reported to. */
function slowStore() {
  const calls: { asks: readonly number[]; answer: () => void; fail: (error: Error) => void }[] = [];
  const call = (asks: readonly number[]) =>
    new Promise<string[]>((resolve, reject) => {
      const answer = () => resolve(asks.map((ask) => `answer to ${ask}`));
      calls.push({ asks, answer, fail: reject });
    });
  /** Answers every call, those that follow too: what is left without an answer fails a minute later, in another test. */
  const answerAll = async () => {
    for (let at = 0; at < calls.length; at += 1) {
      calls[at]?.answer();
      await Bun.sleep(0);
    }
  };
  return { calls, call, answerAll };
}

test("who comes alone is called for at once, and those who come meanwhile share the next call", async () => {
  const { calls, call } = slowStore();
  const ask = groupCommit(call, { ...LIMITS, callsUnderWay: 1 });
  const answers = [1, 2, 3].map(ask);
  expect(calls.map(({ asks }) => asks)).toEqual([[1]]);
  calls[0]?.answer();
  expect(await answers[0]).toBe("answer to 1");
  expect(calls[1]?.asks).toEqual([2, 3]);
  calls[1]?.answer();
  expect(await Promise.all(answers)).toEqual(["answer to 1", "answer to 2", "answer to 3"]);
});

test("as many calls as allowed are under way, and no more", async () => {
  const { calls, call, answerAll } = slowStore();
  const ask = groupCommit(call, { ...LIMITS, callsUnderWay: 2 });
  const answers = [1, 2, 3, 4].map(ask);
  expect(calls.map(({ asks }) => asks)).toEqual([[1], [2]]);
  await answerAll();
  expect(await Promise.all(answers)).toHaveLength(4);
});

test("a call takes as many as fit: N together, N + 1 in two, and one that is larger alone", async () => {
  const { calls, call, answerAll } = slowStore();
  const ask = groupCommit(call, { ...LIMITS, callsUnderWay: 1, sizePerCall: 10 }, (size) => size);
  const answers = [1, 4, 6, 1, 11, 2].map(ask);
  await answerAll();
  expect(await Promise.all(answers)).toHaveLength(6);
  expect(calls.map(({ asks }) => asks)).toEqual([[1], [4, 6], [1], [11], [2]]);
});

test("a call that fails fails for its own callers, and the next one is made", async () => {
  const { calls, call } = slowStore();
  const ask = groupCommit(call, { ...LIMITS, callsUnderWay: 1 });
  const first = ask(1);
  const second = ask(2);
  calls[0]?.fail(new Error("away"));
  expect(await first.catch((error: Error) => error.message)).toBe("away");
  calls[1]?.answer();
  expect(await second).toBe("answer to 2");
});

test("a call that hangs fails for its own callers once its time is over, and the next one is made", async () => {
  const { calls, call } = slowStore();
  const ask = groupCommit(call, { ...LIMITS, callsUnderWay: 1, callMs: 20 });
  const hanging = ask(1);
  const next = ask(2);
  expect(await hanging.catch((error: unknown) => error)).toBeInstanceOf(NoAnswer);
  calls[1]?.answer();
  expect(await next).toBe("answer to 2");
});

test("as many as the limit wait, and one more is refused", async () => {
  const { call, answerAll } = slowStore();
  const ask = groupCommit(call, { ...LIMITS, callsUnderWay: 1, waiting: 3 });
  const answers = [0, 1, 2, 3].map(ask);
  expect(await ask(4).catch((error: unknown) => error)).toBeInstanceOf(NoAnswer);
  await answerAll();
  expect(await Promise.all(answers)).toHaveLength(4);
});
