import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { Digest } from '../../../src/base/digest.ts';
import { createFileDigests } from '../../../src/base/disk/file-digests.ts';
import type { BlobSource } from '../../../src/base/store/blob-source.ts';
import { createBlobCache } from '../../../src/base/store/blob-cache.ts';
import type { Reference } from '../../../src/registry/reference.ts';
import { createExtentOpener } from '../../../src/stages/5-pour/open-extents.ts';
import { makeLayout, MIB, pourAndPublish } from '../../support/pour-layout.ts';

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sealift-extents-'));
});
afterEach(() => rm(directory, { recursive: true, force: true }));

it('a pour asks the other repository of a host when the first one gives wrong bytes', async () => {
  const { layout, blobs, whole } = makeLayout([2 * MIB + 1, 3 * MIB]);
  const asked: string[] = [];
  /** As the client of a registry does: a new source for each call, with the name of the host. */
  const sourcesOf = ({ registry, repository }: Reference): BlobSource[] => [
    {
      name: registry,
      local: false,
      open({ digest }, { offset }) {
        asked.push(`${repository} ${offset}`);
        const bytes = Buffer.from(blobs.get(digest) ?? '');
        if (repository === 'damaged') bytes.writeUInt8(bytes.readUInt8(0) ^ 1, 0);
        return Promise.resolve({ offset, body: Readable.from([bytes.subarray(offset)]) });
      },
    },
  ];
  const planned = [...blobs].map(([digest, { length }]) => ({
    digest: digest as Digest,
    size: length,
    mediaType: 'application/octet-stream',
    users: [],
    from: ['quay.io/damaged', 'quay.io/whole'],
  }));
  const openExtent = createExtentOpener({
    blobs: planned,
    cache: createBlobCache(join(directory, 'cache')),
    digests: createFileDigests(directory),
    client: { sourcesOf },
  });
  const output = join(directory, 'out.iso');
  await pourAndPublish({
    layout,
    output,
    openExtent,
    lanes: 1,
    signal: new AbortController().signal,
  });
  expect((await readFile(output)).equals(whole)).toBe(true);
  expect(asked).toEqual(['damaged 0', 'whole 0', 'damaged 0', 'whole 0']);
});
