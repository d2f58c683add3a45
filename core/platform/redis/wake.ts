/**
 * Wakes whoever waits for work: writers announce it on a channel of its topic, idle loops wait for that instead of asking again
 * and again. Only a hint: a message may be lost while a connection is interrupted, so every wait has a limit of its own, after
 * which the loop looks by itself.
 *
 * A process has one connection for all its topics, apart from the one for commands: Redis gives subscribers little room for
 * replies.
 */
import { limit } from "#core/platform/schema/limit.ts";
import { duplicate, isInUse, type Redis } from "./client.ts";
import { type WakeTopic, wakeChannel } from "./keys.ts";

/** Announcements of a topic by a process are no closer than this: the first goes out at once, those that follow share the next. */
const GAP_MS = 5;
const REOPEN_MS = limit(
  500,
  "pause before a broken connection for announcements is replaced",
  "loops look by themselves",
);

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

/** The connection of a process for announcements. */
interface Subscription {
  readonly redis: Redis;
  readonly listeners: Map<WakeTopic, Set<() => void>>;
  connection: Redis | null;
  isClosed: boolean;
  reopening: Timer | undefined;
}

const subscriptions = new WeakMap<Redis, Subscription>();

/** Only of the topics that somebody waits for: under load each message costs Redis and its receiver some microseconds. */
function listen(redis: Redis, topic: WakeTopic, listener: () => void): () => void {
  const subscription = subscriptions.get(redis) ?? openSubscription(redis);
  subscriptions.set(redis, subscription);
  const { listeners } = subscription;
  const known = listeners.get(topic);
  const own = known ?? new Set();
  own.add(listener);
  if (!known) {
    listeners.set(topic, own);
    subscribe(subscription, topic);
  }
  return () => {
    own.delete(listener);
    if ([...listeners.values()].some(({ size }) => size > 0)) return;
    subscriptions.delete(redis);
    close(subscription);
  };
}

function openSubscription(redis: Redis): Subscription {
  const closed = { connection: null, isClosed: false, reopening: undefined };
  const subscription: Subscription = { redis, listeners: new Map(), ...closed };
  open(subscription);
  return subscription;
}

/**
 * A connection that breaks is replaced, on a cluster by one to any master in reach; so is one to a node that is no longer a master.
 * The connection for messages that a cluster's client keeps would hold up its search for masters while it cannot be made.
 */
function open(subscription: Subscription): void {
  const { redis, listeners } = subscription;
  const own = duplicate(redis);
  subscription.connection = own;
  if (!own) {
    openLater(subscription);
    return;
  }
  own.on("error", () => {});
  own.once("ready", () => {
    // Closing it while it connects does not end the attempt.
    if (subscription.isClosed) own.destroy();
    else for (const topic of listeners.keys()) subscribe(subscription, topic);
  });
  own.on("ping-interval", () => {
    if (!isInUse(redis, own)) replace(subscription, own);
  });
  own.once("terminated", () => replace(subscription, own));
  void own.connect().catch(() => {});
}

/** To a topic that somebody waits for from now on. */
function subscribe({ connection, listeners }: Subscription, topic: WakeTopic): void {
  const onMessage = () => {
    for (const listener of listeners.get(topic) ?? []) listener();
  };
  if (connection?.isReady) {
    void connection.subscribe(wakeChannel(topic), onMessage).catch(() => {});
  }
}

function replace(subscription: Subscription, own: Redis): void {
  own.destroy();
  if (!subscription.isClosed) openLater(subscription);
}

function openLater(subscription: Subscription): void {
  subscription.reopening = setTimeout(open, REOPEN_MS, subscription);
  subscription.reopening.unref();
}

function close(subscription: Subscription): void {
  subscription.isClosed = true;
  clearTimeout(subscription.reopening);
  subscription.connection?.destroy();
}
