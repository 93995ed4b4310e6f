import { appendFile, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { digestOf } from '../../src/base/digest.ts';
import { extractComponentFile } from '../../src/openshift/images.ts';
import { createBlobCache } from '../../src/base/store/blob-cache.ts';
import { buildLayeredImage } from '../support/release.ts';
import { serveImages, type ImageRegistry } from '../support/image-registry.ts';
import { createTestClient } from '../support/registry-client.ts';

let directory: string;
let registry: ImageRegistry;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'component-'));
  registry = await serveImages();
  const layer = [['usr/bin/tool', Buffer.from('a program')]] as const;
  registry.add('team/tool', await buildLayeredImage([layer]), '1');
});
afterAll(async () => {
  await registry.close();
  await rm(directory, { recursive: true });
});

it('two builds that extract one file at the same time both get it, and leave nothing else', async () => {
  let hasOther = (): void => undefined;
  const other = new Promise<void>((resolve) => (hasOther = resolve));
  /** Two processes: each with its own client and cache, and the folder in common. */
  const extract = async (name: string, finish: (path: string) => Promise<void>) => {
    const client = createTestClient();
    const cache = createBlobCache(join(directory, name));
    const { signal } = new AbortController();
    const reference = { registry: registry.host, repository: 'team/tool', tag: '1' };
    const wanted = { reference, arch: 'x86_64', path: 'usr/bin/tool', suffix: '' } as const;
    const found = await extractComponentFile(
      { ...wanted, directory: join(directory, 'files'), finish },
      { client, cache, signal },
    );
    await client.close();
    return { found, text: await readFile(found.path, 'utf8') };
  };
  const slow = extract('a', async (path) => {
    await other;
    await appendFile(path, ', finished');
  });
  const fast = extract('b', (path) => appendFile(path, ', finished')).finally(hasOther);
  for (const { found, text } of await Promise.all([slow, fast])) {
    expect(text).toBe('a program, finished');
    expect(found.digest).toBe(digestOf(text));
  }
  expect(await readdir(join(directory, 'files'))).toHaveLength(2); // the file and its record
});
