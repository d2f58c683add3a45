/** Notices to an operator who waits for a channel to come back, while nothing does. */
import type { ArchiveView } from "#panel/server/operations/archive.ts";

/** Without progress, before each notice. */
export const NOTICE_MS = 30_000;

type Seen = Pick<ArchiveView, "behindSeconds" | "bytes">;

/** @param quietMs since the last shipment came back */
export function waitingLine(quietMs: number, { bytes, behindSeconds }: Seen): string {
  const since = `Nothing has come back for ${Math.round(quietMs / 1_000)} s`;
  if (bytes === null) return `${since}: ClickHouse does not answer. It goes on when it does.`;
  const round =
    behindSeconds === null
      ? "the archiver has not ended a round yet"
      : `the archiver's latest complete round ended ${Math.round(behindSeconds)} s ago`;
  return `${since}: ${round}. Is the analytics role running? Its log says what keeps it.`;
}

/** @param shown notices since the last shipment came back @returns whether the next one is due */
export function isNoticeDue(quietMs: number, shown: number): boolean {
  return quietMs >= (shown + 1) * NOTICE_MS;
}
