import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { spawnSync } from 'node:child_process';
import type { Plugin } from 'esbuild';
import { describe, expect, it } from 'vitest';
import { bundle } from '../../scripts/bundle.ts';

const ROOT = join(import.meta.dirname, '../..');
const BUILT = join(ROOT, 'test/built/readmes');
const { doors } = JSON.parse(readFileSync(join(ROOT, 'floors.json'), 'utf8')) as {
  readonly doors: readonly string[];
};

describe.each(doors)('src/%s/README.md', (room) => {
  const text = readFileSync(join(ROOT, 'src', room, 'README.md'), 'utf8');

  it('fits on one page and links to its standard', () => {
    expect(text.split('\n').length).toBeLessThanOrEqual(80);
    expect(text).toMatch(/\]\(https:\/\//);
  });

  it('has one example, which runs as written', async () => {
    const examples = [...text.matchAll(/^```ts\n([^]*?)^```/gm)].map(([, code = '']) => code);
    expect(examples).toHaveLength(1);
    const entry = join(BUILT, `${room}-example.ts`);
    mkdirSync(BUILT, { recursive: true });
    writeFileSync(entry, examples[0] ?? '');
    const { program } = await bundle(entry, join(BUILT, room), { plugins: [besideReadme(room)] });
    const cwd = mkdtempSync(join(tmpdir(), 'readme-'));
    const { status, stderr } = spawnSync(process.execPath, [program], { cwd, encoding: 'utf8' });
    rmSync(cwd, { recursive: true });
    expect(status, stderr).toBe(0);
  });
});

/** Resolves what an example imports as if the example stood next to its README. */
function besideReadme(room: string): Plugin {
  return {
    name: 'beside-readme',
    setup(build) {
      build.onResolve({ filter: /^\.\.?\// }, ({ path, importer }) =>
        importer.startsWith(BUILT) ? { path: join(ROOT, 'src', room, path) } : undefined,
      );
    },
  };
}
