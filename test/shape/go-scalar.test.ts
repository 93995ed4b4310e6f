import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { readYaml } from '../../src/shape/document.ts';
import { readGoScalar } from '../../src/shape/go-scalar.ts';
import { FREE } from '../../src/shape/shape.ts';

type Judged = { readonly written: string; readonly value?: unknown; readonly text: string };

const { scalars } = JSON.parse(
  readFileSync(new URL('go-scalars.json', import.meta.url), 'utf8'),
) as { readonly scalars: readonly Judged[] };

const read = (text: string): unknown =>
  (readYaml({ text, file: 'a.yaml', publicKeys: new Set() }, FREE).value as { a?: unknown }).a;

describe('a scalar of YAML', () => {
  it.each(scalars.map(({ written, ...judged }) => [written, judged] as const))(
    'has the meaning that it has to Go: %s',
    (written, judged) => {
      // Go refuses numbers that are infinite or none; here they are text, as they are to most readers.
      expect(read(`a: ${written}\n`)).toStrictEqual('value' in judged ? judged.value : written);
    },
  );

  it.each([
    ['2021-01-01', 'date'],
    ['2021-02-29', 'text'],
    ['2024-2-29', 'date'],
    ['2021-01-01T10:00:00Z', 'date'],
    ['2021-01-01t1:2:3.5+01:00', 'date'],
    ['2021-01-01 25:00:00', 'text'],
    ['2021-01-01 10:00:00', 'date'],
    ['2021-01-01T10:00:00', 'text'],
  ])('is a date only if it exists: %s is a %s', (text, kind) => {
    expect(readGoScalar(text).kind).toBe(kind);
  });
});
