import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { listNamedPaths } from '../../src/config/load.ts';

let directory: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'sealift-named-'));
  for (const name of ['index', 'stable', 'keys']) mkdirSync(join(directory, name));
  for (const name of ['base.iso', 'keys/key.pub']) writeFileSync(join(directory, name), '');
});
afterAll(() => {
  rmSync(directory, { recursive: true });
});

it.each([
  ['a file', 'a: {b: base.iso}', ['base.iso']],
  ['a file of a reference', 'sshKey: file:keys/key.pub', ['keys/key.pub']],
  ['a directory of a reference, with a tag', 'a: [{catalog: "oci:index:v4.21"}]', ['index']],
  ['a directory with a slash', 'mirrorPath: ./index', ['index']],
  ['no directory that a word only looks like', 'channel: stable', []],
  ['no directory with the configuration in it', 'a: ./, b: ../, c: /', []],
  ['nothing that is not there', 'a: absent.iso\nb: https://mirror.example/base.iso', []],
])('a configuration names %s', (_what, text, names) => {
  expect(listNamedPaths(text, directory)).toEqual(names.map((name) => join(directory, name)));
});

it('an absolute reference begins with three slashes or one', () => {
  const path = join(directory, 'base.iso');
  expect(listNamedPaths(`a: file://${path}`, '/')).toEqual([path]);
  expect(listNamedPaths(`a: file:${path}`, '/')).toEqual([path]);
});
