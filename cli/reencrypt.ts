/** `waybill reencrypt`: re-seals every secret in the store with `ENCRYPTION_KEY` instead of `ENCRYPTION_KEY_PREVIOUS`. */

import { migrateStore } from "#core/configuration/store/layout.ts";
import { readConfig } from "#core/platform/environment/config.ts";
import { command, JSON_OPTION } from "#core/platform/process/command-line.ts";
import { commandLog } from "#core/platform/process/log.ts";
import { counted } from "#core/platform/schema/counted.ts";
import { openSecrets } from "#core/runtime/open-secrets.ts";
import { reencrypt } from "#core/runtime/reencrypt.ts";
import { openStore, Refused } from "#core/runtime/runtime.ts";

export const reencryptSecrets = command({
  name: "waybill reencrypt",
  forms: ["[--json]"],
  about: `Seals every secret in the store with ENCRYPTION_KEY that is sealed with ENCRYPTION_KEY_PREVIOUS, and prints how many. Both
variables must be set. It is refused while a process still seals with another key.`,
  options: { json: JSON_OPTION },
  async run({ env, report }) {
    const config = readConfig(env);
    if (config.encryptionKeyPrevious === null) {
      throw new Refused("ENCRYPTION_KEY_PREVIOUS must be set too: it names the key to replace.");
    }
    const log = commandLog();
    const store = await openStore(config, log);
    try {
      await migrateStore(store.redis, log);
      const opened = await openSecrets(config, store.redis, log, { isRotating: true });
      const sealed = await reencrypt(store.redis, opened).finally(opened.close);
      const text = `${counted(sealed, "secret")} re-encrypted; ENCRYPTION_KEY_PREVIOUS can be removed from every process`;
      report({ reencrypted: sealed }, text);
    } finally {
      await store.close();
    }
  },
});
