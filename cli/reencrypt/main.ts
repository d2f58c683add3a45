/** `bun run reencrypt`: re-seals every secret in the store with `ENCRYPTION_KEY` instead of `ENCRYPTION_KEY_PREVIOUS`. */

import { migrateStore } from "#core/configuration/store/layout.ts";
import { readConfig } from "#core/platform/environment/config.ts";
import { createLog } from "#core/platform/process/log.ts";
import { counted } from "#core/platform/schema/counted.ts";
import { openSecrets } from "#core/runtime/open-secrets.ts";
import { reencrypt } from "#core/runtime/reencrypt.ts";
import { guarded, openStore, Refused } from "#core/runtime/runtime.ts";

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
