/** A program at a terminal, and somebody who types. */
import { eventually } from "#test/support/eventually.ts";

/** A key that comes together with others is taken as pasted text: Tab would not complete. */
const BETWEEN_KEYS_MS = 30;
/** A program starts in a session of its own, which a busy machine may keep waiting. */
const PROMPT_LIMIT_MS = 240_000;

export function startTerminal(command: string[], env: Readonly<Record<string, string>>) {
  let screen = "";
  const child = Bun.spawn(command, {
    env: { TERM: "xterm", ...env },
    terminal: {
      cols: 200,
      rows: 50,
      data(_, bytes) {
        screen += Buffer.from(bytes).toString("utf8");
      },
    },
  });
  return {
    screen: () => screen,
    /** Waits for a text that was not shown before the last key. */
    shows: (text: string, limitMs = PROMPT_LIMIT_MS) =>
      eventually(() => screen.includes(text), `the screen shows ${text}`, limitMs),
    async press(...keys: string[]) {
      screen = "";
      for (const key of keys) {
        child.terminal?.write(key);
        await Bun.sleep(BETWEEN_KEYS_MS);
      }
    },
    ended: () => child.exited,
  };
}
