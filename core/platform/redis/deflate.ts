/**
 * Deflate and inflate of short texts. `deflateRawSync` makes a stream, its buffers and their finalizers for every call:
 * for texts of a few hundred bytes that costs more than the work. Here one stream of each kind is reset and used again,
 * through the handle below it, which is no public interface: where it is not as expected, or the text is long, the
 * public one serves.
 */
import {
  constants,
  createDeflateRaw,
  createInflateRaw,
  deflateRawSync,
  inflateRawSync,
  type ZlibOptions,
} from "node:zlib";

/** Texts and their packed forms that the kept streams take; 32 facts have about 20 KB. */
const ROOM_BYTES = 256 * 1024;

interface Handle {
  writeSync(
    flush: number,
    input: Uint8Array,
    inputAt: number,
    inputLength: number,
    output: Uint8Array,
    outputAt: number,
    outputLength: number,
  ): void;
  reset(): void;
  onerror: () => void;
}

/** What lies below a stream of `node:zlib`. */
interface Inside {
  readonly _handle?: Handle;
  /** Capacity left of the output, and bytes left of the input, after a call. */
  readonly _writeState?: Uint32Array;
}

/** @returns bytes of the result, from `outputAt` on; null = it has to be done in another way */
type Work = (
  input: Uint8Array,
  inputAt: number,
  inputEnd: number,
  output: Uint8Array,
  outputAt: number,
) => number | null;

/** Work is synchronous: one buffer for input and output serves all. */
const input = Buffer.allocUnsafeSlow(ROOM_BYTES);
const output = Buffer.allocUnsafeSlow(ROOM_BYTES);

/** Whether this version of Bun has the handle that the kept streams need; a test asserts it of the version we pin. */
export function hasKeptStreams(): boolean {
  const { _handle: handle, _writeState: state } = createDeflateRaw() as Inside;
  return handle?.writeSync !== undefined && handle.reset !== undefined && state?.length === 2;
}

function workOf({ _handle: handle, _writeState: state }: Inside): Work {
  if (!handle || !state || !hasKeptStreams()) return () => null;
  let isBroken = false;
  handle.onerror = () => {
    isBroken = true;
  };
  return (from, fromAt, fromEnd, to, toAt) => {
    const capacity = to.length - toAt;
    isBroken = false;
    handle.reset();
    handle.writeSync(constants.Z_FINISH, from, fromAt, fromEnd - fromAt, to, toAt, capacity);
    const [left = 0, unread = 0] = state;
    return isBroken || left === 0 || unread > 0 ? null : capacity - left;
  };
}

/** @returns packs a text behind a first byte */
export function createDeflater(options: ZlibOptions): (text: string, first: number) => Buffer {
  const work = workOf(createDeflateRaw(options) as Inside);
  return (text, first) => {
    // A character takes at most three bytes.
    const length = text.length * 3 <= ROOM_BYTES ? input.write(text) : null;
    const bytes = length === null ? null : work(input, 0, length, output, 1);
    if (bytes === null) return Buffer.concat([Buffer.of(first), deflateRawSync(text, options)]);
    output[0] = first;
    return Buffer.from(output.subarray(0, 1 + bytes));
  };
}

/** @returns the text that is packed in bytes from `at` on; throws when they are damaged */
export function createInflater(options: ZlibOptions): (bytes: Uint8Array, at: number) => string {
  const work = workOf(createInflateRaw(options) as Inside);
  return (bytes, at) => {
    const length = work(bytes, at, bytes.length, output, 0);
    if (length === null) return inflateRawSync(bytes.subarray(at), options).toString("utf8");
    return output.toString("utf8", 0, length);
  };
}
