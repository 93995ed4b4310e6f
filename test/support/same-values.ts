import { expect } from 'vitest';
import { digestOf } from '../../src/base/digest.ts';
import { openIso } from '../../src/iso/index.ts';
import { BUILT_PATH, INDEX_PATH, readIndex } from '../../src/media/media-index.ts';
import { readAreas } from '../../src/media/medium.ts';

type Contents = {
  /** Digests of the areas that the values of a site are in, in the order of their bytes. */
  readonly areas: readonly string[];
  /** Digests of all files by path, without the index and the copy of the built areas. */
  readonly files: Readonly<Record<string, string | undefined>>;
  readonly others: string;
};

async function readContents(path: string): Promise<Contents> {
  const iso = await openIso(path);
  try {
    const index = await readIndex(iso);
    if (!index) throw new Error(`${path} has no index`);
    const { now } = await readAreas(iso, { index });
    const { product, release, images } = index;
    const files = index.extents
      .flatMap(({ paths, digest, pristine }) =>
        paths.map((path) => [path, digest ?? pristine] as const),
      )
      .filter(([path]) => path !== INDEX_PATH && path !== BUILT_PATH);
    return {
      areas: now.flatMap(({ kind, bytes }) =>
        kind === 'built' ? [] : [`${kind} ${digestOf(bytes)}`],
      ),
      files: Object.fromEntries(files),
      others: JSON.stringify({ product, release, images }),
    };
  } finally {
    await iso.close();
  }
}

/**
 * Requires that two media have the same values of a site, and the same files: one was built with the values, and
 * has a copy of its areas; the other got them afterwards.
 */
export async function expectSameValues(one: string, other: string): Promise<void> {
  expect(await readContents(one)).toEqual(await readContents(other));
}
