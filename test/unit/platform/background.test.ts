/** Background work beside foreground work, as `core/platform/process/background.ts` promises. */
import { expect, test } from "bun:test";
import { atWork, background, foreground } from "#core/platform/process/background.ts";

const OWNER = 3;
const OTHER = 19;
const isAlone = () => background(OWNER, async (alone) => alone);

test("a step begins when the foreground work has ended", async () => {
  const done: string[] = [];
  const answered = foreground(async () => {
    await Bun.sleep(10);
    done.push("request");
  });
  await background(OWNER, async () => void done.push("step"));
  await answered;
  expect(done).toEqual(["request", "step"]);
});

test("foreground work without end keeps a step waiting for about 25 ms", async () => {
  const end = Promise.withResolvers<void>();
  const endless = foreground(() => end.promise);
  const fromMs = performance.now();
  await isAlone();
  const waitedMs = performance.now() - fromMs;
  expect(waitedMs).toBeGreaterThan(20);
  expect(waitedMs).toBeLessThan(5_000);
  end.resolve();
  await endless;
});

test("beside others steps come one at a time, each after a rest of nine times the one before", async () => {
  atWork(OTHER);
  const others = setInterval(() => atWork(OTHER), 50);
  let underWay = 0;
  const beganMs: number[] = [];
  const endedMs: number[] = [];
  const step = () =>
    background(OWNER, async () => {
      underWay += 1;
      expect(underWay).toBe(1);
      beganMs.push(performance.now());
      await Bun.sleep(10);
      endedMs.push(performance.now());
      underWay -= 1;
    });
  await Promise.all([step(), step(), step()]);
  clearInterval(others);
  for (const at of [1, 2]) {
    const restMs = (beganMs[at] ?? 0) - (endedMs[at - 1] ?? 0);
    expect(restMs).toBeGreaterThan(85);
  }
});

test("a step that fails holds up no other", async () => {
  const failing = background(OWNER, () => Promise.reject(new Error("broken")));
  await expect(failing).rejects.toThrow("broken");
  expect(await background(OWNER, async () => "next")).toBe("next");
});

test("an owner is alone a second after the last work of others, whatever else is its own", async () => {
  atWork(OTHER);
  atWork(OWNER);
  expect(await isAlone()).toBe(false);
  await Bun.sleep(1_050);
  atWork(OWNER);
  expect(await isAlone()).toBe(true);
  atWork(null);
  atWork(OWNER);
  expect(await isAlone()).toBe(false);
});
