import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { formatGoYaml } from '../../../src/openshift/agent/go-yaml.ts';

type Judged = { readonly value: Readonly<Record<string, unknown>>; readonly written: string };

const { documents } = JSON.parse(
  readFileSync(new URL('go-yaml.json', import.meta.url), 'utf8'),
) as { readonly documents: readonly Judged[] };

it.each(documents.map(({ value, written }) => [JSON.stringify(value), value, written] as const))(
  'YAML has the bytes that Go writes: %s',
  (_, value, written) => {
    expect(formatGoYaml(value)).toBe(written);
  },
);

it('YAML lacks members that are undefined', () => {
  expect(formatGoYaml({ a: undefined, b: { c: undefined } })).toBe('b: {}\n');
});
