import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

const list = (folder: string): readonly string[] =>
  readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.(?:ts|mjs)$/.test(entry.name))
    .map((entry) => relative(ROOT, join(entry.parentPath, entry.name)));

/** What has no counterpart in the program: kinds of tests, and what they share. */
const OWN = /^test\/(?:boot|built|docs|e2e|faults|fuzz|hostile|load|support)(?:\/|$)/;

describe('the house', () => {
  it('has each folder of tests where the folder is that they test', () => {
    const folders = new Set(list('test').map(dirname));
    const strange = [...folders].filter(
      (folder) => !OWN.test(folder) && !existsSync(join(ROOT, folder.replace(/^test/, 'src'))),
    );
    expect(strange).toEqual([]);
  });

  it('has each function that ARCHITECTURE.md leads through in the file that it names', () => {
    const text = readFileSync(join(ROOT, 'ARCHITECTURE.md'), 'utf8');
    const steps = [...text.matchAll(/`(\w+)`\s\(`(src\/[\w/-]+\.ts)`\)/g)];
    const missing = steps.filter(([, name = '', path = '']) => {
      const source = existsSync(join(ROOT, path)) ? readFileSync(join(ROOT, path), 'utf8') : '';
      return !new RegExp(`export (?:async )?(?:function\\*?|const) ${name}\\b`).test(source);
    });
    expect(missing.map(([step]) => step)).toEqual([]);
    expect(steps.length).toBeGreaterThan(20);
  });

  it('has no name of a file more than twice', () => {
    const names = list('src').map((path) => basename(path));
    const often = names.filter((name) => names.filter((other) => other === name).length > 2);
    expect([...new Set(often)]).toEqual([]);
  });

  it('has at most 15 files in a folder', () => {
    const folders = list('src').map(dirname);
    const full = folders.filter((folder) => folders.filter((one) => one === folder).length > 15);
    expect([...new Set(full)]).toEqual([]);
  });
});
