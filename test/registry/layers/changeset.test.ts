import fc from 'fast-check';
import { describe, it, expect } from 'vitest';
import { readFiles } from '../../../src/registry/layers/read.ts';
import { layerOf, packTar, type LayerEntry } from '../../support/images.ts';
import { runs } from '../../support/properties.ts';

type Change =
  | { readonly kind: 'file'; readonly path: string; readonly text: string }
  | { readonly kind: 'directory' | 'remove' | 'opaque'; readonly path: string };

const segment = fc.constantFrom('a', 'b');
const path = fc.array(segment, { minLength: 1, maxLength: 3 }).map((parts) => parts.join('/'));
const change: fc.Arbitrary<Change> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant('file' as const), path, text: fc.string() }),
  },
  fc.record({
    kind: fc.constantFrom('directory' as const, 'remove' as const, 'opaque' as const),
    path,
  }),
);

const isBelow = (inner: string, outer: string): boolean => inner.startsWith(`${outer}/`);

/** No file above or at another entry of the same layer: no packer makes such a tar. */
const layer = fc
  .uniqueArray(change, { selector: (one) => one.path, maxLength: 6 })
  .filter((changes) =>
    changes.every(
      (one) => one.kind !== 'file' || !changes.some((other) => isBelow(other.path, one.path)),
    ),
  );

const entryOf = (one: Change): readonly [string, LayerEntry] => {
  const slash = one.path.lastIndexOf('/') + 1;
  switch (one.kind) {
    case 'file':
      return [one.path, one.text];
    case 'directory':
      return [one.path, { type: 'directory' }];
    case 'remove':
      return [`${one.path.slice(0, slash)}.wh.${one.path.slice(slash)}`, ''];
    case 'opaque':
      return [`${one.path}/.wh..wh..opq`, ''];
  }
};

/** What unpacking one layer after the other onto a disk leaves there: deletions first, then files. */
function unpack(layers: readonly (readonly Change[])[]): Map<string, string> {
  const disk = new Map<string, string>();
  const remove = (doomed: (at: string) => boolean): void => {
    for (const at of [...disk.keys()].filter(doomed)) disk.delete(at);
  };
  for (const changes of layers) {
    for (const { kind, path } of changes) {
      if (kind === 'remove') remove((at) => at === path || isBelow(at, path));
      if (kind === 'opaque' || kind === 'file') remove((at) => isBelow(at, path));
      // A directory takes the place of a file, and so do the parents of whatever is unpacked.
      if (kind === 'directory' || kind === 'opaque') remove((at) => at === path);
      remove((at) => isBelow(path, at));
    }
    for (const one of changes) if (one.kind === 'file') disk.set(one.path, one.text);
  }
  return disk;
}

describe('the flattened view of layers', () => {
  it('is the tree that unpacking them in order leaves on a disk', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(layer, { maxLength: 4 }), async (layers) => {
        const packed = await Promise.all(layers.map((one) => packTar(one.map(entryOf))));
        const { signal } = new AbortController();
        const files = await readFiles(
          packed.map((tar) => layerOf(tar)),
          () => true,
          { signal },
        );
        const texts = [...files].map(([at, bytes]) => [at, Buffer.from(bytes).toString()]);
        expect(Object.fromEntries(texts)).toEqual(Object.fromEntries(unpack(layers)));
      }),
      { numRuns: runs(300) },
    );
  });
});
