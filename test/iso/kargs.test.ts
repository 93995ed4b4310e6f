import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { encodeKargs, modifyKargs, parseKargs } from '../../src/iso/coreos/kargs.ts';

const HASH = { pad: '#', end: '\n' };
const NUL = { pad: '\0', end: '\0' };

describe('a kernel argument area', () => {
  it('gives back the arguments that were put into it', () => {
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

  it('ends with a newline that a menu of boot loaders reads, and comment signs', () => {
    expect(Buffer.from(encodeKargs(' a b ', 10, HASH)).toString()).toBe('a b\n######');
  });

  it('is refused when it is not UTF-8', () => {
    expect(() => parseKargs(Uint8Array.of(0xff, 0xfe), HASH)).toThrow(/not UTF-8/);
  });
});

describe('changing kernel arguments', () => {
  it('deletes whole arguments only, and sequences of them', () => {
    expect(modifyKargs('quiet quieter a=quiet', { delete: ['quiet'] })).toBe('quieter a=quiet');
    expect(modifyKargs('a b c d', { delete: ['b c'] })).toBe('a d');
    expect(modifyKargs('a b', { delete: ['c'] })).toBe('a b');
  });

  it('appends, also what already exists', () => {
    expect(modifyKargs('a', { append: ['a', 'b=1'] })).toBe('a a b=1');
    expect(modifyKargs('', { append: ['a'] })).toBe('a');
  });

  it('appends if missing only what is not there as a whole', () => {
    expect(modifyKargs('a=1', { appendIfMissing: ['a=1', 'a', 'a'] })).toBe('a=1 a');
  });

  it('replaces the value of an argument', () => {
    expect(modifyKargs('a=1 b=2', { replace: ['a=1=$&'] })).toBe('a=$& b=2');
    expect(modifyKargs('a=1 b=2', { replace: ['a=2=3'] })).toBe('a=1 b=2');
    for (const wrong of ['a=1', 'a=1=2=3', '=1=2', 'a==2']) {
      expect(() => modifyKargs('a=1', { replace: [wrong] })).toThrow(/KEY=OLD=NEW/);
    }
  });

  it('deletes first, then appends, then replaces', () => {
    const changes = { replace: ['a=2=3'], append: ['a=2'], delete: ['a=2'] };
    expect(modifyKargs('a=2 b', changes)).toBe('b a=3');
  });
});
