import { describe, expect, it } from 'vitest';
import { formatS3Address, parseS3Address } from '../../../src/base/s3/object.ts';

describe('the address of an object', () => {
  it('has a bucket and a key, which may have slashes and spaces', () => {
    for (const text of ['s3://media/a.iso', 's3://media/nightly/4.20 (x86).iso']) {
      expect(formatS3Address(parseS3Address(text))).toBe(text);
    }
  });

  it.each([
    's3://media',
    's3://media/',
    's3:///a',
    's3://media/a/../b',
    's3://media/a//b',
    's3://m\n/a',
  ])('is refused if it names no object, or another one than its reader sees: %j', (text) => {
    expect(() => parseS3Address(text)).toThrow(
      expect.objectContaining({ code: 'object-store.address' }) as Error,
    );
  });
});
