import { describe, expect, it } from 'vitest';
import { digestOf } from '../../src/base/digest.ts';
import { formatArtifact } from '../../src/outputs/artifact/manifest.ts';
import { fetchArtifact } from '../../src/outputs/artifact.ts';
import type { RegistryClient } from '../../src/registry/client.ts';
import { parseStored } from '../../src/registry/manifest.ts';
import { parseReference, type Reference } from '../../src/registry/reference.ts';
import { fakeDigest } from '../support/sparse-medium.ts';

const reference = parseReference('registry.example/m/iso:tag');
const { top, others } = formatArtifact(
  {
    ...{ title: 'x.iso', size: 300, index: 'sha256:0', isPrivate: false },
    parts: [0, 100, 200].map((offset) => ({ offset, size: 100, digest: fakeDigest(`${offset}`) })),
  },
  1,
);

/** What a registry would give, with another index than was pushed. */
async function fetchWith(index: string): Promise<unknown> {
  const stored = new Map(
    [...others.map(({ bytes }) => bytes), Buffer.from(index)].map((bytes) => [
      digestOf(bytes),
      parseStored(bytes, digestOf(bytes)),
    ]),
  );
  const client = {
    fetchManifest: ({ digest = digestOf(index) }: Reference) => Promise.resolve(stored.get(digest)),
  };
  const signal = new AbortController().signal;
  return fetchArtifact(reference, { client: client as unknown as RegistryClient, signal });
}

describe('the index of an artifact', () => {
  it('is refused when it states smaller sizes than its manifests have, which would evade the limit on their sum', async () => {
    const text = top.bytes.toString();
    expect(await fetchWith(text)).toMatchObject({ artifact: { size: 300 } });
    const size = others[1]?.bytes.length ?? 0;
    await expect(fetchWith(text.replaceAll(`"size":${size}`, '"size":1'))).rejects.toMatchObject({
      code: 'artifact.malformed',
      expected: '1 bytes',
      found: `${size} bytes`,
    });
  });
});
