/**
 * While a slot is being moved, its master redirects commands for keys that have left it (ASK). The client follows without telling where
 * to, and goes on taking the old master for the slot's: a write that was redirected has to be waited for on the connection that carried it.
 */

interface Slots<Client> {
  getMasterByAddress: (address: string) => Promise<Client> | undefined;
}

/** @returns begins to watch; that tells which masters commands have been redirected to since */
export function watchRedirects<Client>(slots: Slots<Client>): () => () => readonly Client[] {
  const find = slots.getMasterByAddress.bind(slots);
  const latest = new Map<Client, number>();
  let count = 0;

  slots.getMasterByAddress = (address) => {
    const found = find(address);
    found?.then(
      (master) => {
        count += 1;
        latest.set(master, count);
      },
      () => {},
    );
    return found;
  };

  return () => {
    const before = count;
    return () => {
      if (count === before) return [];
      return [...latest].flatMap(([master, at]) => (at > before ? master : []));
    };
  };
}
