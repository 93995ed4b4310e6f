import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { editKargs, encodeKargs, parseKargs } from '../../../src/iso/coreos/kargs.ts';

const HASH = { pad: '#', end: '\n' };
const NUL = { pad: '\0', end: '\0' };

describe('a kernel argument area', () => {
  it('returns the arguments that were written to it', () => {
    const words = fc.array(fc.stringMatching(/^[a-z.=,-]{1,20}$/), { maxLength: 20 });
    fc.assert(
      fc.property(words, fc.nat(100), fc.constantFrom(HASH, NUL), (list, room, filler) => {
        const text = list.join(' ');
        const area = encodeKargs(text, text.length + 1 + room, filler);
        expect(area.length).toBe(text.length + 1 + room);
        expect(parseKargs(area, filler)).toBe(text);
      }),
    );
  });

  it('holds at most one byte less than its size', () => {
    expect(Buffer.from(encodeKargs('quiet', 6, HASH)).toString()).toBe('quiet\n');
    expect(() => encodeKargs('quiet', 5, HASH)).toThrow(/take 6 bytes, but their area has 5/);
  });

  it('has no second line, which the boot menu would take as its own', () => {
    for (const text of ['x\ninsmod evil', 'x\rreboot', 'x\0y', 'x\u0085y']) {
      expect(() => encodeKargs(text, 512, HASH)).toThrow(/line break or a control character/);
    }
  });

  it('ends with a newline and with comment signs, as boot loaders need it', () => {
    expect(Buffer.from(encodeKargs(' a b ', 10, HASH)).toString()).toBe('a b\n######');
  });

  it('is refused when it is not UTF-8', () => {
    expect(() => parseKargs(Uint8Array.of(0xff, 0xfe), HASH)).toThrow(/not UTF-8/);
  });
});

describe('edited kernel arguments', () => {
  it('are deleted, then appended, then replaced, each as a whole word', () => {
    const edits = { remove: ['b'], append: ['d=1', '$&=1'], replace: ['d=1=2', 'a=1=$&'] };
    expect(editKargs('a=1 b bb a=1', edits)).toBe('a=$& bb a=$& d=2 $&=1');
  });

  it.each(['a', 'a=b', 'a=b=c=d', '=b=c', 'a==c', 'a=b='])(
    'cannot be replaced as %j says',
    (text) => {
      expect(() => editKargs('a=b', { replace: [text] })).toThrow(
        expect.objectContaining({ code: 'kargs.replace', expected: 'KEY=OLD=NEW', found: text }),
      );
    },
  );
});
