import { pack, type Pack } from 'tar-stream';

const DIRECTORY_MODE = 0o755;
const FILE_MODE = 0o644;

/**
 * A layer as plain tar in the order of the names: owned by root, without a time, so that its bytes
 * depend on nothing but the arguments.
 *
 * @param directories modes by path, without a slash at the end
 * @param files contents by path, in parts
 */
export async function packFiles(
  directories: ReadonlyMap<string, number>,
  files: ReadonlyMap<string, readonly Buffer[]>,
): Promise<Buffer> {
  const tar = pack();
  const names = [...directories.keys(), ...files.keys()].sort();
  const chunks: Buffer[] = [];
  const reading = (async () => {
    for await (const chunk of tar) chunks.push(chunk as Buffer);
  })();
  for (const name of names) {
    const content = files.get(name);
    const mode = content === undefined ? (directories.get(name) ?? DIRECTORY_MODE) : FILE_MODE;
    await addEntry(tar, { name, mode, content });
  }
  tar.finalize();
  await reading;
  return Buffer.concat(chunks);
}

type NewEntry = {
  readonly name: string;
  readonly mode: number;
  /** Of a file; a directory has none. */
  readonly content: readonly Buffer[] | undefined;
};

function addEntry(tar: Pack, { name, mode, content }: NewEntry): Promise<void> {
  const header = { name, mode, uid: 0, gid: 0, mtime: new Date(0) };
  return new Promise((resolve, reject) => {
    const done = (error?: Error | null): void => {
      if (error) reject(error);
      else resolve();
    };
    if (content === undefined) tar.entry({ ...header, name: `${name}/`, type: 'directory' }, done);
    else {
      const size = content.reduce((sum, part) => sum + part.length, 0);
      const entry = tar.entry({ ...header, type: 'file', size }, done);
      for (const part of content) entry.write(part); // all are in memory, and no copies are made
      entry.end(null);
    }
  });
}
