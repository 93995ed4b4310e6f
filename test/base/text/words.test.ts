import { expect, it } from 'vitest';
import { DURATION, parseDuration, parseSize, SIZE } from '../../../src/base/text/words.ts';
import { TARGETS } from '../../../src/config/appliance-shape.ts';
import { isRepository, isTag } from '../../../src/registry/index.ts';

it.each([
  ['45GiB', 45 * 2 ** 30],
  ['4.7 GB', 4_700_000_000],
  ['7 B', 7],
  ['1024', 1024],
  ['1.5', 1],
  ['1iB', undefined],
  ['1 GiB ', undefined],
  ['9007199254740993', undefined],
  ['', undefined],
])('the size "%s" is read as %s bytes', (text, bytes) => {
  expect(parseSize(text)).toBe(bytes);
});

it.each(['256KiB', '4.7GB', '1 B', '2TB'])(
  'the size "%s" of a configuration is one of the command line too',
  (text) => {
    expect([SIZE.test(text), parseSize(text) !== undefined]).toEqual([true, true]);
  },
);

it.each([
  ['1h30m', 5_400_000],
  ['90s', 90_000],
  ['0s', 0],
])('the time "%s" of a configuration is one of the command line too', (text, milliseconds) => {
  expect([DURATION.test(text), parseDuration(text)]).toEqual([true, milliseconds]);
});

it.each(['team/app', 'a__b/c-d', 'a//b', 'a/', 'a___b', 'a/-b', 'A'])(
  'a configuration gives a copy the name %s only if registries take it',
  (name) => {
    expect(TARGETS.targetRepo.test(name)).toBe(isRepository(name));
    expect(TARGETS.targetTag.test(name)).toBe(isTag(name));
  },
);
