/** The commands of `waybill`. */
import type { Program } from "#core/platform/process/command-line.ts";

interface Entry {
  readonly about: string;
  /** Loads the command's code, which no other command needs. */
  readonly load: () => Promise<Program>;
}

export const COMMANDS: Readonly<Record<string, Entry>> = {
  start: {
    about: "runs all roles in one process, with the demo unless SETUP_FILE is set",
    load: async () => (await import("./start.ts")).start,
  },
  setup: {
    about: "applies a setup file, or prints its JSON Schema",
    load: async () => (await import("./setup/main.ts")).setup,
  },
  backup: {
    about: "copies the embedded stores at one moment",
    load: async () => (await import("./backup/backup.ts")).backup,
  },
  restore: {
    about: "puts a backup into an empty DATA_DIR",
    load: async () => (await import("./backup/restore.ts")).restore,
  },
  archive: {
    about: "shows the archive, and brings a channel back to Redis",
    load: async () => (await import("./archive/archive.ts")).archive,
  },
  sql: {
    about: "runs a statement on the analytics, or opens a prompt",
    load: async () => (await import("./sql/sql.ts")).sql,
  },
  doctor: {
    about: "examines the stores' settings, or a courier's sender",
    load: async () => (await import("./doctor.ts")).doctor,
  },
  reencrypt: {
    about: "replaces ENCRYPTION_KEY_PREVIOUS by ENCRYPTION_KEY in the store",
    load: async () => (await import("./reencrypt.ts")).reencryptSecrets,
  },
  listen: {
    about: "forwards an endpoint's webhooks to a receiver on this machine",
    load: async () => (await import("#client/src/listen-command.ts")).listenCommand,
  },
  slots: {
    about: "shows the partitions, and moves them between masters of a cluster",
    load: async () => (await import("./slots/slots.ts")).slots,
  },
  verify: {
    about: "compares the running installation with an independent model of the specification",
    load: async () => (await import("./verify/verify.ts")).verify,
  },
};
