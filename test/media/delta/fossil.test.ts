import fc from 'fast-check';
import { applyDelta, createDelta } from 'fossil-delta';
import { describe, expect, it } from 'vitest';
import { applyFossilDelta } from '../../../src/media/delta/fossil.ts';
import { runs } from '../../support/properties.ts';

const text = (value: string): Uint8Array => Buffer.from(value);
const OLD = text('0123456789abcdef');

describe("a delta in Fossil's format", () => {
  it('makes what the library makes of it', () => {
    const part = fc.oneof(fc.constant(text('the same words in both texts')), fc.uint8Array());
    const bytes = fc.array(part, { maxLength: 20 }).map((parts) => Buffer.concat(parts));
    fc.assert(
      fc.property(bytes, bytes, (old, now) => {
        const delta = Uint8Array.from(createDelta(old, now));
        expect(applyFossilDelta(old, { delta, size: now.length })).toEqual(Uint8Array.from(now));
        expect(Uint8Array.from(applyDelta(old, delta))).toEqual(Uint8Array.from(now));
      }),
      { numRuns: runs(100) },
    );
  });

  it.each([
    ['has another size', '5\n4@0,0;'],
    ['makes less than it says', '4\n3@0,0;'],
    ['makes more than it says', '4\n4@0,1@0,0;'],
    ['copies from behind the end', '4\n4@D,0;'],
    ['copies from far behind the end', `4\n4@${'~'.repeat(300)},0;`],
    ['inserts more than it has', '4\n4:abc'],
    ['inserts without end', `4\n${'~'.repeat(300)}:abcd0;`],
    ['has no end', '4\n4@0,'],
    ['has no comma', '4\n4@0'],
    ['has another command', '4\n4!0,0;'],
    ['has no first line', '4'],
    ['is empty', ''],
  ])('is refused if it %s', (_what, delta) => {
    expect(applyFossilDelta(OLD, { delta: text(delta), size: 4 })).toBeUndefined();
    expect(applyFossilDelta(OLD, { delta: text('4\n2@A,2:xy0;'), size: 4 })).toEqual(
      Uint8Array.from(text('abxy')),
    );
  });
});
