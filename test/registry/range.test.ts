import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseRange } from '../../src/base/http/range.ts';

describe('a Range header', () => {
  it('gives exactly the requested bytes that the file has, or none', () => {
    const number = fc.oneof(fc.nat(300), fc.constant(10n ** 30n));
    const bound = fc.option(number, { nil: '' });
    fc.assert(
      fc.property(bound, bound, fc.nat(200), (first, last, size) => {
        const range = parseRange(`bytes=${first}-${last}`, size);
        const all = Array.from({ length: size }, (_, at) => at);
        const wanted =
          first === ''
            ? all.slice(last === '' ? size : Math.max(0, size - Number(last)))
            : all.filter((at) => at >= Number(first) && (last === '' || at <= Number(last)));
        if (typeof range === 'object') {
          expect([range.start, range.end]).toEqual([wanted.at(0), wanted.at(-1)]);
        } else {
          expect(wanted).toEqual([]);
        }
      }),
    );
  });

  it.each([undefined, '', 'bytes', 'bytes=', 'bytes=-', 'bytes=1', 'bytes=1-2,3-4', 'rows=1-2'])(
    'of %j is ignored',
    (header) => {
      expect(parseRange(header, 100)).toBeUndefined();
    },
  );
});
