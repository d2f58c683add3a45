/** `bun run reencrypt`: re-seals every secret in the store with `ENCRYPTION_KEY` instead of `ENCRYPTION_KEY_PREVIOUS`. */

import { readConfig } from "#core/config.ts";
import { counted } from "#core/domain/schema/counted.ts";
import { createLog } from "#core/log.ts";
import { openSecrets } from "#core/open-secrets.ts";
import { migrateStore } from "#core/redis/config/layout.ts";
import { reencrypt } from "#core/reencrypt.ts";
import { guarded, openStore, Refused } from "#core/runtime.ts";

const USAGE =
  "usage: ENCRYPTION_KEY=<new key> ENCRYPTION_KEY_PREVIOUS=<previous key> bun run reencrypt";

await guarded(async () => {
  if (process.argv.length > 2) throw new Refused(USAGE);
  const config = readConfig(process.env);
  if (config.encryptionKeyPrevious === null) throw new Refused(USAGE);
  const log = createLog("warn");
  const store = await openStore(config, log);
  try {
    await migrateStore(store.redis, log);
    const opened = await openSecrets(config, store.redis, log, { isRotating: true });
    try {
      const sealed = await reencrypt(store.redis, opened);
      process.stdout.write(
        `${counted(sealed, "secret")} re-encrypted; ENCRYPTION_KEY_PREVIOUS can be removed from every process\n`,
      );
    } finally {
      await opened.close();
    }
  } finally {
    await store.close();
  }
});
