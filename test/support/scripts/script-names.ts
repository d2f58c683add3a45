/** The scripts of the store, by how the tests see that they touch no key but those of KEYS. */

/** Scripts whose calls `script-calls.test.ts` watches, key by key; the sources of all others are read. */
export const CALLED = [
  ...["accept-job", "accept-messages", "acknowledge", "admit", "claim", "commit", "courier-rate"],
  ...[
    "create",
    "discard",
    "drop-consumer",
    "due-retries",
    "expire-parked",
    "finish-chunk",
    "finish-job",
  ],
  ...[
    "forget-counts",
    "park",
    "raise-field",
    "read-blocks",
    "read-columns",
    "read-fields",
    "read-hashes",
  ],
  ...["read-lag", "record-message", "redrive", "register", "save-orders", "settle-retry"],
  ...["settle-work", "swap-field", "take-work", "trim-log", "unpark"],
  ...["compact", "number-rows", "read-summary", "read-whole", "remove", "restore"],
];
