/**
 * Wakes whoever waits for work: writers announce it on a channel of its topic, idle loops wait for that instead of asking again
 * and again. Only a hint: a message may be lost while a connection is interrupted, so every wait has a limit of its own, after
 * which the loop looks by itself.
 *
 * A process has one connection for all its topics, apart from the one for commands: Redis gives subscribers little room for
 * replies.
 */
import { isCluster, type Redis } from "./client.ts";
import { WAKE_TOPICS, type WakeTopic, wakeChannel } from "./keys.ts";

/** Announcements of a topic by a process are no closer than this: the first goes out at once, those that follow share the next. */
const GAP_MS = 5;

const WAKE_CHANNELS = WAKE_TOPICS.map(wakeChannel);

interface Announcing {
  /** Somebody has announced since the last message. */
  isDue: boolean;
}

const announcing = new WeakMap<Redis, Map<WakeTopic, Announcing>>();

/** There is work. Called after it was written; costs no round trip of its caller and never fails. */
export function announce(redis: Redis, topic: WakeTopic): void {
  const topics = announcing.get(redis) ?? new Map<WakeTopic, Announcing>();
  announcing.set(redis, topics);
  const before = topics.get(topic);
  if (before) before.isDue = true;
  else send(redis, topics, topic);
}

function send(redis: Redis, topics: Map<WakeTopic, Announcing>, topic: WakeTopic): void {
  const own: Announcing = { isDue: false };
  topics.set(topic, own);
  void redis.publish(wakeChannel(topic), "").catch(() => {});
  setTimeout(() => {
    if (own.isDue) send(redis, topics, topic);
    else topics.delete(topic);
  }, GAP_MS);
}

export interface Waker {
  /** Forgets what was announced so far: whoever looks for work now finds it. */
  readonly reset: () => void;
  /** Ends with the next announcement, at once where there was one since `reset`, and after `mostMs` in any case. */
  readonly wait: (mostMs: number) => Promise<void>;
  /** Ends the wait, and makes the next one end at once. */
  readonly wake: () => void;
  readonly close: () => void;
}

/** @param onWake called at every announcement */
export function openWaker(redis: Redis, topic: WakeTopic, onWake = () => {}): Waker {
  let isWoken = false;
  let endWait = () => {};
  const wake = () => {
    isWoken = true;
    endWait();
  };
  const unlisten = listen(redis, topic, () => {
    wake();
    onWake();
  });
  return {
    reset() {
      isWoken = false;
    },
    async wait(mostMs) {
      if (isWoken) return;
      const { promise, resolve } = Promise.withResolvers<void>();
      const timer = setTimeout(resolve, mostMs);
      endWait = resolve;
      await promise;
      clearTimeout(timer);
    },
    wake,
    close: unlisten,
  };
}

interface Subscription {
  readonly connection: Redis;
  readonly listeners: Map<WakeTopic, Set<() => void>>;
}

const subscriptions = new WeakMap<Redis, Subscription>();

function listen(redis: Redis, topic: WakeTopic, listener: () => void): () => void {
  const subscription = subscriptions.get(redis) ?? subscribe(redis);
  const { listeners } = subscription;
  const own = listeners.get(topic) ?? new Set();
  listeners.set(topic, own);
  own.add(listener);
  return () => {
    own.delete(listener);
    if ([...listeners.values()].some(({ size }) => size > 0)) return;
    subscriptions.delete(redis);
    unsubscribe(redis, subscription);
  };
}

function subscribe(redis: Redis): Subscription {
  // A cluster's client keeps a connection for messages by itself.
  const connection = isCluster(redis) ? redis : (redis.duplicate() as Redis);
  const subscription = { connection, listeners: new Map<WakeTopic, Set<() => void>>() };
  subscriptions.set(redis, subscription);
  void connect(redis, subscription);
  return subscription;
}

/** Whatever happens to the connection afterwards, the client heals it and subscribes again. */
async function connect(redis: Redis, { connection, listeners }: Subscription): Promise<void> {
  const onMessage = (_: string, channel: string) => {
    for (const [topic, own] of listeners) {
      if (wakeChannel(topic) === channel) for (const listener of own) listener();
    }
  };
  try {
    if (connection !== redis) {
      connection.on("error", () => {});
      await connection.connect();
    }
    await connection.subscribe(WAKE_CHANNELS, onMessage);
  } catch {
    // Without it the loops look by themselves.
  }
}

function unsubscribe(redis: Redis, { connection }: Subscription): void {
  if (connection !== redis) connection.destroy();
  else if (redis.isOpen) void redis.unsubscribe(WAKE_CHANNELS).catch(() => {});
}
