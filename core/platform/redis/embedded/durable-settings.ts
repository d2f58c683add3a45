/** Settings of Redis by which what was acknowledged is still there after a crash, and nothing of it is evicted. */
export const DURABLE_SETTINGS = {
  appendonly: "yes",
  appendfsync: "always",
  "aof-load-truncated": "no",
  "maxmemory-policy": "noeviction",
} as const;
