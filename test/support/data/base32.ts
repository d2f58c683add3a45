/** The secret of a second factor, as an authenticator app reads it (RFC 4648, without padding). */
export function bytesOfBase32(text: string): Buffer {
  const bits = [...text]
    .map((one) => "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".indexOf(one).toString(2).padStart(5, "0"))
    .join("");
  return Buffer.from((bits.match(/.{8}/g) ?? []).map((byte) => Number.parseInt(byte, 2)));
}
