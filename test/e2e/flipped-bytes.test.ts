import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Digest, digestOf } from '../../src/base/digest.ts';
import { type ByteRange, type RandomAccess, requireInside } from '../../src/base/random-access.ts';
import type { Verification } from '../../src/media/verify-contents.ts';
import { verifyIso } from '../../src/media/verify.ts';
import { runs } from '../support/properties.ts';
import { makeProducts, PRODUCTS } from '../support/proven-products.ts';
import { requireTool } from '../support/tools.ts';

/*
 * One byte of each product is flipped: verify must find it, or must have said that it did not compare it.
 *
 *     npm run test:flips         1000 flips of each product
 *
 * prints how many of each product were found.
 */

const TOOLS = ['genisoimage', 'isohybrid', 'mformat', 'xz'];
const hasTools = TOOLS.map(requireTool).every(Boolean);
const FLIPS = runs(10);

/** The image in memory, with one byte that differs. */
const withFlip = (image: Buffer, at: number, mask: number): RandomAccess => ({
  path: 'flipped.iso',
  size: image.length,
  read(offset, size, buffer = Buffer.alloc(size)) {
    requireInside({ offset, size }, image.length);
    const bytes = buffer.subarray(0, size);
    image.copy(bytes, 0, offset, offset + size);
    if (at >= offset && at < offset + size) bytes[at - offset] = (image[at] ?? 0) ^ mask;
    return Promise.resolve(bytes);
  },
  close: () => Promise.resolve(),
});

type Flip = { readonly at: number; readonly mask: number };

/** @param digest of the whole image, in a file beside it */
const verify = (image: Buffer, digest?: Digest, { at, mask } = NO_FLIP): Promise<Verification> =>
  verifyIso(withFlip(image, at, mask), {
    signal: new AbortController().signal,
    onProgress: () => undefined,
    published: () => Promise.resolve(digest),
  });

const NO_FLIP: Flip = { at: -1, mask: 0 };

const placeIn = ({ offset, size }: ByteRange): fc.Arbitrary<number> =>
  fc.integer({ min: offset, max: offset + size - 1 });

/** The bytes that a verification says it did not compare. */
function listUnproven({ because, areas = [], compared }: Verification): readonly ByteRange[] {
  if (because === undefined) return [];
  const unproven = areas.filter(({ isProven }) => !isProven);
  return because === 'area' ? unproven : [{ offset: 0, size: compared.of }];
}

type Verdict = 'found' | 'not compared' | 'lie';

async function judge(image: Buffer, digest: Digest | undefined, flip: Flip): Promise<Verdict> {
  const { at } = flip;
  const verification = await verify(image, digest, flip);
  if (verification.state === 'damaged') return 'found';
  const isInside = ({ offset, size }: ByteRange): boolean => at >= offset && at < offset + size;
  return listUnproven(verification).some(isInside) ? 'not compared' : 'lie';
}

describe.skipIf(!hasTools)('a flipped byte, at any place of', () => {
  let products: ReadonlyMap<string, Buffer>;
  const table = new Map<string, Record<Verdict, number>>();
  beforeAll(async () => {
    products = await makeProducts();
  });
  afterAll(() => {
    const rows = [...table].map(([product, { found, lie, ...rest }]) => ({
      ...{ product, 'flips': FLIPS, found, 'said to be not compared': rest['not compared'] },
      lies: lie,
    }));
    console.table(rows);
  });

  it.each(PRODUCTS.map((one) => [one.product, one] as const))(
    '%s is found or said to be not compared',
    { timeout: FLIPS * 2000 },
    async (product, { state, path, hasChecksum = false }) => {
      const image = products.get(path) ?? Buffer.alloc(0);
      const digest = hasChecksum ? digestOf(image) : undefined;
      const { problems, ...verified } = await verify(image, digest);
      expect({ state: verified.state, problems }).toEqual({ state, problems: [] });
      const counts = { 'found': 0, 'not compared': 0, 'lie': 0 };
      table.set(product, counts);
      await fc.assert(
        fc.asyncProperty(
          fc.oneof(
            { arbitrary: placeIn({ offset: 0, size: image.length }), weight: 12 },
            ...(verified.areas ?? []).map((area) => ({ arbitrary: placeIn(area), weight: 1 })),
          ),
          fc.integer({ min: 1, max: 255 }),
          async (at, mask) => {
            const verdict = await judge(image, digest, { at, mask });
            counts[verdict]++;
            expect(verdict).not.toBe('lie');
          },
        ),
        { numRuns: FLIPS },
      );
    },
  );

  it('none at all leaves an ISO without a proof not provable', async () => {
    const { state, because, compared } = await verify(products.get('test.iso') ?? Buffer.alloc(0));
    expect({ state, because, bytes: compared.bytes }).toEqual({
      state: 'not provable',
      because: 'no proof',
      bytes: 0,
    });
  });
});
