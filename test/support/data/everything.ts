/** The content of keys, to be compared and to be put back. */
import { binary, type Redis } from "#core/platform/redis/client.ts";

/** What stands in every key, by key; and what brings it back. */
export interface Everything {
  readonly values: ReadonlyMap<string, string>;
  readonly dumps: ReadonlyMap<string, { readonly dump: Buffer; readonly ttlMs: number }>;
}

/** The same content is always the same text, however it is packed. */
const READ_ALL = `local all, read = {}, {
  string = { 'GET' }, list = { 'LRANGE', 0, -1 }, zset = { 'ZRANGE', 0, -1, 'WITHSCORES' },
  set = { 'SMEMBERS' }, hash = { 'HGETALL' }, stream = { 'XRANGE', '-', '+' },
}
for at, key in ipairs(KEYS) do
  local kind = redis.call('TYPE', key).ok
  local found = redis.call(read[kind][1], key, unpack(read[kind], 2))
  if kind == 'hash' then
    local pairs = {}
    for index = 1, #found, 2 do pairs[#pairs + 1] = found[index] .. '=' .. found[index + 1] end
    found = pairs
  end
  if kind == 'hash' or kind == 'set' then table.sort(found) end
  all[at] = cmsgpack.pack(found)
end
return all`;

export async function readAll(redis: Redis, found: readonly string[]): Promise<Everything> {
  const keys = [...found].toSorted();
  const bytes = binary(redis);
  const [texts, dumps, ttls] = await Promise.all([
    keys.length === 0 ? [] : readTexts(bytes, keys),
    Promise.all(keys.map((key) => bytes.dump(key) as unknown as Buffer)),
    Promise.all(keys.map((key) => redis.pTTL(key))),
  ]);
  return {
    values: new Map(keys.map((key, at) => [key, texts[at]?.toString("base64") ?? ""])),
    dumps: new Map(
      keys.map((key, at) => [key, { dump: dumps[at] ?? Buffer.of(), ttlMs: ttls[at] ?? 0 }]),
    ),
  };
}

/** One call for each hash tag: a cluster takes no others. */
async function readTexts(bytes: Redis, keys: readonly string[]): Promise<Buffer[]> {
  const texts = new Map<string, Buffer>();
  for (const own of Map.groupBy(keys, (key) => key.slice(0, key.indexOf("}"))).values()) {
    const read = (await bytes.eval(READ_ALL, { keys: own })) as unknown as Buffer[];
    for (const [at, key] of own.entries()) texts.set(key, read[at] ?? Buffer.of());
  }
  return keys.map((key) => texts.get(key) ?? Buffer.of());
}

/** @param present keys that stand there now */
export async function writeAll(
  redis: Redis,
  { dumps }: Everything,
  present: string[],
): Promise<void> {
  if (present.length > 0) await redis.del(present);
  const restored = [...dumps].map(([key, { dump, ttlMs }]) =>
    redis.restore(key, Math.max(0, ttlMs), dump),
  );
  await Promise.all(restored);
}
