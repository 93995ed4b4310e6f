import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';

const read = (name: string): string =>
  readFileSync(new URL(`../../docs/${name}`, import.meta.url), 'utf8');

it('the jobs of docs/fleet.md are valid YAML, and use options that the program has', () => {
  const text = /```yaml\n([^]*?)```/.exec(read('fleet.md'))?.[1] ?? '';
  const documents = parseAllDocuments(text);
  expect(documents.flatMap(({ errors }) => errors)).toEqual([]);
  expect(documents.map((one) => one.get('kind'))).toEqual([
    'PersistentVolumeClaim',
    'ConfigMap',
    'Job',
    'CronJob',
  ]);
  const options = [...text.matchAll(/--[a-z][a-z-]+/g)].map(([option]) => option);
  expect(options.length).toBeGreaterThan(5);
  expect(options.filter((option) => !read('cli.md').includes(`${option} `))).toEqual([]);
});
