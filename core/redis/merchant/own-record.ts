/** Records of channels, kept as JSON text whose first member is the `channelId`. */

/**
 * Null where there is none, and where it is another channel's: that one is not parsed, so that it cannot be told from a missing
 * one by its timing.
 */
export function ownRecord<T extends { readonly channelId: number }>(
  text: string | null | undefined,
  channelId: number,
): T | null {
  return text?.startsWith(`{"channelId":${channelId},`) ? JSON.parse(text) : null;
}
