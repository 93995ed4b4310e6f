/* Owns what this process knows about the clients that read images. It is forgotten when the process ends. */

export type Reader = {
  /** Id of the InfraEnv. */
  readonly id: string;
  readonly revision: number;
  readonly address: string;
  /** Name of the host whose URL it has. */
  readonly host?: string | undefined;
};

export type Readers = {
  /** Counts an answer that begins; the result is called with its end. */
  readonly begin: (reader: Reader) => () => void;
  /** Lists the clients with an answer in progress, or one that ended less than a minute ago. */
  readonly list: (id: string) => readonly Reader[];
};

type Seen = { readonly reader: Reader; open: number; endedAt: number };

/** Milliseconds: controllers pause between ranges. */
const PAUSE_MS = 60_000;
/** Clients remembered; with more, a new one takes the place of another of its image. */
const MOST = 10_000;
/** Milliseconds between two looks at all clients. */
const SWEEP_MS = 1000;

/** @param now milliseconds */
export function createReaders(now: () => number): Readers {
  const images = new Map<string, Map<string, Seen>>();
  let known = 0;
  let sweptAt = -Infinity;
  const isReading = ({ open, endedAt }: Seen): boolean => open > 0 || now() - endedAt < PAUSE_MS;
  const sweep = (): void => {
    if (now() - sweptAt < SWEEP_MS) return;
    sweptAt = now();
    known = 0;
    for (const [id, clients] of images) {
      for (const [key, seen] of clients) if (!isReading(seen)) clients.delete(key);
      known += clients.size;
      if (clients.size === 0) images.delete(id);
    }
  };
  const makeRoom = (clients: Map<string, Seen>): void => {
    if (known < MOST) return;
    sweep();
    const dropped = known < MOST ? undefined : findOldest(clients);
    if (dropped !== undefined && clients.delete(dropped)) known -= 1;
  };
  return {
    begin(reader) {
      const clients = images.get(reader.id) ?? new Map<string, Seen>();
      const key = `${reader.revision} ${reader.host ?? ''} ${reader.address}`;
      const before = clients.get(key);
      if (before) clients.delete(key);
      else {
        makeRoom(clients);
        known += 1;
      }
      const seen = before ?? { reader, open: 0, endedAt: 0 };
      clients.set(key, seen); // the last one of all
      images.set(reader.id, clients);
      seen.open += 1;
      return () => {
        seen.open -= 1;
        seen.endedAt = now();
      };
    },
    list: (id) =>
      [...(images.get(id)?.values() ?? [])].filter(isReading).map(({ reader }) => reader),
  };
}

/** Finds the client that has asked for nothing for longest, if there is one without an answer in progress. */
function findOldest(clients: ReadonlyMap<string, Seen>): string | undefined {
  for (const [key, { open }] of clients) if (open === 0) return key;
  const [first] = clients.keys();
  return first;
}

/** Describes the readers of a revision that is no longer served. */
export const describeReaders = (readers: readonly Reader[]): readonly string[] =>
  readers.map(
    ({ host, address, revision }) =>
      `${host === undefined ? address : `${host} (${address})`} is still reading revision ${revision}, ` +
      'whose URLs have ended: give it the new one',
  );
