import { createSharedCache } from '../../src/base/store/shared-cache.ts';
import type { Descriptor } from '../../src/registry/manifest.ts';
import { createTestClient } from './registry-client.ts';

/** `cache-user DIRECTORY HOST BLOBS [FIRST]`: brings all blobs, from the one with this index on, and prints "done". */
const [directory = '', registry = '', blobs = '[]', first = '0'] = process.argv.slice(2);
const { signal } = new AbortController();
const client = createTestClient();
const warn = (message: string): void => {
  throw new Error(message);
};
const { over } = createSharedCache({ directory, signal, warn });
const source = over(client.sourcesOf({ registry, repository: 'a/b' }));
const list = JSON.parse(blobs) as readonly Descriptor[];
const turned = [...list.slice(Number(first)), ...list.slice(0, Number(first))];
for (const blob of turned) {
  if (!(await source.fileOf?.(blob))) throw new Error(`${blob.digest} is not there`);
}
await client.close();
process.stdout.write('done');
