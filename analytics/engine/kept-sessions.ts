/**
 * chDB's connections, kept for statements with the same settings: chDB has settings and parameters by connection, and runs the
 * statements of a connection one after the other. Opening one and giving it its settings for each statement costs more than a small
 * statement itself.
 */
import { Session } from "chdb";
import { IDLE_SESSIONS } from "./engine-limits.ts";

interface Kept {
  readonly settings: string;
  readonly session: Session;
}

export interface KeptSessions {
  /** @param settings a `SET` of all that a new connection is to have; empty = nothing */
  readonly use: <T>(settings: string, work: (session: Session) => Promise<T>) => Promise<T>;
}

/** @param path of the data, which stays open as long as one connection is */
export function keepSessions(path: string): KeptSessions {
  /** The one used last stands last. */
  const idle: Kept[] = [];

  async function taken(settings: string): Promise<Kept> {
    const at = idle.findLastIndex((kept) => kept.settings === settings);
    const [kept] = at < 0 ? [] : idle.splice(at, 1);
    if (kept) return kept;
    const session = new Session(path);
    if (settings !== "") {
      await session.queryAsync(settings).catch((error) => {
        session.close();
        throw error;
      });
    }
    return { settings, session };
  }

  return {
    async use(settings, work) {
      const kept = await taken(settings);
      try {
        const result = await work(kept.session);
        idle.push(kept);
        if (idle.length > IDLE_SESSIONS) idle.shift()?.session.close();
        return result;
      } catch (error) {
        // What a failed statement had written would stand before the next one's answer.
        kept.session.close();
        throw error;
      }
    },
  };
}
