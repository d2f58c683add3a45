/** Records of channels, kept as JSON text whose first member is the `channelId`. */

/**
 * Null if there is none, or if it belongs to another channel. A foreign record is not parsed, so its timing does not distinguish it
 * from a missing one.
 */
export function ownRecord<T extends { readonly channelId: number }>(
  text: string | null | undefined,
  channelId: number,
): T | null {
  return text?.startsWith(`{"channelId":${channelId},`) ? JSON.parse(text) : null;
}
