/**
 * Wakes whoever waits for work: writers announce it on a channel of its topic, idle loops wait for that instead of asking again
 * and again. Only a hint: a message may be lost while a connection is interrupted, so every wait has a limit of its own, after
 * which the loop looks by itself.
 *
 * A process has one connection for all its topics, apart from the one for commands: Redis gives subscribers little room for
 * replies.
 */
import { isCluster, type Redis } from "./client.ts";
import { type WakeTopic, wakeChannel } from "./keys.ts";

/** Announcements of a topic by a process are no closer than this: the first goes out at once, those that follow share the next. */
const GAP_MS = 5;

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
  /** Never fails: a connection that cannot be made now is made later, or the loops look by themselves. */
  readonly connected: Promise<void>;
}

const subscriptions = new WeakMap<Redis, Subscription>();

/** Only of the topics that somebody waits for: under load each message costs Redis and its receiver some microseconds. */
function listen(redis: Redis, topic: WakeTopic, listener: () => void): () => void {
  const subscription = subscriptions.get(redis) ?? openSubscription(redis);
  const { listeners } = subscription;
  const known = listeners.get(topic);
  const own = known ?? new Set();
  own.add(listener);
  if (!known) {
    listeners.set(topic, own);
    void subscribe(subscription, topic, own);
  }
  return () => {
    own.delete(listener);
    if ([...listeners.values()].some(({ size }) => size > 0)) return;
    subscriptions.delete(redis);
    unsubscribe(redis, subscription);
  };
}

function openSubscription(redis: Redis): Subscription {
  // A cluster's client keeps a connection for messages by itself.
  const connection = isCluster(redis) ? redis : (redis.duplicate() as Redis);
  const connected = connection === redis ? Promise.resolve() : connect(connection);
  const subscription = { connection, listeners: new Map(), connected };
  subscriptions.set(redis, subscription);
  return subscription;
}

/** Whatever happens to the connection afterwards, the client heals it and subscribes again. */
async function connect(connection: Redis): Promise<void> {
  connection.on("error", () => {});
  await connection.connect().catch(() => {});
}

async function subscribe(
  { connection, connected }: Subscription,
  topic: WakeTopic,
  own: ReadonlySet<() => void>,
): Promise<void> {
  await connected;
  const onMessage = () => {
    for (const listener of own) listener();
  };
  await connection.subscribe(wakeChannel(topic), onMessage).catch(() => {});
}

function unsubscribe(redis: Redis, { connection, listeners }: Subscription): void {
  const channels = [...listeners.keys()].map(wakeChannel);
  if (connection !== redis) connection.destroy();
  else if (redis.isOpen) void redis.unsubscribe(channels).catch(() => {});
}
